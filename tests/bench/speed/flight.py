#!/usr/bin/env python3
"""Arrow Flight as a peer: a server that keeps what it is sent and gives it back, and a client that
moves BYTES there and back in batches of 1 MiB.

usage: flight.py serve | flight.py move ADDRESS BYTES
"""
import json
import sys
import threading
import time

import numpy
import pyarrow
import pyarrow.flight as flight

BATCH = 1 << 20


class Keeper(flight.FlightServerBase):
    def __init__(self):
        super().__init__("grpc://127.0.0.1:0")
        self.batches, self.schema = [], None

    def do_put(self, context, descriptor, reader, writer):
        self.schema = reader.schema
        self.batches = [chunk.data for chunk in reader]

    def do_get(self, context, ticket):
        return flight.RecordBatchStream(pyarrow.RecordBatchReader.from_batches(self.schema, self.batches))


def serve():
    server = Keeper()
    print(f"grpc://127.0.0.1:{server.port}", flush=True)
    threading.Thread(target=server.serve, daemon=True).start()
    sys.stdin.read()
    server.shutdown()


def there(client, array):
    writer, reader = client.do_put(flight.FlightDescriptor.for_path("x"), pyarrow.schema([("x", pyarrow.uint8())]))
    for start in range(0, len(array), BATCH):
        writer.write_batch(pyarrow.record_batch([array[start:start + BATCH]], names=["x"]))
    writer.done_writing()
    while reader.read() is not None:
        pass
    writer.close()


def back(client, target):
    at = 0
    for chunk in client.do_get(flight.Ticket(b"x")):
        values = chunk.data.column(0).to_numpy()
        target[at:at + len(values)] = values
        at += len(values)
    return at


def move(address, count):
    client = flight.connect(address)
    array = pyarrow.array(numpy.arange(count, dtype=numpy.uint8))
    target = numpy.ones(count, dtype=numpy.uint8)
    there(client, array[:16 * BATCH])
    start = time.monotonic()
    there(client, array)
    came = back(client, target)
    seconds = time.monotonic() - start
    if came != count or not numpy.array_equal(target, array.to_numpy()):
        sys.exit("other bytes came back")
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    serve() if sys.argv[1] == "serve" else move(sys.argv[2], int(sys.argv[3]))
