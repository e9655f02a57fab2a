"""How long a build takes, without the compiler cache."""
import os
import pathlib
import subprocess
import tempfile
import time

from speed.line import Line

PROGRAMS = ("gridclock", "gridclock-server", "gridclock-worker", "gridclock-compiler")
ROOT = pathlib.Path(__file__).resolve().parents[3]


def timed(*command):
    start = time.monotonic()
    subprocess.run([str(c) for c in command], cwd=ROOT, check=True, capture_output=True,
                   env={**os.environ, "CCACHE_DISABLE": "1"})
    return time.monotonic() - start


def goals():
    return [Line("build.clean", "all programs (client, server, worker, compiler) from nothing, two compilers at once, "
                 "without the CUDA compiler", "<=", 360, " s"),
            Line("build.kernel", "one kernel changed, the whole tree again", "<=", 15, " s")]


def measure(config):
    clean, kernel = goals()
    tests = Line("build.tests", "the tests and benchmarks after them", "<=", 0, " s", informative=True)
    with tempfile.TemporaryDirectory() as folder:
        seconds = timed("cmake", "--preset", "dev", "-B", folder, "-DGRIDCLOCK_CUDA=OFF")
        seconds += timed("cmake", "--build", folder, "-j", "2", "--target", *PROGRAMS)
        clean.add(seconds)
        tests.add(timed("cmake", "--build", folder, "-j", "2"))
        source = ROOT / "kernels/catalog/softmax.cu"
        for _ in range(3):
            os.utime(source)
            kernel.add(timed("cmake", "--build", folder, "-j", "2"))
    return [clean, tests, kernel]
