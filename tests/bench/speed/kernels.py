"""CPU kernels beside the best copy and read loops of this machine and beside OpenBLAS; the program
takes its own interleaved rounds."""
import json
import subprocess

from speed.line import Line

# Of bytes per second, of time, beside OpenBLAS, as kernels_bench has them; where there is one CPU it has no last ones.
RATES = ("square.f32.256MiB", "sum.f32.256MiB.flat", "sum.f32.256MiB.axis0", "sum.f32.256MiB.last_axis",
         "vector_add.f32.256MiB")
TIMES = ("gelu.tanh.f32.256MiB", "gelu.none.f32.256MiB", "softmax.f32.65536x1024")
PRODUCTS = tuple(f"matmul.f32.{n}.{threads}" for n in (512, 1024, 2048) for threads in ("one_thread", "all_threads"))


def goals():
    return [*(Line(f"kernel.{name}", "of the best copy's bytes/s", ">=", 0.8) for name in RATES),
            *(Line(f"kernel.{name}", "times the best copy", "<=", 1.5) for name in TIMES),
            *(Line(f"kernel.{name}", "times OpenBLAS", "<=", 1.2) for name in PRODUCTS)]


def measure(config):
    ran = subprocess.run([str(config.binaries / "kernels_bench"), "--rounds", str(config.rounds)],
                         capture_output=True, text=True, timeout=1800)
    if ran.returncode != 0:
        raise RuntimeError(f"kernels_bench ended with {ran.returncode}: {ran.stderr.strip()}")
    if not ran.stdout.strip():
        raise RuntimeError(f"kernels_bench ended well and told nothing: {ran.stderr.strip()}")
    lines = []
    for told in map(json.loads, ran.stdout.splitlines()):
        lines.append(Line(told["name"], told["unit"], ">=" if told["higher_is_better"] else "<=", told["goal"],
                          samples=told["samples"], informative=told["informative"]))
    return lines
