#!/usr/bin/env python3
"""Holds every #include against the table of rooms (ARCHITECTURE.md): who may include whom.

usage: check_layers.py [ROOT]    prints file:line for each include that the table does not allow
"""
import pathlib
import re
import subprocess
import sys

# Third parties by the way they are included. What is in no group may be included by nobody.
GROUPS = {
    "abseil": r"absl/",
    "spdlog": r"spdlog/",
    "protobuf": r"google/protobuf/",
    "grpc": r"grpcpp/|grpc/|grpc\+\+/",
    "civetweb": r"civetweb\.h",
    "json": r"nlohmann/",
    "cli11": r"CLI/",
    "simd": r"hwy/|Eigen/",
    "tbb": r"tbb/|oneapi/tbb",
    "xxhash": r"xxhash\.h",
    "zip": r"zip\.h|zlib\.h",
    "openssl": r"openssl/",
    "openblas": r"cblas\.h",
    "seccomp": r"seccomp\.h",
    "cuda": r"cuda/|cub/|thrust/|(cuda_pipeline|cuda_runtime|cuda_runtime_api|cuda_fp16|cuda_fp8|cuda_bf16|cooperative_groups|"
            r"cublasLt|cuda|cupti)\.h",
    "gtest": r"gtest/|gmock/",
    "benchmark": r"benchmark/",
    "posix": r"(sys|linux|netinet|arpa)/|(cpuid|cxxabi|dirent|dlfcn|elf|fcntl|fts|glob|ifaddrs|immintrin|link|"
             r"malloc|netdb|poll|pthread|pwd|sched|semaphore|signal|spawn|stdlib|string|strings|syscall|"
             r"termios|time|unistd|x86intrin)\.h",
}

MESSAGES = "messages"  # Generated from the .proto files.
STUBS = "stubs"        # Generated services.

BASE = ["base", "abseil"]
TYPES = BASE + ["proto/types"]
CODEC = TYPES + ["proto/codec", MESSAGES, "protobuf"]
KERNEL = TYPES + ["kernels/api"]
WORKER = CODEC + ["kernels/api", "kernels/catalog", "kernels/device", "kernels/timing",
                  "kernels/verify", "kernels/worker", "posix", "xxhash"]
SERVER = CODEC + [STUBS, "server/core", "server/fleet", "server/metrics", "server/rpc", "posix", "grpc"]
CLIENT = CODEC + [STUBS, "client/cpp", "grpc", "posix"]

# Room or file -> what it may include. The longest name that fits decides.
TABLE = {
    "base": BASE + ["spdlog", "posix"],
    "proto/types": TYPES,
    "proto/codec": CODEC,
    "kernels/api": KERNEL,
    "kernels/api/bf16_units.cc": KERNEL + ["posix"],
    "kernels/api/cuda_error.h": KERNEL + ["cuda"],  # What its errors mean.
    "kernels/catalog": KERNEL + ["kernels/api/cuda_error.h", "kernels/catalog", "simd", "tbb", "posix", "cuda"],
    "kernels/device": KERNEL + ["kernels/device", "simd", "tbb", "posix"],
    "kernels/device/cuda": KERNEL + ["kernels/api/cuda_error.h", "kernels/device", "kernels/device/cuda",
                                     "kernels/device/cuda/cuda_device.h", "posix", "cuda"],
    "kernels/device/cuda/cuda_device.h": KERNEL + ["kernels/device"],  # Shows nothing of CUDA.
    "kernels/timing": KERNEL + ["kernels/device", "kernels/timing"],
    "kernels/verify": KERNEL + ["kernels/device", "kernels/verify"],
    "kernels/worker": WORKER,
    "kernels/worker/guest_sandbox.cc": WORKER + ["kernels/sandbox"],
    "kernels/worker/process.cc": WORKER + ["kernels/sandbox"],
    # The one place that knows which kinds of device there are.
    "kernels/worker/device_factory.cc": WORKER + ["kernels/device/cuda/cuda_device.h"],
    "kernels/worker/worker.cc": WORKER + ["cli11"],  # The main of worker and test worker.
    "kernels/sandbox": BASE + ["kernels/sandbox", "posix", "seccomp"],
    "kernels/compiler": CODEC + ["kernels/compiler", "kernels/sandbox", "posix"],
    "kernels/compiler/main.cc": CODEC + ["kernels/compiler", "kernels/sandbox", "posix", "cli11"],
    "server/core": TYPES + ["server/core"],
    "server/fleet": CODEC + ["server/core", "server/fleet", "posix", "xxhash"],
    "server/metrics": TYPES + ["server/core", "server/metrics", MESSAGES, "protobuf", "civetweb", "json", "posix"],
    "server/rpc": CODEC + [STUBS, "server/core", "server/rpc", "grpc", "openssl", "posix"],
    "server/children.cc": SERVER + ["server/children.h", "server/options.h"],
    "server/children.h": SERVER + ["server/options.h"],
    "server/heap.cc": BASE + ["server/core", "server/heap.h", "posix"],
    "server/heap.h": BASE + ["server/core"],
    "server/main.cc": SERVER + ["server/children.h", "server/heap.h", "server/options.h", "server/ready_file.h",
                                "server/reload_files.h", "cli11", "spdlog"],
    "server/options.cc": SERVER + ["server/options.h", "cli11"],
    "server/options.h": SERVER,
    "server/ready_file.cc": BASE + ["server/ready_file.h", "posix"],
    "server/ready_file.h": BASE,
    "server/reload_files.cc": SERVER + ["server/options.h", "server/reload_files.h"],
    "server/reload_files.h": SERVER + ["server/options.h"],
    "client/cpp": CLIENT + ["zip"],
    "client/cli": CLIENT + ["client/cli", "cli11", "json"],
    "examples": CLIENT,
    "tests": None,  # Tests look everywhere.
}

INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def room_of(path, names):
    """The longest name that is the path or a folder above it."""
    fits = [n for n in names if path == n or path.startswith(n + "/")]
    return max(fits, key=len, default=None)


def target_of(include, root):
    """The room or group that an included path belongs to."""
    if include.endswith(".grpc.pb.h"):
        return STUBS
    if include.endswith(".pb.h"):
        return "protobuf" if include.startswith("google/protobuf/") else MESSAGES
    for group, pattern in GROUPS.items():
        if re.match(pattern, include):
            return group
    if re.fullmatch(r"[a-z_0-9]+", include):
        return "std"
    if (root / include).is_file():
        folder = str(pathlib.PurePosixPath(include).parent)
        return room_of(include, [n for n in TABLE if not n.endswith(".cc")]) or folder
    return None


def problems_of(path, root):
    room = room_of(path, TABLE)
    if room is None:
        yield f"{path}:1: the file lies in no room of the table"
        return
    allowed = TABLE[room]
    if allowed is None:
        return
    for number, line in enumerate((root / path).read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        include = match.group(1) or match.group(2)
        target = target_of(include, root)
        if target is None:
            yield f"{path}:{number}: {include} is neither in the tree nor a known third party"
        elif target != "std" and target not in allowed:
            yield f"{path}:{number}: {room} may not include {include} ({target})"


def sources(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True, check=True).stdout.split()
    return [p for p in listed if re.search(r"\.(cc|cpp|h|cu|cuh|inc)$", p) and (root / p).exists()]


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    files = sources(root)
    problems = [problem for path in files for problem in problems_of(path, root)]
    print("\n".join(problems) if problems else f"layers: {len(files)} files include only what they may")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
