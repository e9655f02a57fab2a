"""CPU kernels beside the best copy and read loops of this machine and beside OpenBLAS; the program
takes its own interleaved rounds."""
import json
import subprocess

from speed.line import Line


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
