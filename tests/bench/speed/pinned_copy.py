"""What the bus alone moves: a tensor to the first GPU and back between pinned memory and the GPU's, by
the driver itself. Prints JSON. usage: pinned_copy.py BYTES [REPETITIONS]"""
import ctypes
import json
import statistics
import sys
import time


class Driver:
    """The few calls of libcuda that this takes."""

    def __init__(self):
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        code = getattr(self._cuda, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name}: CUDA error {code}")

    def pinned(self, size):
        memory = ctypes.c_void_p()
        self.call("cuMemAllocHost_v2", ctypes.byref(memory), ctypes.c_size_t(size))
        return memory

    def on_gpu(self, size):
        memory = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))
        return memory


def fill(memory, size):
    block = bytes(i * 37 % 251 for i in range(1 << 20))
    for at in range(0, size, len(block)):
        ctypes.memmove(memory.value + at, block, min(len(block), size - at))


def main():
    size, repetitions = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    driver = Driver()
    sent, got, gpu = driver.pinned(size), driver.pinned(size), driver.on_gpu(size)
    fill(sent, size)
    times = []
    for _ in range(repetitions + 1):  # The first is for warming up.
        ctypes.memset(got, 0, size)
        start = time.perf_counter()
        driver.call("cuMemcpyHtoD_v2", gpu, sent, ctypes.c_size_t(size))
        driver.call("cuMemcpyDtoH_v2", got, gpu, ctypes.c_size_t(size))
        times.append(time.perf_counter() - start)
        if ctypes.CDLL(None).memcmp(sent, got, ctypes.c_size_t(size)) != 0:
            raise RuntimeError("other bytes came back")
    print(json.dumps({"bytes": size, "seconds": statistics.median(times[1:])}))


if __name__ == "__main__":
    main()
