"""A small client, made from the .proto files alone with grpcio and numpy. Copy it into your project
and change it as you like; docs/python-client.md explains it."""

import pathlib
import random
import sys
import time
import uuid

import grpc
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "generated"))
from google.rpc import error_details_pb2  # noqa: E402
from gridclock.v1 import kernels_pb2, kernels_pb2_grpc, types_pb2  # noqa: E402

CHUNK = 1 << 20  # The most that one message may carry.

DTYPES = {
    "float64": types_pb2.F64,
    "float32": types_pb2.F32,
    "float16": types_pb2.F16,
    "int64": types_pb2.I64,
    "int32": types_pb2.I32,
    "int16": types_pb2.I16,
    "int8": types_pb2.I8,
    "uint64": types_pb2.U64,
    "uint32": types_pb2.U32,
    "uint16": types_pb2.U16,
    "uint8": types_pb2.U8,
    "bool": types_pb2.BOOL,
}
NUMPY = {number: np.dtype(name).newbyteorder("<") for name, number in DTYPES.items()}
# numpy has no bf16 and no f8, so their bits come as unsigned integers. They are sent so too, with
# dtypes={"x": types_pb2.BF16}.
NUMPY[types_pb2.BF16] = np.dtype("<u2")
NUMPY[types_pb2.F8E4M3] = NUMPY[types_pb2.F8E5M2] = np.dtype("u1")


def spec_of(array, dtype=None):
    dtype = DTYPES[array.dtype.name] if dtype is None else dtype
    if array.dtype.itemsize != NUMPY[dtype].itemsize:
        name = types_pb2.DType.Name(dtype)
        raise ValueError(f"{name} has {NUMPY[dtype].itemsize} bytes, {array.dtype} does not")
    return types_pb2.TensorSpec(dtype=dtype, dims=array.shape)


def bytes_of(array):
    """Dense, row-major, little-endian, as one flat view without a copy where it is so already."""
    dense = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return memoryview(dense.reshape(-1).view(np.uint8))


def array_of(spec, data):
    return np.frombuffer(data, dtype=NUMPY[spec.dtype]).reshape(tuple(spec.dims))


def details_of(error):
    """(reason, seconds to wait or None) of a failed call."""
    reason, wait = "", None
    for key, value in error.trailing_metadata() or ():
        if key != "grpc-status-details-bin":
            continue
        status = error_details_pb2.Status.FromString(value)
        for detail in status.details:
            info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
            if detail.Unpack(info):
                reason = info.reason
            elif detail.Unpack(retry):
                wait = retry.retry_delay.ToMilliseconds() / 1000
    return reason, wait


# Where another try may help, the server says so: UNAVAILABLE or RESOURCE_EXHAUSTED with RetryInfo.
# All else would fail again.
def may_retry(error):
    _, wait = details_of(error)
    codes = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)
    return error.code() in codes and wait is not None


class Outputs:
    """Collects the outputs that come back. What was to be discarded or only checksummed is announced
    too, but has no bytes and is no array here."""

    def __init__(self, request):
        self._left_out = {o.name for o in request.outputs if o.sink != kernels_pb2.OutputRequest.RETURN}
        self._specs, self._memory, self._filled = {}, {}, {}

    def announce(self, output):
        if output.name in self._left_out:
            return
        self._specs[output.name] = output.spec
        self._memory[output.name] = np.empty(_size_of(output.spec), np.uint8)
        self._filled[output.name] = 0

    def take(self, name, offset, data):
        if name in self._left_out and not data:
            return
        # In order and without gaps, so what is filled needs one number.
        filled, room = self._filled.get(name), self._memory.get(name, b"")
        if filled != offset or len(data) > len(room) - offset:
            raise ValueError(f"output '{name}': {len(data)} bytes at {offset} do not fit")
        room[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
        self._filled[name] += len(data)

    def arrays(self):
        """Only whole arrays: memory that was never filled holds anything."""
        for name, memory in self._memory.items():
            if self._filled[name] != memory.size:
                raise ValueError(
                    f"output '{name}': {self._filled[name]} of {memory.size} bytes have come"
                )
        return {name: array_of(self._specs[name], data) for name, data in self._memory.items()}


class Client:
    """One connection for small calls, one for streams of bulk bytes, so that these do not hold those
    up. Safe to use from several threads."""

    def __init__(self, address, token=None, attempts=5):
        options = [("grpc.max_receive_message_length", 8 << 20)]
        # Channels of equal options would share one connection.
        self._small = grpc.insecure_channel(address, [*options, ("gridclock.use", "small")])
        self._bulk = grpc.insecure_channel(address, [*options, ("gridclock.use", "bulk")])
        self._kernels = kernels_pb2_grpc.KernelServiceStub(self._small)
        self._streams = kernels_pb2_grpc.KernelServiceStub(self._bulk)
        self._metadata = [("authorization", f"Bearer {token}")] if token else []
        self._attempts = attempts

    def close(self):
        self._small.close()
        self._bulk.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def kernels(self):
        request = kernels_pb2.ListKernelsRequest()
        return self._retrying(lambda: self._kernels.ListKernels(request, **self._call(10))).kernels

    def run(self, kernel, inputs, attributes=None, dtypes=None, timeout=60, **fields):
        """One round trip, for tensors of at most 1 MiB in all. Returns (arrays by name, summary)."""
        request = self._request(kernel, attributes, fields)
        for name, array in inputs.items():
            spec = spec_of(array, (dtypes or {}).get(name))
            given = request.inputs.add(name=name, spec=spec, data=bytes(bytes_of(array)))
            given.inline.SetInParent()
        # With an id a second try cannot run twice: the server knows that it has answered.
        request.request_id = request.request_id or str(uuid.uuid4())
        answer = self._retrying(lambda: self._kernels.Run(request, **self._call(timeout)))
        received = Outputs(request)
        for output in answer.outputs:
            received.announce(output)
            received.take(output.name, 0, output.data)
        return received.arrays(), answer.summary

    def stream_run(
        self, kernel, inputs, attributes=None, dtypes=None, on_samples=None, timeout=600, **fields
    ):
        """For tensors of any size. `on_samples(samples)` is called while the server measures. Is not
        retried: its bytes are on their way. Returns (arrays by name, summary)."""
        header = self._request(kernel, attributes, fields)
        for name, array in inputs.items():
            spec = spec_of(array, (dtypes or {}).get(name))
            header.inputs.add(name=name, spec=spec).stream.SetInParent()
        call = self._streams.StreamRun(_messages(header, inputs), **self._call(timeout))
        received, summary = Outputs(header), None
        for message in call:
            kind = message.WhichOneof("message")
            if kind == "samples" and on_samples:
                on_samples(message.samples)
            elif kind == "output":
                received.announce(message.output)
            elif kind == "chunk":
                received.take(message.chunk.name, message.chunk.offset, message.chunk.data)
            elif kind == "summary":
                summary = message.summary
        return received.arrays(), summary

    def _request(self, kernel, attributes, fields):
        request = kernels_pb2.RunRequest(kernel=kernel, **fields)
        for name, value in (attributes or {}).items():
            set_attribute(request.attributes[name], value)
        return request

    def _call(self, timeout):
        return {"timeout": timeout, "metadata": self._metadata, "wait_for_ready": True}

    def _retrying(self, call):
        for attempt in range(1, self._attempts + 1):
            try:
                return call()
            except grpc.RpcError as error:
                if attempt == self._attempts or not may_retry(error):
                    raise
                # Apart from each other, or all clients that were refused together come back together.
                _, wait = details_of(error)
                time.sleep(wait * random.uniform(1, 1.5))
        raise AssertionError("unreachable")


def set_attribute(attribute, value):
    if isinstance(value, bool):
        attribute.flag = value
    elif isinstance(value, int):
        attribute.i64 = value
    elif isinstance(value, float):
        attribute.f64 = value
    else:
        attribute.word = value


def _size_of(spec):
    return int(np.prod(spec.dims, dtype=np.int64)) * NUMPY[spec.dtype].itemsize


def _messages(header, inputs):
    yield kernels_pb2.StreamRunRequest(header=header)
    for name, array in inputs.items():
        data = bytes_of(array)
        for offset in range(0, len(data), CHUNK):
            part = bytes(data[offset : offset + CHUNK])
            chunk = kernels_pb2.Chunk(name=name, offset=offset, data=part)
            yield kernels_pb2.StreamRunRequest(chunk=chunk)
