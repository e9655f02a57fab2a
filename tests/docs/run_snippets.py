#!/usr/bin/env python3
"""Runs the commands of README.md and docs/*.md as a reader would: block after block, page by page, in
an empty folder, against a server started for the page.

Every fenced block carries a language and what it needs: cpu, nvrtc (a CPU, and NVRTC of CUDA), gpu or
container. `sh cpu` and `python cpu` blocks are run and must succeed, and so must those of nvrtc where
NVRTC is; `text` shows output and must follow a command; other
languages are read by other tests. A block runs in a shell that has pasted what `./dev up` prints, and
knows nothing else of the programs; $REPO is this repository. Metrics that a page shows behind a block
are what that block printed, but for times and counts of samples. What a block exports, and the folder
it changes to, hold for the next block of its page.

With --kind gpu it is the blocks tagged gpu that run, against a server on the GPUs of this machine, with
the toolkit's programs on PATH; tags and links are the matter of the other kind.

--write puts what a block printed into the `text` block behind it, where there is one. It does so for the
pages that are named, as others show a part or say it in their own way.

usage: run_snippets.py [--kind cpu|gpu] [--write] [PAGE...]
"""
import argparse
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import pages

REPO = pathlib.Path(__file__).resolve().parents[2]

DOCKER = "it needs an engine and a clone; ./dev deploy-test --full builds and runs the same images"

# (page, first line of the block) -> why it is not run here, and what runs it.
ELSEWHERE = {
    ("README.md", "./dev demo"): "it would build and run all this again; ./dev bare-root runs it",
    ("README.md", "./dev test"): "it is what runs this test; ./dev bare-root runs it",
    ("docs/security.md", "gridclock-server --listen 0.0.0.0:8470 --tls-cert server.pem --tls-key server.key"):
        "it would listen to the network and never end; access_test starts such servers on loopback",
    ("CONTRIBUTING.md", "./dev test"): "it is what runs this test",
    ("docs/add-a-kernel.md", "build/dev/bin/gridclock-kernels-doc docs/kernels.md"):
        "it would write into the repository; add_a_kernel_server_test runs it on a copy",
    ("docs/gpus.md", "cmake --preset dev -DGRIDCLOCK_CUDA_ARCHITECTURES=80"):
        "it configures a clone, where a bundle has none; gpu_code_test reads what the option made",
    ("docs/triton.md", "python3 -m venv venv && venv/bin/pip install triton==3.9.0"):
        "it fetches Triton; submit_test runs the same where Triton is",
    ("docs/gpus.md", "./dev gpu-test"): "it is what runs this test",
    ("docs/deploy.md", "docker build -f deploy/docker/Dockerfile --target gpu-runtime -t gridclock:gpu ."): DOCKER,
    ("docs/deploy.md", "docker compose -p gridclock-trial -f deploy/compose/compose.yaml -f deploy/compose/compose.gpu.yaml up -d"): DOCKER,
    ("deploy/README.md", "docker build -f deploy/docker/Dockerfile --target gpu-runtime -t gridclock:gpu ."): DOCKER,
    ("docs/gpus.md", "./dev gpu-bundle build/gpu-bundle"): "it makes the folder that this test is run from",
}

TOOLKIT = ("ncu", "compute-sanitizer")

PROLOGUE = 'set -euo pipefail\n[ ! -e "$SNIPPET_STATE/env" ] || . "$SNIPPET_STATE/env"\n' \
           '[ ! -e "$SNIPPET_STATE/pwd" ] || cd "$(cat "$SNIPPET_STATE/pwd")"\n'
EPILOGUE = '\nexport -p > "$SNIPPET_STATE/env"\npwd > "$SNIPPET_STATE/pwd"\n'


def command_of(block):
    """The program and the text that run a block."""
    if block.language == "python":
        return ["bash", "-c", PROLOGUE + 'exec python3 -c "$0"', block.text]
    return ["bash", "-c", PROLOGUE + block.text + EPILOGUE]


def first_line(block):
    return next((line.strip() for line in block.text.splitlines() if line.strip()), "")


def metrics_in(text):
    """Series of /metrics with their values; of durations, which differ each time, the series alone."""
    lines = [line for line in text.splitlines() if line.startswith("gridclock_")]
    return [line.rpartition(" ")[0] if "_duration_" in line else line for line in lines]


def run_block(page, block, folder, shown=None):
    """What it printed, and None or what went wrong. `shown` is the block behind this one."""
    toolkit = toolkit_folders() if block.kind == "gpu" else ()
    ran = subprocess.run(command_of(block), cwd=folder / "here", env=environment_of(folder, toolkit), timeout=300,
                         stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if ran.returncode != 0:
        return ran.stdout, f"{page}:{block.line}: exit {ran.returncode}\n{block.text}---\n{ran.stdout}{ran.stderr}"
    if shown and shown.language == "text" and metrics_in(shown.text) not in ([], metrics_in(ran.stdout)):
        return ran.stdout, f"{page}:{shown.line}: these metrics are shown; printed were\n{ran.stdout}"
    return ran.stdout, None


def with_outputs(text, printed):
    """The page with other text in its blocks: `printed` has pairs of a block and its new text."""
    lines = text.splitlines(keepends=True)
    for block, output in sorted(printed, key=lambda pair: pair[0].line, reverse=True):
        lines[block.line:block.line + len(block.text.splitlines())] = [output]
    return "".join(lines)


def environment_of(folder, toolkit=()):
    """A stranger's: a PATH that has nothing of ours, and no variable of ours."""
    others = {name: value for name, value in os.environ.items()
              if not name.startswith(("GRIDCLOCK_", "PYTHON", "VIRTUAL_ENV"))}
    path = ["/usr/local/bin", "/usr/bin", "/bin", *toolkit]
    return {**others, "PATH": ":".join(path), "REPO": str(REPO), "SNIPPET_STATE": str(folder),
            "PIP_RETRIES": "10"}


def toolkit_folders():
    """Where the programs of the CUDA toolkit are, on the PATH of whoever runs this or where it installs itself."""
    found = (shutil.which(tool) or shutil.which(tool, path="/usr/local/cuda/bin") for tool in TOOLKIT)
    return sorted({str(pathlib.Path(program).parent) for program in found if program})


@contextlib.contextmanager
def up(binaries, folder, devices):
    """What `./dev up` prints, on ports of its own; its server ends with the page."""
    said = folder / "said"
    with open(said, "w") as out:
        process = subprocess.Popen([REPO / "tools/up.sh", binaries, "--folder", folder / "up", "--listen=127.0.0.1:0",
                                    "--metrics-listen=127.0.0.1:0", f"--devices={devices}", "--allow-submit", "--allow-admin"],
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    try:
        while "stop it: kill" not in said.read_text():
            if process.poll() is not None:
                raise RuntimeError(f"up.sh ended with {process.returncode}\n{said.read_text()}")
            time.sleep(0.05)
        yield exports_in(said.read_text())
    finally:
        process.terminate()
        if process.wait(60) != 0:
            raise RuntimeError(f"up.sh ended with {process.returncode}\n{said.read_text()}")


def exports_in(text):
    """The lines that a reader is told to paste."""
    return "".join(line + "\n" for line in text.splitlines() if line.startswith("export "))


def has_nvrtc(binaries):
    """Asked of the server itself: a compile that fails for want of a toolchain says so."""
    with tempfile.TemporaryDirectory() as name, up(binaries, pathlib.Path(name), "cpu") as exports:
        folder = pathlib.Path(name)
        (folder / "here").mkdir()
        (folder / "env").write_text(exports)
        (folder / "here/probe.cu").write_text("__global__ void probe() {}\n")
        ran = subprocess.run(["bash", "-c", PROLOGUE + "gridclock compile probe.cu"], cwd=folder / "here",
                             env=environment_of(folder), timeout=120, capture_output=True, text=True)
    missing = "NVRTC is missing" in ran.stderr
    print("no NVRTC here: blocks that need it are not run" if missing else "NVRTC is here", flush=True)
    return not missing


def unused_exceptions(page, blocks):
    """A block that is said to be run elsewhere, and is not there."""
    there = {first_line(block) for block in blocks}
    return [f"{page}: ELSEWHERE names a block that is not there: {line}"
            for other, line in ELSEWHERE if other == page and line not in there]


def runnable_in(page, blocks, *kinds):
    return [b for b in blocks if b.language in ("sh", "python") and b.kind in kinds and
            (page, first_line(b)) not in ELSEWHERE]


def run_page(page, blocks, binaries, kind, write=False):
    """What went wrong on one page, and how many blocks ran."""
    nvrtc = kind == "cpu" and runnable_in(page, blocks, "nvrtc") and has_nvrtc(binaries)
    runnable = runnable_in(page, blocks, kind, *(["nvrtc"] if nvrtc else []))
    if not runnable:
        return [], 0
    devices = {"cpu": "cpu", "gpu": "cuda"}[kind]
    with tempfile.TemporaryDirectory() as name, up(binaries, pathlib.Path(name), devices) as exports:
        folder = pathlib.Path(name)
        (folder / "here").mkdir()
        (folder / "env").write_text(exports)
        printed = []
        for count, block in enumerate(runnable, 1):
            shown = next((b for b in blocks if b.line > block.line), None)
            output, problem = run_block(page, block, folder, shown)
            if problem:
                return [problem], count
            if shown and shown.language == "text":
                printed.append((shown, output))
    if write:
        (REPO / page).write_text(with_outputs((REPO / page).read_text(), printed))
    return [], len(runnable)


def check_page(page, binaries, kind, write):
    text = (REPO / page).read_text()
    blocks = pages.blocks_of(text)
    if kind != "cpu":
        return run_page(page, blocks, binaries, kind, write)
    problems = [f"{page}:{line}: {what}" for line, what in (*pages.untagged(blocks), *pages.orphans(blocks))]
    problems += unused_exceptions(page, blocks)
    problems += [f"{page}: the link {target} leads nowhere" for target in pages.dead_links(REPO / page, text)]
    if problems:
        return problems, 0
    return run_page(page, blocks, binaries, kind, write)


def all_pages():
    top = [name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "ARCHITECTURE.md") if (REPO / name).exists()]
    return top + sorted(str(p.relative_to(REPO)) for p in (REPO / "docs").glob("*.md"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("pages", nargs="*", metavar="PAGE")
    options = parser.parse_args()
    if options.write and not options.pages:
        parser.error("--write: want the pages to write by name")
    binaries = pathlib.Path(os.environ.get("GRIDCLOCK_BIN", REPO / "build/dev/bin")).resolve()
    failed, total = False, 0
    for page in options.pages or all_pages():
        problems, count = check_page(page, binaries, options.kind, options.write)
        total += count
        failed = failed or bool(problems)
        print(f"{page}: {count} blocks run" + "".join(f"\n{p}" for p in problems), flush=True)
    print(f"snippets: {total} blocks run")
    return 1 if failed or (total == 0 and not options.pages) else 0


if __name__ == "__main__":
    sys.exit(main())
