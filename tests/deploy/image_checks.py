"""What the images are, and what they do in a container that may do little."""
import os
import pathlib
import subprocess
import time

from alerts_live import free_port
from containers import DEBIAN, HARDENED, REPO
from load import children, kill_worker

CUDA = pathlib.Path("/usr/local/cuda")
# Needs the compiler, its builtins, headers of the toolkit, libcu++ and CUB, and the assembler.
SOURCE = """#include <cuda_fp16.h>
#include <cooperative_groups.h>
#include <cub/block/block_reduce.cuh>
__global__ void sums(const float* x, float* y) {
  using Reduce = cub::BlockReduce<float, 128>;
  __shared__ typename Reduce::TempStorage storage;
  const float sum = Reduce(storage).Sum(x[blockIdx.x * 128 + threadIdx.x]);
  cooperative_groups::this_thread_block().sync();
  if (threadIdx.x == 0) y[blockIdx.x] = __half2float(__float2half(sum));
}
"""


def roots(folder, binaries):
    """(stage, folder) of root file systems made of programs that are built already."""
    made = folder / "programs"
    subprocess.run([REPO / "deploy/docker/rootfs.sh", binaries, made], check=True, stdout=subprocess.DEVNULL)
    return [("cpu-built", made), ("gpu-built", made)]


def cuda_roots(folder):
    """The same of the toolkit's files; none without one. They are large, so only the images' own check takes them."""
    if not CUDA.exists():
        return []
    take = REPO / "deploy/docker/cuda.sh"
    subprocess.run([take, CUDA, folder / "cuda", "nvrtc", "ptxas", "nvdisasm", "cupti", "headers"], check=True)
    subprocess.run([take, CUDA, folder / "cublaslt", "cublaslt"], check=True)
    return [("cuda-taken", folder / "cuda"), ("cublaslt-taken", folder / "cublaslt")]


def has_gpu_code(binaries):
    """Whether the CUDA compiler took part: its code is in a section of its own."""
    said = subprocess.run(["readelf", "--sections", "--wide", pathlib.Path(binaries) / "gridclock-worker-v3"],
                          capture_output=True, text=True, check=True).stdout
    return ".nv_fatbin" in said


def build(engine, target, contexts, image, arguments=(), **options):
    arguments = [("BUILD_IMAGE", DEBIAN), ("CUDA_IMAGE", DEBIAN), *arguments]
    return engine.build(target, image, contexts=contexts, arguments=arguments, **options)


def build_whole(engine, target, image, ccache, architectures):
    """By every stage, compilers and all; this machine's toolkit is in the place of NVIDIA's image."""
    toolkit = CUDA.resolve()
    arguments = [("JOBS", os.environ.get("GRIDCLOCK_JOBS", "")), ("CUDA_FOLDER", f"/{toolkit.name}"),
                 ("CUDA_ARCHITECTURES", architectures)]
    volumes = []
    if ccache:
        arguments.append(("CCACHE_DIR", "/ccache"))
        volumes.append((ccache, "/ccache"))
    build(engine, target, [("cuda", toolkit.parent)], image, arguments=arguments, volumes=volumes)


def contents(engine, image):
    """What should not be in an image: shells, package managers, files that make their user another."""
    wrong = []
    for member in engine.files(image):
        if member.isdir():
            continue
        name = pathlib.PurePosixPath(member.name)
        if name.name in ("sh", "bash", "dash", "busybox", "apt", "apt-get", "dpkg", "perl", "python3"):
            wrong.append(member.name)
        if member.mode & 0o6000:
            wrong.append(f"{member.name} is setuid")
    user = engine.inspect(image)["Config"]["User"]
    if user in ("", "0", "root") or user.startswith("0:"):
        wrong.append(f"the user is '{user}'")
    return wrong


def compile_in(engine, image, folder):
    """Seconds that a compile took in a container without network, capabilities and a writable root."""
    source = folder / "sums.cu"
    source.write_text(SOURCE)
    # The mount is for the client's file; the server takes its bytes from the client.
    options = (*HARDENED, f"--volume={source}:/sums.cu:ro")
    with engine.container(image, "--devices=cpu", "--allow-submit", "--limit-compile-seconds=60", options=options) as name:
        engine.execute(name, "/usr/bin/gridclock", "wait", "--timeout", "30")
        start = time.monotonic()
        for arch in ("sm_80", "sm_90a"):
            said = engine.execute(name, "/usr/bin/gridclock", "compile", "/sums.cu", "--arch", arch).stdout
            if "sums" not in said or arch not in said:
                raise RuntimeError(f"the compile for {arch} says no kernel: {said}")
        return time.monotonic() - start


def client(binaries, address, *words, **options):
    return subprocess.run([str(pathlib.Path(binaries) / "gridclock"), "--server", address, *words],
                          capture_output=True, text=True, check=False, timeout=120, **options)


class Hardened:
    """One container on the host's network, and what is asked of it."""

    def __init__(self, engine, image, binaries):
        self.engine, self.image, self.binaries = engine, image, binaries

    def __enter__(self):
        self.address = f"127.0.0.1:{free_port()}"
        self._container = self.engine.container(
            self.image, f"--listen={self.address}", "--metrics-listen=127.0.0.1:0", network="host",
            options=(*HARDENED, "--memory=768m", f"--env=GRIDCLOCK_SERVER={self.address}"))
        self.name = self._container.__enter__()
        self.call("wait", "--timeout", "30")
        return self

    def __exit__(self, *error):
        self._container.__exit__(*error)

    def call(self, *words):
        return client(self.binaries, self.address, *words)

    def pid(self):
        return self.engine.inspect(self.name)["State"]["Pid"]

    def answers(self):
        return self.call("run", "square", "x=arange:f32[6]", "--verify").returncode == 0

    def is_healthy(self):
        return self.engine.podman("healthcheck", "run", self.name, check=False).returncode == 0

    def writes_to_root(self):
        # As root, whom only the mount can refuse.
        ran = self.engine.podman("exec", "--user=0", self.name, "/usr/bin/gridclock", "run", "square", "x=ones:f32[4]",
                                 "-o", "y=/usr/y.npy", check=False)
        return ran.returncode == 0 or "Read-only file system" not in ran.stderr

    def survives_a_killed_worker(self):
        before = self.pid()
        kill_worker(before)
        self.call("wait", "--timeout", "30")
        return self.answers() and self.pid() == before and len(children(before)) > 0

    def refuses_what_does_not_fit(self):
        """768 MiB hold no tensor of 800 MB: that call hears so, and the server goes on."""
        ran = self.call("--json", "run", "square", "x=zeros:f32[200000000]")
        return "RESOURCE_EXHAUSTED" in ran.stdout + ran.stderr and self.answers()

    def stops_after_the_call(self):
        """Exit codes of a call that was running at SIGTERM and of the server, and the seconds between."""
        words = ["bench", "square", "--shape", "N=1K", "--budget", "3s", "--samples", "1000000", "--interval", "0.000001"]
        running = subprocess.Popen([str(pathlib.Path(self.binaries) / "gridclock"), "--server", self.address, *words],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1)  # It is under way by then, for two seconds more.
        self.engine.podman("kill", "--signal=TERM", self.name)
        call = running.wait(30)
        ended = time.monotonic()
        code = int(self.engine.podman("wait", self.name).stdout)
        return call, code, time.monotonic() - ended
