"""What the images are, and what they do in a container that may do little."""
import os
import pathlib
import re
import subprocess
import time

from containers import DEBIAN, DOCKERFILE, HARDENED, REPO, free_port
from load import children, kill_worker
from prometheus import fetch, wait_until

CUDA = pathlib.Path("/usr/local/cuda")
# As the Dockerfile says.
GPU_LEVELS = re.search(r'^ARG LEVELS="(.*)"$', DOCKERFILE.read_text(), re.M)[1].split()
MEMORY = 768  # MiB that a hardened container has.
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
    made = []
    for stage, levels in (("cpu-built", ()), ("gpu-built", GPU_LEVELS)):
        root = folder / stage
        subprocess.run([REPO / "deploy/docker/rootfs.sh", binaries, root, *levels], check=True, stdout=subprocess.DEVNULL)
        made.append((stage, root))
    return made


def cuda_roots(folder):
    """The same of the toolkit's files; none without one. They are large, so only the images' own check takes them."""
    if not CUDA.exists():
        return []
    take = REPO / "deploy/docker/cuda.sh"
    subprocess.run([take, CUDA, folder / "cuda", "nvrtc", "ptxas", "nvdisasm", "cupti", "headers"], check=True)
    subprocess.run([take, CUDA, folder / "cublaslt", "cublaslt"], check=True)
    return [("cuda-taken", folder / "cuda"), ("cublaslt-taken", folder / "cublaslt")]


def gpu_code(binaries):
    """For which GPUs a build has code, in words: what the CUDA compiler made is in a section of its own."""
    said = subprocess.run(["readelf", "--sections", "--wide", pathlib.Path(binaries) / "gridclock-worker-v3"],
                          capture_output=True, text=True, check=True).stdout
    return "code for some GPUs" if ".nv_fatbin" in said else "no code for GPUs"


def build(engine, target, contexts, image, arguments=(), **options):
    arguments = [("BUILD_IMAGE", DEBIAN), ("CUDA_IMAGE", DEBIAN), *arguments]
    return engine.build(target, image, contexts=contexts, arguments=arguments, **options)


def build_whole(engine, target, image, ccache, architectures):
    """By every stage, compilers and all; this machine's toolkit is in the place of NVIDIA's image."""
    toolkit = CUDA.resolve()
    # Without a folder of its own it would take the builder's cache, which outlives this test and its images.
    objects = "/ccache" if ccache else "/tmp/ccache"
    arguments = [("JOBS", os.environ.get("GRIDCLOCK_JOBS", "")), ("CUDA_FOLDER", f"/{toolkit.name}"),
                 ("CUDA_ARCHITECTURES", architectures), ("CCACHE_DIR", objects)]
    volumes = []
    if ccache:
        ccache.mkdir(parents=True, exist_ok=True)
        volumes.append((ccache, objects))
    build(engine, target, [("cuda", toolkit.parent)], image, arguments=arguments, volumes=volumes)


def user(engine, image):
    return engine.inspect(image)["Config"]["User"]


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
    who = user(engine, image)
    if who in ("", "0", "root") or who.startswith("0:"):
        wrong.append(f"the user is '{who}'")
    return wrong


def libraries(engine, image, prefix):
    """Paths of the files in an image whose name begins so."""
    return [member.name for member in engine.files(image)
            if member.isfile() and pathlib.PurePosixPath(member.name).name.startswith(prefix)]


def compile_in(engine, image, folder):
    """What compiles say in a container without network, capabilities and a writable root, and whether they are right."""
    source = folder / "sums.cu"
    source.write_text(SOURCE)
    # The mount is for the client's file; the server takes its bytes from the client.
    options = (*HARDENED, f"--volume={source}:/sums.cu:ro")
    with engine.container(image, "--devices=cpu", "--allow-submit", "--limit-compile-seconds=60", options=options) as name:
        engine.execute(name, "/usr/bin/gridclock", "wait", "--timeout", "30")
        start = time.monotonic()
        for arch in ("sm_80", "sm_90a"):
            ran = engine.execute(name, "/usr/bin/gridclock", "compile", "/sums.cu", "--arch", arch, check=False)
            if ran.returncode != 0 or "sums" not in ran.stdout or arch not in ran.stdout:
                return f"{arch}: exit {ran.returncode}, {last_line(ran)}", False
        return f"two targets in {time.monotonic() - start:.1f} s", True


def client(binaries, address, *words, **options):
    return subprocess.run([str(pathlib.Path(binaries) / "gridclock"), "--server", address, *words],
                          capture_output=True, text=True, check=False, timeout=120, **options)


def laid_upon(engine, contexts, base):
    """RUNTIME_IMAGE: what a call answers there, and a program of the base's own."""
    image = "localhost/gridclock-test:laid-upon"
    build(engine, "cpu-runtime", contexts, image, arguments=[("RUNTIME_IMAGE", base)])
    with engine.container(image, "--devices=cpu") as name:
        ran = first_call(engine, name)
        own = engine.execute(name, "/usr/bin/sh", "-c", ". /etc/os-release; echo $ID $VERSION_ID", check=False)
        return f"{last_line(ran)}; sh there: {last_line(own)}", ran.returncode == 0 and own.returncode == 0


def first_call(engine, name):
    engine.execute(name, "/usr/bin/gridclock", "wait", "--timeout", "30")
    return engine.execute(name, "/usr/bin/gridclock", "run", "square", "x=arange:f32[6]", "--verify", check=False)


def runs(engine, image):
    """What the first call of a hardened container answers, and whether it does."""
    with engine.container(image, "--devices=cpu") as name:
        ran = first_call(engine, name)
        return last_line(ran), ran.returncode == 0


def last_line(ran):
    return ((ran.stdout + ran.stderr).strip().splitlines() or [f"exit {ran.returncode}"])[-1]


class Hardened:
    """One container on the host's network, and what is asked of it."""

    def __init__(self, engine, image, binaries):
        self.engine, self.image, self.binaries = engine, image, binaries

    def __enter__(self):
        self.address, self.metrics = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self._container = self.engine.container(
            self.image, f"--listen={self.address}", f"--metrics-listen={self.metrics}", "--allow-admin", network="host",
            options=(*HARDENED, f"--memory={MEMORY}m", f"--env=GRIDCLOCK_SERVER={self.address}"))
        self.name = self._container.__enter__()
        self.call("wait", "--timeout", "30")
        return self

    def __exit__(self, *error):
        self._container.__exit__(*error)

    def call(self, *words):
        return client(self.binaries, self.address, *words)

    def pid(self):
        return self.engine.inspect(self.name)["State"]["Pid"]

    # Each returns what came, in a line, and whether that is right.
    def answers(self):
        ran = self.call("run", "square", "x=arange:f32[6]", "--verify")
        return last_line(ran), ran.returncode == 0

    def is_healthy(self):
        ran = self.engine.podman("healthcheck", "run", self.name, check=False)
        status = self.engine.inspect(self.name)["State"]["Health"]["Status"]
        return f"exit {ran.returncode}, {status}", ran.returncode == 0 and status == "healthy"

    def lives_without_devices(self):
        """The last device drained: nobody is to be sent there, and nobody is to restart it."""
        self.call("admin", "drain", "cpu", "--last")
        ready = self.call("wait", "--timeout", "1").returncode
        said, healthy = self.is_healthy()
        self.call("admin", "undrain", "cpu")
        return f"wait: exit {ready}; health check: {said}", ready == 1 and healthy and self.answers()[1]

    def cannot_write_to_root(self):
        # As root, whom only the mount can refuse.
        ran = self.engine.podman("exec", "--user=0", self.name, "/usr/bin/gridclock", "run", "square", "x=ones:f32[4]",
                                 "-o", "y=/usr/y.npy", check=False)
        return last_line(ran), ran.returncode != 0 and "Read-only file system" in ran.stderr

    def survives_a_killed_worker(self):
        before = self.pid()
        killed = kill_worker(before)
        self.call("wait", "--timeout", "30")
        now = [pid for pid, name in children(before).items() if name.startswith("gridclock-worke")]
        answered = self.answers()[1]
        return (f"server {before}, then {self.pid()}; worker {killed}, then {now}",
                answered and self.pid() == before and bool(now) and killed not in now)

    def answers_what_just_fits(self):
        """Nine tenths of what one client may have: a quarter of the container's memory."""
        page = fetch(self.metrics, "/metrics")[1]
        most = int(float(re.search(r'^gridclock_limit\{name="client_arena_bytes"\} (\S+)', page, re.M)[1]))
        ran = self.call("--json", "run", "square", f"x=ones:f32[{int(0.45 * most) // 4}]")
        return f"exit {ran.returncode} with {most >> 20} MiB for a client", ran.returncode == 0 and most < MEMORY << 20

    def refuses_what_does_not_fit(self):
        """768 MiB hold no tensor of 800 MB: that call hears so, and the server goes on."""
        ran = self.call("--json", "run", "square", "x=zeros:f32[200000000]")
        code = re.search(r"RESOURCE_EXHAUSTED", ran.stdout + ran.stderr)
        said, answered = self.answers()
        return f"{code[0] if code else last_line(ran)}, then {said}", bool(code) and answered

    def stops_after_the_call(self):
        """Exit codes of a call that was running at SIGTERM and of the server, and the seconds between."""
        words = ["run", "spin", "ns=3000000000"]
        running = subprocess.Popen([str(pathlib.Path(self.binaries) / "gridclock"), "--server", self.address, *words],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: '\ngridclock_jobs_running{device="cpu"} 1\n' in fetch(self.metrics, "/metrics")[1], 20, "the call runs")
        self.engine.podman("kill", "--signal=TERM", self.name)
        call = running.wait(30)
        ended = time.monotonic()
        code = int(self.engine.podman("wait", self.name).stdout)
        return call, code, time.monotonic() - ended
