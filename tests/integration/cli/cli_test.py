"""The command line against a real server: cli_test.py BIN_FOLDER."""

import contextlib
import csv
import io
import json
import os
import pathlib
import random
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
import unittest

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import numpy  # noqa: E402
from prometheus import wait_until  # noqa: E402
from server import Server  # noqa: E402


FRAME = b"\x1b[H\x1b[2J"  # To the upper left, and what stood there is gone.


def free_address():
    """One that no other test is given: those come from the kernel's range for connections."""
    for port in random.sample(range(20000, 30000), 100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return f"127.0.0.1:{port}"
    raise RuntimeError("no free port of a hundred between 20000 and 30000")


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, *command, width, height):
        self._command, self._size, self._shown = command, (height, width), b""

    def __enter__(self):
        self._ours, theirs = os.openpty()
        termios.tcsetwinsize(theirs, self._size)
        self._process = subprocess.Popen(self._command, stdin=theirs, stdout=theirs, stderr=theirs,
                                         env={**os.environ, "TERM": "xterm"})
        os.close(theirs)
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self._ours)

    def wait_for(self, words, times=1, seconds=60):
        """In what it shows from now on."""
        end, start = time.monotonic() + seconds, len(self._shown)
        while self._shown.count(words, start) < times:
            if not select.select([self._ours], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"{words} is not shown {times} times in {self._shown[start:][-4000:]}")
            self._shown += os.read(self._ours, 65536)

    def frames(self):
        return self._shown.split(FRAME)

    def interrupt(self):
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(60)


class CliTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(BIN, "--allow-admin"))

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def gridclock(self, *args, code=0, server=None):
        environment = dict(os.environ, GRIDCLOCK_SERVER=server or self.server.grpc)
        done = subprocess.run([BIN / "gridclock", *map(str, args)], env=environment, cwd=self.folder,
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, f"{args}\n{done.stdout}{done.stderr}")
        return done

    def json(self, *args, code=0):
        return json.loads(self.gridclock(*args, "--json", code=code).stdout)

    def test_list_names_the_catalogue_and_hides_the_diagnostics(self):
        names = [kernel["name"] for kernel in self.json("list")]
        for name in ["gelu", "matmul", "softmax", "square", "sum", "vector_add"]:
            self.assertIn(name, names)
        self.assertNotIn("spin", names)
        self.assertIn("spin", [kernel["name"] for kernel in self.json("list", "--all")])
        self.assertIn("softmax", self.gridclock("list").stdout)

    def test_describe(self):
        self.assertIn("x: T[*, N]", self.json("describe", "softmax")["words"])
        shown = self.gridclock("describe", "cumsum").stdout
        for line in (r"formula +y\[a, k, b\] = ", r"takes +x: T\[\*A, N @ axis, \*B\]", r"gives +y: T\[\*A, N, \*B\] over x",
                     r"attribute +axis: i64 = -1", r"where +T in \{f64, f32, f16, bf16\}", r"flops +numel\(x\)",
                     r"bytes +each input once, each output once", r"notes +Accumulated", r"naive +cpu +One term .* all"):
            self.assertRegex(shown, line)
        self.assertRegex(self.gridclock("describe", "adamw").stdout,
                         r"attribute +lr: .* in \[0, inf\)\n +beta1: .* in \[0, 1\)")
        error = self.json("describe", "sofmax", code=1)["error"]
        self.assertEqual(error["code"], "NOT_FOUND")
        self.assertIn("softmax", error["message"])

    def test_describe_of_a_variant_shows_that_one_alone(self):
        self.assertEqual([v["name"] for v in self.json("describe", "gelu.naive")["variants"] if v["device_kind"] == "cpu"],
                         ["naive"])
        self.assertIn("naive", self.gridclock("describe", "gelu.naive").stdout)
        error = self.json("describe", "gelu.nosuch", code=1)["error"]
        self.assertRegex(error["message"], "'gelu' has no variant 'nosuch'; it has .*naive")

    def test_admin_lists_and_cancels_jobs(self):
        spin = subprocess.Popen([BIN / "gridclock", "run", "spin", "ns=60000000000", "--kernel-limit", "60"],
                                env=dict(os.environ, GRIDCLOCK_SERVER=self.server.grpc),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            def running():
                self.assertIsNone(spin.poll())
                return [job for job in self.json("admin", "jobs") if job["state"] == "running"]

            job = wait_until(running, 60, "the call runs")[0]
            self.assertEqual((job["client"], job["kernel"], job["device"]), ("local", "spin", "cpu"))
            shown = self.gridclock("admin", "jobs").stdout
            self.assertRegex(shown, rf"{job['id']} +\w+.* local +spin")
            missing = self.gridclock("admin", "cancel", job["id"] + 1, code=1).stderr
            self.assertIn(f"no job {job['id'] + 1} waits or runs", missing)
            self.assertIn("; 1 job is left on it\n", self.gridclock("admin", "drain", "cpu", "--last").stdout)
            self.gridclock("admin", "undrain", "cpu")
            self.assertIn(f"job {job['id']} of local", self.gridclock("admin", "cancel", job["id"]).stdout)
            # Its launch goes on; with its worker it ends now.
            self.assertEqual(self.json("admin", "jobs")[0]["state"], "stopping")
            self.assertIn(" is killed; it held 1 job\n", self.gridclock("admin", "restart", "cpu", "--now").stdout)
            self.assertEqual(spin.wait(60), 1)
            self.assertIn("cancelled by an operator", spin.stderr.read())
        finally:
            spin.kill()
            spin.communicate()
        self.assertEqual(self.gridclock("admin", "jobs").stdout, "no job waits or runs\n")

    def test_admin_drains_and_restarts(self):
        self.assertIn("--last", self.gridclock("admin", "drain", "cpu", code=1).stderr)
        self.assertIn("the devices are 'cpu'", self.gridclock("admin", "drain", "gpu", code=1).stderr)
        try:
            drained = self.json("admin", "drain", "cpu", "--last")
            self.assertEqual((drained["device"], drained["changed"]), ("cpu", True))
            self.assertIn(", drained", self.gridclock("devices").stdout)
            self.assertTrue(self.json("devices")[0]["drained"])
            refused = self.gridclock("run", "square", "x=ones:f32[1]", "--timeout", "4", code=1).stderr  # No time to try again.
            self.assertIn("an operator drained it", refused)
            self.assertEqual(self.gridclock("admin", "drain", "cpu").stdout, "cpu was drained; 0 jobs are left on it\n")
        finally:
            self.assertEqual(self.gridclock("admin", "undrain", "cpu").stdout, "cpu takes calls again\n")
        self.assertIn("[1]", self.gridclock("run", "square", "x=ones:f32[1]").stdout)
        before = self.json("devices")[0]["restarts"]
        self.assertIn("the worker of cpu is replaced", self.gridclock("admin", "restart", "cpu").stdout)
        wait_until(lambda: self.json("devices")[0]["restarts"] != before, 60, "another worker runs")
        self.assertIn("[1]", self.gridclock("run", "square", "x=ones:f32[1]").stdout)

    def test_admin_reloads_and_says_what_it_wants(self):
        self.assertIn("without tokens and certificates", self.gridclock("admin", "reload").stdout)
        self.assertEqual(self.json("admin", "reload"), [])
        self.gridclock("admin", code=2)
        self.gridclock("admin", "explode", code=2)
        self.gridclock("admin", "cancel", "soon", code=2)
        self.gridclock("admin", "drain", code=2)
        self.assertIn("gridclock admin drain DEVICE", self.gridclock("admin", "--help").stdout)
        self.assertIn("gridclock admin drain DEVICE", self.gridclock("admin", "drain", "--help").stdout)

    def test_output_that_is_lost_is_an_error(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([BIN / "gridclock", "list"], stdout=full, stderr=subprocess.PIPE, text=True,
                                  env=dict(os.environ, GRIDCLOCK_SERVER=self.server.grpc), timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output could not be written", done.stderr)

    def test_devices_and_doctor(self):
        self.assertIn("cpu", [device["name"] for device in self.json("devices")])
        self.assertIn("cpu", self.gridclock("devices").stdout)
        self.assertTrue(all(part["ok"] for part in self.json("doctor")))
        shown = self.gridclock("doctor").stdout
        self.assertIn("[2,4,6]", shown)
        self.assertRegex(shown, "workers +ok +1 of 1 up")
        self.assertRegex(shown, "compiler +ok +off: code of clients is not taken")

    def test_doctor_says_why_there_is_no_gpu(self):
        with Server(BIN, "--devices=auto") as server:
            environment = dict(os.environ, GRIDCLOCK_SERVER=server.grpc)
            done = subprocess.run([BIN / "gridclock", "doctor"], env=environment, capture_output=True, text=True, timeout=60)
        if " CUDA " in done.stdout:
            self.skipTest("there is a GPU")
        self.assertRegex(done.stdout, "server: cuda driver .*missing: no GPU")

    def test_wait_and_ping(self):
        self.assertIn("ready", self.gridclock("wait", "--timeout", 10).stdout)
        self.assertGreater(self.json("ping")["median_ns"], 0)
        self.assertEqual(self.json("ping", "--count", 3)["round_trips"], 3)
        two = self.json("ping", "--count", 2)
        self.assertAlmostEqual(two["median_ns"], (two["min_ns"] + two["max_ns"]) / 2)

    def test_wait_gives_up(self):
        start = time.monotonic()
        self.gridclock("wait", "--timeout", "0.3", server="127.0.0.1:1", code=3)
        self.assertLess(time.monotonic() - start, 10)

    def test_wait_for_nobody_ends_with_three_however_short(self):
        self.gridclock("wait", "--timeout", "0.05", server="127.0.0.1:1", code=3)
        with socket.socket() as silent:  # Takes the connection and never says a word.
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            self.gridclock("wait", "--timeout", "0.3", server=f"127.0.0.1:{silent.getsockname()[1]}", code=3)

    def test_files_round_trip(self):
        x = numpy.random.default_rng(1).standard_normal((5, 7)).astype("f4")
        numpy.save(self.folder / "x.npy", x)
        self.gridclock("run", "square", "-o", "y=y.npz", "-o", "y=y.npy", "x=x.npy", "--verify")
        numpy.testing.assert_allclose(numpy.load(self.folder / "y.npy"), x * x, rtol=1e-6)
        numpy.save(self.folder / "f.npy", numpy.asfortranarray(x.astype(">f8")))
        self.gridclock("run", "square", "x=f.npy", "-o", "y=y.npy")
        numpy.testing.assert_allclose(numpy.load(self.folder / "y.npy"), x.astype("f8") ** 2)

    def test_tensors_beyond_a_message_go_by_stream(self):
        x = numpy.random.default_rng(2).standard_normal(3_000_001).astype("f4")
        numpy.save(self.folder / "x.npy", x)
        self.gridclock("run", "copy", "x=x.npy", "-o", "y=y.npy")
        numpy.testing.assert_array_equal(numpy.load(self.folder / "y.npy"), x)

    def test_bf16_by_name(self):
        numpy.save(self.folder / "x.npy", numpy.array([0x3F80, 0x4000, 0x4040], "u2"))  # 1 2 3
        self.gridclock("run", "square", "x=x.npy:bf16", "-o", "y=y.npz")
        with numpy.load(self.folder / "y.npz") as y:
            self.assertEqual(y["y"].view("u2").tolist(), [0x3F80, 0x4080, 0x4110])  # 1 4 9

    def test_a_misspelt_dtype_of_a_file_is_refused(self):
        numpy.save(self.folder / "x.npy", numpy.array([0x3F80, 0x4000], "u2"))
        refused = self.gridclock("run", "cast", "x=x.npy:bf61", "to=f32", code=2).stderr
        self.assertIn("x: 'x.npy:bf61': no dtype 'bf61'; there are f64", refused)
        lists = ["a=x.npy:bf16", "a=x.npy:bf61", "b=x.npy:bf16", "b=x.npy:bf16"]
        self.assertIn("no dtype 'bf61'", self.gridclock("run", "foreach_add", *lists, code=2).stderr)

    def test_one_array_of_an_archive_with_foreign_ones(self):
        numpy.savez(self.folder / "w.npz", text=numpy.array(["a"]), z=numpy.array([1j]),
                    x=numpy.array([0x3F80, 0x4000], "u2").view("V2"), y=numpy.array([3], "f4"))
        self.assertIn("[9]", self.gridclock("run", "square", "x=w.npz:y").stdout)
        self.assertIn("[1, 4]", self.gridclock("run", "square", "x=w.npz:x:bf16").stdout)
        self.assertIn("text", self.gridclock("run", "square", "x=w.npz:n", code=1).stderr)

    def test_a_list_is_given_tensor_by_tensor(self):
        for name, value in (("a", [1, 2]), ("b", [[3], [4], [5]])):
            numpy.save(self.folder / f"{name}.npy", numpy.array(value, "f4"))
        self.gridclock("run", "foreach_mul", "a=a.npy", "a=b.npy", "b=a.npy", "b=b.npy", "-o", "c=c.npz")
        with numpy.load(self.folder / "c.npz") as archive:
            self.assertEqual([archive[name].tolist() for name in archive.files], [[1, 4], [[9], [16], [25]]])

    def test_a_list_for_a_npy_file_is_refused_before_the_kernel_runs(self):
        lists = ["a=ones:f32[2]", "a=ones:f32[3]", "b=ones:f32[2]", "b=ones:f32[3]"]
        refused = self.gridclock("run", "foreach_add", *lists, "-o", "c=c.npy", code=2).stderr
        self.assertIn("-o: 'c' is a list, which a .npz file takes; got 'c.npy'", refused)

    def test_a_device_may_be_named(self):
        self.assertIn("square.simd on cpu", self.gridclock("run", "square", "x=ones:f32[3]", "--device", "cpu").stdout)
        absent = self.gridclock("run", "square", "x=ones:f32[3]", "--device", "cuda:99", code=1).stderr
        self.assertIn("no device 'cuda:99'; the devices are 'cpu'", absent)

    def test_a_shipped_worker_has_no_kernel_that_faults(self):
        self.assertIn("no kernel 'fault'", self.gridclock("describe", "fault", code=1).stderr)

    def test_a_kernel_without_outputs_writes_no_file(self):
        self.assertIn("no output", self.gridclock("run", "empty", "-o", "all.npz", code=2).stderr)
        self.assertFalse((self.folder / "all.npz").exists())

    def test_outputs_are_checked_before_the_kernel_runs(self):
        def refused(output):
            return self.gridclock("run", "square", "x=ones:f32[4]", "-o", output, code=2).stderr

        self.assertIn("-o y: cannot write /nosuch/out.npy: no folder /nosuch", refused("y=/nosuch/out.npy"))
        (self.folder / "there.npy").mkdir()
        self.assertIn("-o y: cannot write there.npy: it is a folder", refused("y=there.npy"))
        self.assertIn("has no output 'z'; it has y", refused("z=z.npy"))

    def test_a_verification_names_the_first_mismatches(self):
        call = ["sum.naive", "x=full:0.1:f32[7,100K]", "axis=1", "--verify"]
        named = [f"y[{i}]: want 10240, got " for i in range(5)]
        done = self.gridclock("run", *call, code=4).stdout
        self.assertRegex(done, r"DIFFERS in 7 of 7 values: y\[0\]: want 10240, got [\d.]+, tolerance .*\n"
                               r"  then y\[1\]: .*\n  then y\[2\]: .*\n  then y\[3\]: .*\n  then y\[4\]: .*\n  max abs ")
        for answer in (self.json("run", *call, code=4), self.json("bench", *call, "--samples", "10", code=4)["results"][0]):
            found = answer["verification"]
            self.assertEqual([text[:len(want)] for want, text in
                              zip(named, [found["first_mismatch"], *found["more_mismatches"]], strict=True)], named)
        self.assertIn("  then y[4]: ", self.gridclock("bench", *call, "--samples", "10", code=4).stdout)

    def test_sums_of_equal_f64_are_right_in_parts_and_not_in_order(self):
        ones = ["weight=ones:f64[100000]", "bias=zeros:f64[100000]"]
        for words in (["sum", "x=full:0.1:f64[20000]"], ["mean", "x=full:0.1:f64[3,20000]"],
                      ["cumsum", "x=full:0.1:f64[20000]"], ["softmax", "x=full:0.1:f64[2,20000]"],
                      ["matmul", "a=full:0.1:f64[3,20000]", "b=full:0.1:f64[20000,3]"],
                      ["cdist", "a=full:0.1:f64[2,20000]", "b=zeros:f64[2,20000]", "p=1"],
                      ["rmsnorm", "x=full:0.1:f64[2,100000]", ones[0]],
                      ["layernorm", "x=randint:0:2:f64[2,100000]", *ones]):
            with self.subTest(words[0]):
                self.gridclock("run", *words, "--verify")
        self.gridclock("run", "sum.naive", "x=full:0.1:f64[20000]", "--verify", code=4)

    def test_an_infinite_distance_that_the_product_makes_nan_of_is_not_verified_and_not_wrong(self):
        numpy.save(self.folder / "a.npy", numpy.array([[numpy.inf, 1], [2, 3]], "f4"))
        call = ["a=a.npy", "b=ones:f32[2,2]", "-o", "d=d.npy", "--verify"]
        self.gridclock("run", "cdist", *call)
        self.assertTrue(numpy.isinf(numpy.load(self.folder / "d.npy")[0]).all())
        self.gridclock("run", "cdist.matmul", *call, code=1)
        self.assertTrue(numpy.isnan(numpy.load(self.folder / "d.npy")[0]).all())

    def test_every_number_to_the_0_is_1_also_a_signaling_nan(self):
        for dtype, word in (("u8", 0x7ff0000000000001), ("u4", 0x7f800001)):
            numpy.save(self.folder / "x.npy", numpy.full(40, word, dtype).view(f"f{dtype[1]}"))
            for variant in ("naive", "simd"):
                self.gridclock("run", f"pow.{variant}", "x=x.npy", "exponent=0", "-o", "y=y.npy", "--verify")
                self.assertEqual(set(numpy.load(self.folder / "y.npy")), {1.0}, (dtype, variant))

    def test_check_compares_with_the_catalogue(self):
        result = self.json("check", "softmax.naive", "--against", "softmax", "*=4", "N=33", "--seed", "7")
        self.assertTrue(result["ok"])
        self.assertEqual((result["rounds"], result["seed"], result["outputs"][0]["values"]), (3, 7, 3 * 4 * 33))
        self.assertIn("same as softmax", self.gridclock("check", "softmax", "--against", "softmax", "N=8").stdout)
        unknown = self.gridclock("check", "transpose.naive", "--against", "transpose", "x=full:9223372036854775807:i64[4,4]", code=1)
        self.assertIn("could not be verified", unknown.stderr)
        nothing = self.gridclock("check", "transpose.naive", "--against", "transpose", "x=ones:i64[0,4]", code=1)
        self.assertIn("nothing was compared", nothing.stderr)
        differs = self.gridclock("check", "gelu", "--against", "square", "N=100", code=4).stdout
        self.assertIn("DIFFERS from square", differs)
        self.assertIn("want as many inputs", self.gridclock("check", "square", "--against", "vector_add", "N=8",
                                                            code=2).stderr)
        self.gridclock("check", "gelu", "approximate=none", "--against", "gelu", "--with", "approximate=none", "N=99")

    def test_watch_wants_a_file(self):
        self.assertIn("want a file", self.gridclock("watch", "square", "N=8", code=2).stderr)

    def test_attributes_and_printed_values(self):
        shown = self.gridclock("run", "sum", "x=arange:f32[2,3]", "axis=0").stdout
        self.assertIn("[3, 5, 7]", shown)
        self.assertIn("INVALID", self.gridclock("run", "sum", "x=ones:f32[2,3]", "axis=5", code=1).stderr)
        self.gridclock("run", "sum", "x=ones:f32[2,3]", "axis=soon", code=2)

    def test_client_and_server_make_the_same_values(self):
        for kind in ["randn", "uniform:-1:1", "arange", "full:2.5"]:
            with self.subTest(kind=kind):
                got = []
                for where in ["server", "client"]:
                    self.gridclock("run", "copy", f"x={kind}:f32[1001]", "-o", "y=y.npy",
                                   "--seed", 3, "--generate", where)
                    got.append(numpy.load(self.folder / "y.npy"))
                numpy.testing.assert_array_equal(got[0], got[1])

    def test_a_long_run_tells_a_terminal_how_long(self):
        ours, theirs = os.openpty()
        done = subprocess.run([BIN / "gridclock", "run", "spin", "ns=4000000000"], stderr=theirs,
                              env=dict(os.environ, GRIDCLOCK_SERVER=self.server.grpc, TERM="xterm"), timeout=60)
        os.close(theirs)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(os.read(ours, 65536), rb"spin  [1-9] s")
        os.close(ours)

    def test_a_measurement_tells_a_terminal_how_far_it_is(self):
        with Terminal(BIN / "gridclock", "bench", "spin", "ns=200000000", "--server", self.server.grpc,
                      "--budget", "60s", "--samples", "100000", "--interval", "0.00001", width=100, height=24) as terminal:
            terminal.wait_for(b"spin  warming up  2")
            terminal.wait_for(b" samples  last 2", times=3)
            terminal.interrupt()

    def test_the_kernel_limit_is_the_callers(self):
        late = self.gridclock("run", "spin", "ns=2000000000", "--kernel-limit", "100ms", code=1).stderr
        self.assertIn("--kernel-limit TIME sets it, up to the server's --limit-max-kernel-seconds", late)
        much = self.gridclock("bench", "spin", "ns=1000", "--kernel-limit", "1000000", code=1).stderr
        self.assertIn("--limit-max-kernel-seconds", much)
        self.gridclock("run", "spin", "ns=1000", "--kernel-limit", "soon", code=2)

    def test_in_place(self):
        self.assertIn("[0, 1, 4]",
                      self.gridclock("run", "square", "x=arange:f32[3]", "--in-place", "y").stdout)

    def test_bench_json_carries_every_sample(self):
        result = self.json("bench", "square", "--shape", "N=1M", "--samples", 50, "--budget", "10s", "--verify")
        self.assertEqual(result["inputs"][0]["tensors"], ["f32[1048576]"])
        timing = result["results"][0]["timing"]
        self.assertEqual(timing["samples"], len(timing["samples_ns"]))
        self.assertGreaterEqual(timing["samples"], 10)
        self.assertEqual(result["results"][0]["verification"]["mismatches"], 0)
        self.assertGreater(timing["bytes_per_second"], 0)

    def test_bench_keeps_what_came_before_an_error(self):
        spin = ("bench", "spin", "ns=100000000", "--budget", "60s", "--samples", 100000, "--interval", "1e-6", "--kernel-limit", "2s")
        row, = json.loads(self.gridclock(*spin, "--json", code=1).stdout)["results"]
        self.assertEqual(row["error"]["reason"], "KERNEL_TIME_LIMIT")
        self.assertGreater(min(row["timing"]["samples_ns"]), 1e8)
        self.assertIn("INTERRUPTED", row["flags"])
        table = self.gridclock(*spin, code=1)
        self.assertRegex(table.stdout, "(?m)^naive .* INTERRUPTED")
        self.assertIn("gridclock: naive isolated: ended too early: ", table.stderr)
        lines = self.gridclock(*spin, "--csv", code=1)
        self.assertEqual(len(lines.stdout.splitlines()), 1)
        self.assertIn("no line for naive isolated", lines.stderr)

    def test_bench_that_ctrl_c_or_a_timeout_cuts_off_shows_what_came_before(self):
        spin = ("bench", "spin", "ns=100000000", "--budget", "60s", "--samples", 100000, "--interval", "1e-6")
        cut_off = r"naive isolated: CUT OFF after \d+ samples of \d+ ms to .*: no measurement"
        over = self.gridclock(*spin, "--timeout", "6s", code=1)
        self.assertRegex(over.stdout, cut_off)
        with Terminal(BIN / "gridclock", *map(str, spin), "--server", self.server.grpc, width=100, height=24) as terminal:
            terminal.wait_for(b" samples  last ")
            self.assertEqual(terminal.interrupt(), -signal.SIGINT)
            terminal.wait_for(b"ended too early: ended by Ctrl-C")
            self.assertIn(b"CUT OFF", b"".join(terminal.frames()))

    def test_bench_of_a_list_shows_its_first_tensors(self):
        shown = self.gridclock("bench", "foreach_mul", "--shape", "*=1,2x3,3,4,5", "--samples", 10).stdout
        self.assertIn("foreach_mul  a: f32[1], a: f32[2,3], a: f32[3] and 2 more, b: f32[1]", shown)

    def test_bench_by_a_schedule(self):
        def bench(*flags):
            return self.json("bench", "square", "--shape", "N=1K", *flags)["results"][0]["timing"]

        timing = bench("--schedule", "2:3:7:4")
        self.assertEqual((timing["stop"], timing["samples"], timing["warmups"]), ("schedule", 28, 20))
        # Of 1,000 samples five count at least, however they drift together.
        for samples, confidence, there in [(5, 0.95, False), (1000, 0.5, True)]:
            low = bench("--samples", samples, "--min-samples", samples, "--confidence",
                        confidence)["statistics"]["ci_low_ns"]
            self.assertEqual(low is not None, there)
        for wrong, why in [("1:2:3", "want WAIT:WARMUP:ACTIVE:REPEAT"), ("1:2:x:4", "want WAIT:WARMUP:ACTIVE:REPEAT"),
                           ("0:0:0:1", "--schedule: active: want 1 to 1000000, got 0")]:
            self.assertIn(why, self.gridclock("bench", "square", "--shape", "N=8", "--schedule", wrong, code=2).stderr)
        self.assertIn("--min-samples: want at most --samples, 5, got 20",
                      self.gridclock("bench", "square", "--shape", "N=8", "--samples", 5, "--min-samples", 20, code=2).stderr)

    def test_bench_compares_variants_and_methods(self):
        variants = [v["name"] for v in self.json("describe", "square")["variants"] if v["device_kind"] == "cpu"]
        rows = self.json("bench", "square", "--shape", "N=1K", "--variant", "all",
                         "--budget", "50ms")["results"]
        self.assertEqual([row.get("variant") for row in rows], variants)
        rows = self.json("bench", "square", "--shape", "N=1K", "--method", "all",
                         "--budget", "50ms")["results"]
        self.assertEqual(len(rows), 6)
        self.assertIn("error", rows[1])  # device_time: a GPU's.
        self.assertIn("TEACHING_METHOD", rows[-1]["flags"])

    def test_bench_csv_and_table(self):
        text = self.gridclock("bench", "sum", "--shape", "N=64", "*=8x16", "axis=1", "--dtype", "T=f64",
                              "--budget", "50ms", "--csv").stdout
        row = next(csv.DictReader(io.StringIO(text)))
        self.assertEqual(row["kernel"], "sum")
        self.assertGreater(float(row["median_ns"]), 0)
        table = self.gridclock("bench", "matmul", "--shape", "M=32", "N=32", "K=32",
                               "--budget", "50ms").stdout
        self.assertIn("FLOP/s", table)
        self.assertNotIn("\x1b", table)

    def test_bench_csv_tells_of_methods_that_the_device_lacks(self):
        done = self.gridclock("bench", "square", "--shape", "N=1K", "--method", "all",
                              "--budget", "50ms", "--csv")
        methods = [row["method"] for row in csv.DictReader(io.StringIO(done.stdout))]
        self.assertEqual(methods, ["isolated", "host_sync", "event_pair"])
        self.assertIn("no line for device_time: a GPU is wanted", done.stderr)

    def test_bench_needs_a_size(self):
        self.assertIn("say --shape N=1M", self.gridclock("bench", "square", "--shape", "1M", code=2).stderr)
        self.assertIn("--shape", self.gridclock("bench", "square", code=2).stderr)

    def test_bench_refuses_what_a_file_decides(self):
        numpy.save(self.folder / "a.npy", numpy.ones((3, 4), "f4"))
        for flags in [["--dtype", "bf16"], ["--dtype", "T=bf16"], ["--shape", "N=8"]]:
            refused = self.gridclock("bench", "square", *flags, "x=a.npy", code=2).stderr
            self.assertIn("x comes from a.npy, which is f32[3,4]", refused)
        rows = self.json("bench", "matmul", "--dtype", "T=f32", "a=a.npy", "--shape", "K=4", "N=8",
                         "--budget", "50ms")
        self.assertEqual([i["tensors"] for i in rows["inputs"]], [["f32[3,4]"], ["f32[4,8]"]])

    def test_top_shows_once_in_a_pipe_what_the_page_shows(self):
        self.gridclock("run", "square", "x=ones:f32[9]")
        where = "--metrics", self.server.metrics
        text = self.gridclock("top", *where).stdout
        self.assertNotIn("\x1b", text)
        self.assertIn(f" serving at {self.server.metrics}, ", text)
        for column in ("device", "cpu", "per second", "square"):
            self.assertIn(column, text)
        shown = self.json("top", *where)
        self.assertEqual([d["name"] for d in shown["status"]["devices"]], ["cpu"])
        self.assertIn("square", [run["kernel"] for run in shown["runs"]])
        self.assertEqual(self.gridclock("top", *where, "--count", 2, "--interval", "50ms").stdout.count("Gridclock "), 2)

    def test_top_draws_anew_on_a_terminal_outlives_a_restart_and_ends_with_ctrl_c(self):
        metrics = free_address()
        server = Server(BIN, f"--metrics-listen={metrics}")
        with contextlib.ExitStack() as life:
            life.enter_context(server)
            terminal = self.enterContext(Terminal(BIN / "gridclock", "top", "--metrics", metrics,
                                                  "--interval", "100ms", width=60, height=12))
            terminal.wait_for(FRAME + b"\x1b[1mGridclock ", times=3)
            self.gridclock("run", "square", "x=ones:f32[9]", server=server.grpc)
            terminal.wait_for(b"square")
        terminal.wait_for(FRAME + f"no status page at {metrics}".encode(), times=2)
        with server:
            terminal.wait_for(b"no kernel has run yet")  # By the new one.
            self.assertEqual(terminal.interrupt(), -signal.SIGINT)
        for line in terminal.frames()[1].split(b"\r\n"):
            self.assertLessEqual(len(re.sub(rb"\x1b\[[0-9;]*m", b"", line).decode()), 60)
        self.assertLessEqual(terminal.frames()[1].count(b"\n"), 12)

    def test_top_says_what_it_could_not_read(self):
        for address in (self.server.grpc, "127.0.0.1:1"):
            error = self.gridclock("top", "--metrics", address, code=3).stderr
            self.assertIn(f"no status page at {address} (", error)
            self.assertIn("--metrics HOST:PORT", error)
            self.assertNotIn("try again", error)
            self.assertEqual("gRPC port?" in error, address == self.server.grpc, error)

    def test_the_example_in_cpp(self):
        done = subprocess.run([BIN / "gridclock-example-square", self.server.grpc],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 4 9 16 in", done.stdout)

    def test_a_timeout_is_called_by_its_flag(self):
        late = self.gridclock("run", "spin", "ns=2000000000", "--timeout", "50ms", code=1).stderr
        self.assertIn("not done within 50ms (--timeout)", late)

    def test_a_dtype_has_this_projects_name_and_a_way_out(self):
        numpy.save(self.folder / "i.npy", numpy.arange(3))
        self.assertIn("convert it, e.g. x.astype('f4')", self.gridclock("run", "square", "x=i.npy", code=1).stderr)
        self.assertIn("has i64 (numpy's i8), which cannot stand for bf16",
                      self.gridclock("run", "square", "x=i.npy:bf16", code=1).stderr)

    def test_a_server_that_is_not_there(self):
        self.assertIn("no server answers", self.gridclock("list", server="127.0.0.1:1", code=3).stderr)


class WaitTest(unittest.TestCase):
    def test_a_server_that_comes_late_is_seen_soon(self):
        address = free_address()
        environment = dict(os.environ, GRIDCLOCK_SERVER=address)
        wait = subprocess.Popen([BIN / "gridclock", "wait", "--timeout", "60"], env=environment)
        self.addCleanup(wait.kill)
        with self.assertRaises(subprocess.TimeoutExpired):  # It has tried, more than once.
            wait.wait(1)
        with Server(BIN, f"--listen={address}"):
            start = time.monotonic()
            self.assertEqual(wait.wait(60), 0)
            self.assertLess(time.monotonic() - start, 15)


if __name__ == "__main__":
    unittest.main()
