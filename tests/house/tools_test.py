"""The checks in tools/ find what they are there to find."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"


class Tree:
    """A small repository made of the given files."""

    def __init__(self, files):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        for path, text in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)
        subprocess.run(["git", "add", "-A"], cwd=self.root, check=True)

    def run(self, tool, *args):
        ran = subprocess.run([sys.executable, TOOLS / tool, *args, self.root], capture_output=True, text=True)
        return ran.returncode, ran.stdout + ran.stderr

    def __del__(self):
        self.folder.cleanup()


class Layers(unittest.TestCase):
    def check(self, path, include, others=()):
        files = {path: f"#include <vector>\n{include}\n", **{o: "" for o in others}}
        return Tree(files).run("check_layers.py")

    def test_lower_room_is_allowed(self):
        code, _ = self.check("server/core/a.cc", '#include "base/status.h"', ["base/status.h"])
        self.assertEqual(code, 0)

    def test_server_may_not_include_kernels(self):
        code, out = self.check("server/core/a.cc", '#include "kernels/api/kernel.h"', ["kernels/api/kernel.h"])
        self.assertEqual(code, 1)
        self.assertIn("server/core/a.cc:2: server/core may not include kernels/api/kernel.h", out)

    def test_kernels_may_not_include_server(self):
        code, out = self.check("kernels/worker/main.cc", '#include "server/core/job.h"', ["server/core/job.h"])
        self.assertEqual(code, 1)
        self.assertIn("kernels/worker/main.cc:2:", out)

    def test_client_may_not_include_server(self):
        code, _ = self.check("client/cpp/a.h", '#include "server/rpc/a.h"', ["server/rpc/a.h"])
        self.assertEqual(code, 1)

    def test_third_party_in_angle_brackets(self):
        code, out = self.check("server/core/a.cc", "#include <grpcpp/grpcpp.h>")
        self.assertEqual(code, 1)
        self.assertIn("server/core/a.cc:2: server/core may not include grpcpp/grpcpp.h (grpc)", out)

    def test_messages_only_behind_the_codec(self):
        code, _ = self.check("server/core/a.cc", '#include "gridclock/v1/types.pb.h"')
        self.assertEqual(code, 1)
        code, _ = self.check("proto/codec/a.cc", '#include "gridclock/v1/types.pb.h"')
        self.assertEqual(code, 0)

    def test_stubs_not_in_the_codec(self):
        code, _ = self.check("proto/codec/a.cc", '#include "gridclock/v1/kernels.grpc.pb.h"')
        self.assertEqual(code, 1)

    def test_unknown_header(self):
        code, out = self.check("base/a.cc", "#include <boost/any.hpp>")
        self.assertEqual(code, 1)
        self.assertIn("neither in the tree nor a known third party", out)

    def test_file_in_no_room(self):
        code, out = self.check("misc/a.cc", "")
        self.assertEqual(code, 1)
        self.assertIn("misc/a.cc:1: the file lies in no room", out)

    def test_main_may_include_its_process(self):
        code, _ = self.check("server/main.cc", '#include "server/rpc/a.h"', ["server/rpc/a.h"])
        self.assertEqual(code, 0)

    def test_an_empty_tree_is_not_a_pass(self):
        self.assertEqual(Tree({"README.md": ""}).run("check_layers.py")[0], 1)


class Strangers(unittest.TestCase):
    def found(self, text):
        return Tree({"notes.md": text}).run("check_strangers.py")

    def test_clean(self):
        self.assertEqual(self.found("Write to /var/lib/gridclock and $HOME/work.\n")[0], 0)

    def test_each_word(self):
        for text in ["see /wo" + "rk/main", "/home/" + "someone/x", "from py" + "pi.org", "GPU-" + "0123abcd-4567",
                     "-----BEGIN PRIV" + "ATE KEY-----", "../sha" + "red/DESIGN.md"]:
            code, out = self.found(f"first line\n{text}\n")
            self.assertEqual(code, 1, text)
            self.assertIn("notes.md:2: ", out)


class KernelsPage(unittest.TestCase):
    def check(self, page, *options):
        return Tree({"kernels/catalog/gelu.cu": "GC_CUDA_VARIANTS(gelu) {", "kernels/catalog/scale.cu": "",
                     "docs/kernels.md": page}).run("check_kernels_page.py", *options)

    def test_variants_for_gpus_are_asked_for_where_that_is_wanted(self):
        without, with_them = ("## gelu\n\n" + lines + "\n## scale\n" for lines in ("", "| `vec4` | cuda | 16 bytes |\n"))
        self.assertEqual(self.check(without)[0], 0)
        code, out = self.check(without, "--gpus")
        self.assertEqual(code, 1)
        self.assertIn("lacks the variants for GPUs of gelu: ", out)
        self.assertEqual(self.check(with_them, "--gpus")[0], 0)

    def test_a_page_with_all_kernels(self):
        self.assertEqual(self.check("## gelu\n\n## scale\n"), (0, "kernels page: all of 2\n"))

    def test_a_kernel_that_the_page_lacks(self):
        code, out = self.check("## gelu\n\n[scale](#scale)\n## scales\n")
        self.assertEqual(code, 1)
        self.assertIn("lacks scale: ", out)
        self.assertIn("gridclock-kernels-doc docs/kernels.md", out)


class Size(unittest.TestCase):
    def test_long_function(self):
        body = "\n".join(f"  a += {i};" for i in range(60))
        code, out = Tree({"base/a.cc": f"int Long() {{\n  int a = 0;\n{body}\n  return a;\n}}\n"}).run("size.py", "--check")
        self.assertEqual(code, 1)
        self.assertIn("base/a.cc:1: Long has 64 lines", out)

    def test_long_file(self):
        code, out = Tree({"base/a.cc": "int F() { return 1; }\n" + "// x\n" * 600}).run("size.py", "--check")
        self.assertEqual(code, 1)
        self.assertIn("base/a.cc:1: 601 lines", out)

    def test_short(self):
        code, _ = Tree({"base/a.cc": "int F() { return 1; }\n"}).run("size.py", "--check")
        self.assertEqual(code, 0)


class Tidy(unittest.TestCase):
    SOURCES = {"a.cc": '#include "few.h"\n', "b.cc": '#include "many.h"\n', "c.cc": "int c;\n",
               "few.h": '#include "many.h"\n', "many.h": "int Many();\n"}

    def setUp(self):
        """Three sources, in two commits of which the last changed none, and a clang-tidy that finds nothing."""
        self.tree = Tree({**self.SOURCES, ".clang-tidy": "", ".gitignore": "build/\ntools/\nbin/\n"})
        self.root = self.tree.root
        self.commit()
        self.commit()
        (self.root / "bin").mkdir()
        self.finds("exit 0")
        (self.root / "tools").mkdir()
        shutil.copy(TOOLS / "tidy.py", self.root / "tools")
        self.knows("a.cc", "b.cc", "c.cc")

    def git(self, *args):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@localhost", *args], cwd=self.root, check=True)

    def commit(self):
        self.git("commit", "-q", "--allow-empty", "-a", "-m", "x")

    def finds(self, script):
        (self.root / "bin/clang-tidy").write_text(f"#!/bin/sh\n[ \"$1\" = --version ] || {script}\n")
        (self.root / "bin/clang-tidy").chmod(0o755)

    def knows(self, *sources):
        self.build = self.root / "build/dev"
        self.build.mkdir(parents=True, exist_ok=True)
        commands = [{"file": str(self.root / name), "command": f"g++ {name}"} for name in sources]
        (self.build / "compile_commands.json").write_text(json.dumps(commands))

    def tidy(self, *args):
        ran = subprocess.run([sys.executable, self.root / "tools/tidy.py", "--build", self.build, *args], cwd=self.root,
                             capture_output=True, text=True,
                             env={**os.environ, "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"})
        return ran.returncode, ran.stdout + ran.stderr

    def tidied(self):
        """In which order."""
        self.finds("exit 1")
        return re.findall(r"(\S+): not tidy", self.tidy()[1])

    def test_what_did_not_change_is_left_to_the_nightly_run(self):
        code, out = self.tidy("--budget", "-1")
        self.assertEqual(code, 0)
        self.assertIn(" 0 left for the nightly run, of 3 sources\n", out)

    def test_what_changed_is_first_then_what_includes_the_header_of_fewest(self):
        for name in ("c.cc", "few.h", "many.h"):
            with open(self.root / name, "a") as file:
                file.write("// More.\n")
        self.assertEqual(self.tidied(), ["c.cc", "a.cc", "b.cc"])

    def test_what_the_budget_does_not_reach_is_said(self):
        (self.root / "many.h").write_text("long Many();\n")
        code, out = self.tidy("--budget", "-1")
        self.assertEqual(code, 0)
        self.assertIn(" 2 left for the nightly run, of 3 sources\n", out)
        self.assertIn("clang-tidy has NOT looked at 2 sources, left for the nightly run: a.cc b.cc\n", out)

    def test_a_new_file_that_git_does_not_know_yet(self):
        (self.root / "new.cc").write_text("int d;\n")
        self.knows("a.cc", "b.cc", "c.cc", "new.cc")
        self.assertEqual(self.tidied(), ["new.cc"])

    def test_since_the_main_branch_where_there_is_one(self):
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        (self.root / "c.cc").write_text("long c;\n")
        self.commit()
        self.commit()
        self.assertEqual(self.tidied(), ["c.cc"])
        self.git("update-ref", "-d", "refs/remotes/origin/main")
        self.assertEqual(self.tidied(), [])

    def test_a_clone_without_the_commit_before_is_not_a_pass(self):
        (self.root / ".git/shallow").write_text(subprocess.run(["git", "rev-parse", "HEAD"], cwd=self.root, check=True,
                                                               capture_output=True, text=True).stdout)
        code, out = self.tidy()
        self.assertEqual(code, 1)
        self.assertIn("tidy.py: git diff --name-only HEAD~1 failed: ", out)
        self.assertEqual(self.tidy("--all")[0], 0)

    def test_the_nightly_run_leaves_nothing(self):
        self.assertEqual(self.tidy("--all")[0], 0)
        (self.root / "c.cc").write_text("long c;\n")
        code, out = self.tidy("--all", "--budget", "-1")
        self.assertEqual(code, 1)
        self.assertIn(" 1 not tidied: the budget is spent, of 3 sources\n", out)


class ResultLines(unittest.TestCase):
    def lines(self, log):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(log)
            file.flush()
            script = 'source "$1/common.sh"; result_lines "$2"'
            return subprocess.run(["bash", "-c", script, "-", TOOLS, file.name], capture_output=True, text=True,
                                  check=True).stdout

    def test_of_tests_it_is_how_many_passed_and_which_failed(self):
        result = ("50% tests passed, 1 tests failed out of 2\n", "Total Test time (real) =   3.00 sec\n",
                  "The following tests FAILED:\n", "\t  2 - b_test (Failed)\n")
        passed, took, following, failed = result
        labels = "Label Time Summary:\ncore = 3 sec*proc\n"
        log = f"2/2 Test #2: b_test ... Passed\n{passed}\n{labels}{took}\n{following}{failed}"
        self.assertEqual(self.lines(log), "".join(result))

    def test_of_ci_it_is_its_stages(self):
        result = "== stages, 9 s in all\n   demo        3 s  passed\n   lint        6 s  FAILED\ndev: ci failed: lint\n"
        self.assertEqual(self.lines(f"== stage demo\n   a note\n{result}"), result)

    def test_of_demo_and_lint_it_is_their_last_line(self):
        for result in ("demo: passed: all\n", "== lint: all checks passed\n"):
            self.assertEqual(self.lines(f"== lint: tidy\n   more\n{result}"), result)

    def test_what_says_no_result_is_known_by_its_end(self):
        self.assertEqual(self.lines("1\n2\n3\n4\n5\n6\n"), "2\n3\n4\n5\n6\n")


class GpuBundle(unittest.TestCase):
    def test_without_cupti_is_none(self):
        tree = Tree({"build/CMakeCache.txt": "CUDA_cupti_LIBRARY:FILEPATH=CUDA_cupti_LIBRARY-NOTFOUND\n", "build/bin/empty": ""})
        ran = subprocess.run(["bash", TOOLS / "gpu_bundle.sh", tree.root / "build/bin", tree.root / "bundle"],
                             capture_output=True, text=True)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("no libcupti", ran.stderr)


class Ci(unittest.TestCase):
    """With stages that do nothing, on a machine without a CUDA compiler."""

    def run_ci(self, **environment):
        files = {path: (TOOLS / pathlib.Path(path).name).read_text() for path in ("tools/ci.sh", "tools/common.sh")}
        files["tools/ci.sh"] = files["tools/ci.sh"].replace("/usr/local/cuda/bin/nvcc", "no_such_nvcc")
        tree = Tree({**files, "dev": "#!/bin/sh\n", "tools/fuzz.sh": "#!/bin/sh\n"})
        for path in ("dev", "tools/fuzz.sh"):
            (tree.root / path).chmod(0o755)
        ours = {name: value for name, value in os.environ.items() if name != "GRIDCLOCK_CI_WITHOUT_CUDA"}
        ran = subprocess.run(["bash", tree.root / "tools/ci.sh"], capture_output=True, text=True,
                             env={**ours, "CUDACXX": "no_such_nvcc", "GRIDCLOCK_TEST_SEED": "1", **environment})
        return ran.returncode, ran.stdout + ran.stderr

    def test_fails_where_no_cuda_file_is_compiled_unless_that_is_wanted(self):
        code, said = self.run_ci()
        self.assertEqual(code, 1, said)
        self.assertIn("ci failed: nvcc", said)
        code, said = self.run_ci(GRIDCLOCK_CI_WITHOUT_CUDA="1")
        self.assertEqual(code, 0, said)
        self.assertIn("NO .cu FILE IS COMPILED", said)


if __name__ == "__main__":
    unittest.main()
