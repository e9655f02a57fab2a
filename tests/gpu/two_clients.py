"""Clients that each have a token, on one server with a GPU: what one does is none of the other's. Tests of
submit_test."""
import array
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from npy import load, save, some
from server import Server

BIN = pathlib.Path()  # submit_test sets it.


def children(pid):
    return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()]


def guests(server):
    """The processes that run submitted code, as folders of /proc."""
    folders = [pathlib.Path(f"/proc/{pid}") for pid in children(server.pid)]
    return [folder for folder in folders if b"guest" in (folder / "cmdline").read_bytes().split(b"\0")]


class TwoClients(unittest.TestCase):
    FLAGS = ()  # Of the server, beside those that all need.

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        lines = []
        for name in ("ann", "bob"):
            token = name * 16
            (self.folder / name).write_text(token)
            hashed = subprocess.run([BIN / "gridclock-server", "--hash-token"], input=token, capture_output=True,
                                    text=True, check=True)
            lines.append(f"{name} read,run,submit {hashed.stdout}")
        (self.folder / "tokens").write_text("".join(lines))
        (self.folder / "tokens").chmod(0o600)
        self.server = self.enterContext(
            Server(BIN, "--allow-submit", "--limit-compile-seconds=60", "--devices=cuda:0",
                   f"--worker={BIN / 'gridclock-worker'}", f"--token-file={self.folder / 'tokens'}", *self.FLAGS))

    def start(self, name, *args):
        environment = dict(os.environ, GRIDCLOCK_SERVER=self.server.grpc)
        process = subprocess.Popen([BIN / "gridclock", "--token-file", self.folder / name, *args], env=environment,
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def end(self, process, code=0):
        """What it shows."""
        shown, said = process.communicate(timeout=120)
        self.assertEqual(process.returncode, code, shown + said)
        return shown

    @contextlib.contextmanager
    def canary(self):
        """Jobs of Bob all the while, each of whose results must be right to the bit."""
        values = some(1 << 22)
        save(self.folder / "x.npy", values, (len(values),))
        want, done = [value * value for value in values], threading.Event()

        def bobs():
            times = 0
            while not done.is_set():
                self.end(self.start("bob", "run", "square", "x=x.npy", "--verify", "-o", "y=bobs.npy"))
                self.assertTrue(load(self.folder / "bobs.npy")[1] == want, "another's code changed the result")
                times += 1
            return times

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            his = pool.submit(bobs)
            try:
                yield
            finally:
                done.set()
            self.assertGreater(his.result(), 1, "the other had no jobs meanwhile")


class TwoClientsTest(TwoClients):
    CANARY = 0x5EC2E755
    SOURCE = """\
// gridclock: mark x: u8[N] -> y: u32[256] grid(256) block(1) params s, y, n: int64 = ceil_div(N * 4, 2097152) * 524288
// gridclock: scratch s: u32[N]
__global__ void mark(unsigned* s, unsigned* y, long long n) {
  for (long long i = blockIdx.x; i < n; i += gridDim.x) s[i] = %(canary)du;
  y[blockIdx.x] = 0;
}
// gridclock: hunt x: u8[N] -> y: u32[256] grid(256) block(1) params s, y, n: int64 = ceil_div(N * 4, 2097152) * 524288
// gridclock: scratch s: u32[N]
__global__ void hunt(const unsigned* s, unsigned* y, long long n) {
  unsigned found = 0;
  for (long long i = blockIdx.x; i < n; i += gridDim.x) found += s[i] == %(canary)du;
  y[blockIdx.x] = found;
}
"""
    # Over all that is mapped on both sides of its output, until it meets what is not.
    WILD = """\
// gridclock: wild -> y: u32[256] grid(1) block(1) params y
__global__ void wild(unsigned* y) {
  for (long long i = 0; i < (1LL << 28); i += 256) y[i] = y[-i] = ~0u;
}
"""

    def found(self, name, entry, elements):
        """How many canaries the scratch memory began with, to the end of its last 2 MiB."""
        (self.folder / "k.cu").write_text(self.SOURCE % {"canary": self.CANARY})
        self.end(self.start(name, "run", f"k.cu:{entry}", f"x=zeros:u8[{elements}]", "-o", "y=y.npy"))
        data = array.array("I")
        data.frombytes((self.folder / "y.npy").read_bytes()[-1024:])
        return sum(data)

    def test_g7_what_one_leaves_on_the_gpu_the_next_does_not_see(self):
        elements = (1 << 24) + 1
        self.found("ann", "mark", elements)
        # Scratch itself is filled for each call; what lies behind it, to the end of its 2 MiB, is left as it is.
        self.assertGreater(self.found("ann", "hunt", elements), 0, "the hunt finds nothing at all")
        self.assertEqual(self.found("bob", "hunt", elements), 0)
        self.found("bob", "mark", elements)
        self.assertEqual(self.found("ann", "hunt", elements), 0)

    def test_g8_code_that_writes_over_all_it_reaches_changes_no_bit_of_anothers_job(self):
        with self.canary():
            for i in range(5):  # Each is a module of its own: one that ends three guests is run no more.
                (self.folder / "wild.cu").write_text(f"{self.WILD}// {i}\n")
                error = json.loads(self.end(self.start("ann", "run", "wild.cu", "--json"), code=1))["error"]
                self.assertEqual(error["reason"], "KERNEL_FAULT", error)
        self.found("ann", "mark", 1 << 20)


class PinnedMemoryTest(TwoClients):
    """All host memory of a guest that its GPU may write: what the server shares with it, pinned whole at its start."""

    FLAGS = ("--limit-guest-bytes=64M",)  # What is pinned at once.
    # Over so many words from an address on, variables of the module and scratch memory. y: what each thread wrote and
    # then found there, of the first.
    FLOOD = """\
// gridclock: flood -> y: i64[16384]; base: i64 = 0, span: i64 = 0 grid(64) block(256)
// gridclock:   params y, base: uint64 = base, span: int64 = span, s
// gridclock: scratch s: u32[16777216]
__device__ unsigned own[1 << 20];
__device__ long long flooded(volatile unsigned* to, long long span) {
  const long long first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
  long long found = 0;
  for (long long i = first; i < span; i += step) to[i] = ~0u;
  for (long long i = first; i < span; i += step) found += to[i] == ~0u;
  return found;
}
__global__ void flood(long long* y, unsigned long long base, long long span, unsigned* s) {
  flooded(own, 1 << 20);
  flooded(s, 1 << 24);
  y[blockIdx.x * blockDim.x + threadIdx.x] = flooded(reinterpret_cast<unsigned*>(base), span);
}
"""

    def shared_ranges(self):
        """(address, bytes) of what Ann's guest shares with the server."""
        (guest,) = guests(self.server)
        try:
            maps = (guest / "maps").read_text()
        except PermissionError:
            self.skipTest("this user may not see what a guest maps")
        found = re.findall(r"^(\w+)-(\w+) rw-s .*/memfd:gridclock-arena", maps, re.MULTILINE)
        return [(int(begin, 16), int(end, 16) - int(begin, 16)) for begin, end in found]

    def flood(self, base, size):
        """How many words of the range its code wrote."""
        self.end(self.start("ann", "run", "flood.cu", f"base={base}", f"span={size // 4}", "-o", "y=flood.npy"))
        return sum(load(self.folder / "flood.npy")[1])

    def test_g8_code_that_overwrites_all_pinned_memory_of_its_guest_changes_no_bit_of_anothers_job(self):
        (self.folder / "flood.cu").write_text(self.FLOOD)
        self.assertEqual(self.flood(0, 0), 0)  # The guest is there.
        ranges = self.shared_ranges()
        self.assertEqual(sum(size for _, size in ranges), 64 << 20, ranges)
        with self.canary():
            for _ in range(5):
                for base, size in ranges:
                    # By its own words it wrote all of it, with the driver's consent.
                    self.assertEqual(self.flood(base, size), size // 4, f"of {size} bytes at {base:x}")
        self.assertEqual(self.shared_ranges(), ranges, "it was another guest")


class SubmissionsTest(TwoClients):
    """A third of them faulty, in every way."""

    RIGHT = """\
// gridclock: f x: f32[N] -> y: f32[N] grid(ceil_div(N, 256)) block(256) params x, y, n: int = N
__global__ void f(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = %s;
}
"""
    # What is wrong: the file, the flags, the exit code, and what the answer says of the error.
    FAULTS = (
        (RIGHT % "x[i] * no_such", (), 1, ("INVALID_ARGUMENT", "COMPILE_FAILED")),
        ((RIGHT % "x[i]").replace("params x, y, n: int = N", "params x, y"), (), 1, ("INVALID_ARGUMENT", None)),
        (RIGHT % "x[i] + *reinterpret_cast<volatile float*>(16)", (), 1, ("FAILED_PRECONDITION", "KERNEL_FAULT")),
        ("__device__ volatile int on = 1;\n" + (RIGHT % "x[i]; while (on)"), ("--kernel-limit", "1s"), 1,
         ("DEADLINE_EXCEEDED", "KERNEL_TIME_LIMIT")),
        ((RIGHT % "x[i]").replace("block(256)", "block(256) shared 300000"), (), 1, ("INVALID_ARGUMENT", None)),
        (RIGHT % "x[i] * x[i] + (i == 700)", ("--verify=square",), 4, None),
    )

    def submit(self, number):
        """One of them, by Ann or Bob; what was wrong with its answer, or None."""
        name, folder = ("ann", "bob")[number % 2], self.folder / str(number)
        folder.mkdir()
        faulty = number % 3 == 0
        text, flags, code, error = self.FAULTS[number // 3 % len(self.FAULTS)] if faulty else (
            self.RIGHT % f"x[i] + {number}", (), 0, None)
        (folder / "f.cu").write_text(f"{text}// {number}\n")  # Each is a module of its own.
        x = "x=randn:f32[1001]" if "--verify=square" in flags else "x=arange:f32[1001]"
        done = self.start(name, "run", folder / "f.cu", x, "-o", f"y={folder / 'y.npy'}", "--json", *flags)
        shown, said = done.communicate(timeout=120)
        if done.returncode != code:
            return f"{number}: want exit code {code}, got {done.returncode}: {shown}{said}"
        if error:
            got = json.loads(shown)["error"]
            if (got["code"], got["reason"]) != (error[0], error[1] or got["reason"]):
                return f"{number}: want {error}, got {got}"
        elif not faulty and load(folder / "y.npy")[1] != [i + number for i in range(1001)]:
            return f"{number}: the result is wrong"
        return None

    def lasting_bytes(self):
        """Private and shared memory of the processes that outlast a guest."""
        here = {folder.name for folder in guests(self.server)}
        pids = [self.server.pid, *(pid for pid in children(self.server.pid) if str(pid) not in here)]
        rollups = [pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in pids]
        return sum(int(kib) << 10 for text in rollups for kib in re.findall(r"^Pss_(?:Anon|Shmem):\s+(\d+)", text, re.M))

    def test_each_of_many_gets_its_answer(self):
        """GRIDCLOCK_SUBMISSIONS: so many. Of 1,000 the second half takes no more memory."""
        many = int(os.environ.get("GRIDCLOCK_SUBMISSIONS", "60"))
        wrong, begun = [], time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for half in (range(many // 2), range(many // 2, many)):
                before = self.lasting_bytes()
                wrong += [problem for problem in pool.map(self.submit, half) if problem]
        more = self.lasting_bytes() - before
        print(f"{many} submissions, {many / (time.monotonic() - begun):.1f} per second; the second half took "
              f"{more / (1 << 20):.2f} MiB", file=sys.stderr)
        self.assertFalse(wrong, "\n".join(wrong))
        self.assertIsNone(self.server.process.poll())
        if many >= 1000:
            self.assertLess(more, 5 << 20)
