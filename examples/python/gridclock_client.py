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

# numpy has no bf16 and no f8: view their bytes as uint16 and uint8.
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


def spec_of(array):
    return types_pb2.TensorSpec(dtype=DTYPES[array.dtype.name], dims=array.shape)


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

    def run(self, kernel, inputs, attributes=None, timeout=60, **fields):
        """One round trip, for tensors of at most 1 MiB in all. Returns (arrays by name, summary)."""
        request = self._request(kernel, attributes, fields)
        for name, array in inputs.items():
            given = request.inputs.add(name=name, spec=spec_of(array), data=bytes(bytes_of(array)))
            given.inline.SetInParent()
        # With an id a second try cannot run twice: the server knows that it has answered.
        request.request_id = request.request_id or str(uuid.uuid4())
        answer = self._retrying(lambda: self._kernels.Run(request, **self._call(timeout)))
        return {o.name: array_of(o.spec, o.data) for o in answer.outputs}, answer.summary

    def stream_run(self, kernel, inputs, attributes=None, on_samples=None, timeout=600, **fields):
        """For tensors of any size. `on_samples(samples)` is called while the server measures. Is not
        retried: its bytes are on their way. Returns (arrays by name, summary)."""
        header = self._request(kernel, attributes, fields)
        for name, array in inputs.items():
            header.inputs.add(name=name, spec=spec_of(array)).stream.SetInParent()
        call = self._streams.StreamRun(_messages(header, inputs), **self._call(timeout))
        specs, received, summary = {}, {}, None
        for message in call:
            kind = message.WhichOneof("message")
            if kind == "samples" and on_samples:
                on_samples(message.samples)
            elif kind == "output":
                output = message.output
                specs[output.name] = output.spec
                received[output.name] = np.empty(_size_of(output.spec), np.uint8)
            elif kind == "chunk":
                chunk = message.chunk
                data = np.frombuffer(chunk.data, np.uint8)
                received[chunk.name][chunk.offset : chunk.offset + data.size] = data
            elif kind == "summary":
                summary = message.summary
        return {name: array_of(specs[name], data) for name, data in received.items()}, summary

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
