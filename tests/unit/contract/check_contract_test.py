"""Every kind of break is refused, every addition passes. Each test writes a contract, takes it as
the baseline, changes the text of one .proto file and reads what the tool says."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
TOOL = ROOT / "tools" / "check_contract.py"

CONTRACT = """syntax = "proto3";
package gridclock.v1;
service Kernels {
  rpc Run(Request) returns (Answer);
  rpc Watch(Request) returns (stream Answer);
}
message Request {
  reserved 7, 9 to 12;
  reserved "old";
  string kernel = 1;
  repeated int64 dims = 2;
  optional double limit = 3;
  oneof source {
    bytes data = 4;
    Answer again = 5;
  }
  map<string, int64> attributes = 6;
  enum Mode {
    reserved 5;
    UNSET = 0;
    FAST = 1;
  }
  Mode mode = 8;
}
message Answer {
  double seconds = 1;
}
enum Flag {
  FLAG_UNSPECIFIED = 0;
  NOISY = 1;
}
"""


class ContractTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.proto = self.root / "proto" / "gridclock" / "v1" / "kernels.proto"
        self.proto.parent.mkdir(parents=True)
        self.proto.write_text(CONTRACT)
        (self.root / "CMakeLists.txt").write_text("project(gridclock VERSION 1.2.0 LANGUAGES CXX)\n")
        self.release("first release")

    def run_tool(self, *arguments):
        return subprocess.run(
            [sys.executable, TOOL, "--root", self.root, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )

    def release(self, words, begin="- wire:"):
        said = self.run_tool("--update").stdout
        mark = said[said.index("(contract ") :].strip()
        log = self.root / "CHANGELOG.md"
        log.write_text((log.read_text() if log.exists() else "") + f"{begin} {words} {mark}\n")

    def change(self, old, new):
        text = self.proto.read_text()
        self.assertEqual(text.count(old), 1, f"{old!r} must occur once")
        self.proto.write_text(text.replace(old, new))

    def assert_passes(self):
        run = self.run_tool()
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def assert_refused(self, line):
        run = self.run_tool()
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn(f"contract: {line}\n", run.stderr)

    def test_the_same_contract_passes(self):
        self.assert_passes()

    # ---- Additions ----

    def test_a_new_field_passes(self):
        self.change("double seconds = 1;", "double seconds = 1; string device = 2;")
        self.assert_passes()

    def test_a_new_message_enum_value_and_rpc_pass(self):
        self.change("message Answer {", "message More {} message Answer {")
        self.change("NOISY = 1;", "NOISY = 1; SUSPECT = 2;")
        self.change("rpc Run(", "rpc Stop(Request) returns (Answer); rpc Run(")
        self.assert_passes()

    def test_comments_and_order_are_nobodys_business(self):
        self.change("  string kernel = 1;\n  repeated int64 dims = 2;\n",
                    "  repeated int64 dims = 2;  // Sizes.\n  string kernel = 1;\n")
        self.assert_passes()

    def test_reserving_more_passes(self):
        self.change("9 to 12", "9 to 15")
        self.assert_passes()

    def test_a_new_file_passes(self):
        (self.proto.parent / "more.proto").write_text(
            'syntax = "proto3";\npackage gridclock.v1;\nmessage Other { int32 a = 1; }\n'
        )
        self.assert_passes()

    # ---- Fields ----

    def test_a_removed_field_is_refused(self):
        self.change("  string kernel = 1;\n", "")
        self.assert_refused("gridclock.v1.Request: field 'kernel' = 1 removed")

    def test_a_removed_field_is_refused_even_when_reserved(self):
        self.change("  string kernel = 1;\n", '  reserved 1; reserved "kernel";\n')
        self.assert_refused("gridclock.v1.Request: field 'kernel' = 1 removed")

    def test_a_renumbered_field_is_refused(self):
        self.change("string kernel = 1;", "string kernel = 20;")
        self.assert_refused("gridclock.v1.Request: field 'kernel' was 1, is 20")

    def test_a_renamed_field_is_refused(self):
        self.change("string kernel = 1;", "string name = 1;")
        self.assert_refused("gridclock.v1.Request: field 1 was 'kernel', is 'name'")

    def test_a_retyped_field_is_refused(self):
        self.change("repeated int64 dims", "repeated int32 dims")
        self.assert_refused("gridclock.v1.Request: field 'dims': type was int64, is int32")

    def test_another_message_type_is_refused(self):
        self.change("Answer again", "Request again")
        self.assert_refused(
            "gridclock.v1.Request: field 'again': type was gridclock.v1.Answer, is "
            "gridclock.v1.Request"
        )

    def test_another_type_in_a_map_is_refused(self):
        self.change("map<string, int64>", "map<string, double>")
        self.assert_refused(
            "gridclock.v1.Request.AttributesEntry: field 'value': type was int64, is double"
        )

    def test_repeated_that_becomes_single_is_refused(self):
        self.change("repeated int64 dims", "int64 dims")
        self.assert_refused("gridclock.v1.Request: field 'dims': label was repeated, is optional")

    def test_losing_presence_is_refused(self):
        self.change("optional double limit", "double limit")
        self.assert_refused("gridclock.v1.Request: field 'limit': label was explicit, is optional")

    def test_leaving_a_oneof_is_refused(self):
        self.change("  oneof source {\n    bytes data = 4;\n", "  bytes data = 4;\n  oneof source {\n")
        self.assert_refused("gridclock.v1.Request: field 'data': oneof was source, is none")

    def test_entering_a_oneof_is_refused(self):
        self.change("  string kernel = 1;\n", "")
        self.change("    bytes data = 4;\n", "    bytes data = 4;\n    string kernel = 1;\n")
        self.assert_refused("gridclock.v1.Request: field 'kernel': oneof was none, is source")

    # ---- Reservations ----

    def test_a_reserved_number_is_refused(self):
        self.change("reserved 7, 9 to 12;", "reserved 7;")
        self.change("string kernel = 1;", "string kernel = 1; string more = 10;")
        self.assert_refused("gridclock.v1.Request: field 'more' takes the reserved number 10")

    def test_a_reserved_name_is_refused(self):
        self.change('reserved "old";', "string old = 30;")
        self.assert_refused("gridclock.v1.Request: field 'old' takes a reserved name")

    def test_giving_up_a_reservation_is_refused(self):
        self.change("9 to 12", "9 to 11")
        self.assert_refused("gridclock.v1.Request: numbers 9 to 12 are no longer reserved")
        self.change('  reserved "old";\n', "")
        self.assert_refused("gridclock.v1.Request: name 'old' is no longer reserved")

    def test_a_reserved_enum_number_is_refused(self):
        self.change("reserved 5;\n    UNSET = 0;", "UNSET = 0; SLOW = 5;")
        self.assert_refused(
            "gridclock.v1.Request.Mode: value 'SLOW' takes the reserved number 5"
        )

    # ---- Messages, enums, rpcs ----

    def test_a_removed_message_is_refused(self):
        self.change("message Answer {", "message Reply {")
        self.proto.write_text(self.proto.read_text().replace("Answer", "Reply"))
        self.assert_refused("gridclock.v1.Answer: removed")

    def test_a_removed_enum_value_is_refused(self):
        self.change("  NOISY = 1;\n", "")
        self.assert_refused("gridclock.v1.Flag: value NOISY = 1 removed or renumbered")

    def test_a_renumbered_enum_value_is_refused(self):
        self.change("NOISY = 1;", "NOISY = 2;")
        self.assert_refused("gridclock.v1.Flag: value NOISY = 1 removed or renumbered")

    def test_a_renamed_enum_value_is_refused(self):
        self.change("NOISY = 1;", "LOUD = 1;")
        self.assert_refused("gridclock.v1.Flag: value 1 was NOISY, is LOUD")

    def test_a_removed_enum_is_refused(self):
        self.change("enum Flag {", "enum Other {")
        self.assert_refused("gridclock.v1.Flag: removed")

    def test_a_removed_rpc_is_refused(self):
        self.change("  rpc Run(Request) returns (Answer);\n", "")
        self.assert_refused("gridclock.v1.Kernels: rpc Run removed")

    def test_other_streaming_is_refused(self):
        self.change("rpc Run(Request)", "rpc Run(stream Request)")
        self.assert_refused(
            "gridclock.v1.Kernels: rpc Run: client_streams was False, is True"
        )
        self.change("returns (stream Answer)", "returns (Answer)")
        self.assert_refused(
            "gridclock.v1.Kernels: rpc Watch: server_streams was True, is False"
        )

    def test_other_messages_of_an_rpc_are_refused(self):
        self.change("rpc Run(Request) returns (Answer)", "rpc Run(Answer) returns (Request)")
        self.assert_refused(
            "gridclock.v1.Kernels: rpc Run: takes was gridclock.v1.Request, is gridclock.v1.Answer"
        )

    def test_a_removed_service_is_refused(self):
        self.change("service Kernels {", "service Others {")
        self.assert_refused("gridclock.v1.Kernels: removed")

    # ---- The baseline ----

    def test_a_break_passes_once_it_is_released_with_a_line(self):
        self.change("  string kernel = 1;\n", "")
        self.release("kernel is gone")
        self.assert_passes()

    def test_a_new_baseline_without_its_line_is_refused(self):
        self.change("  string kernel = 1;\n", "")
        self.run_tool("--update")
        self.assertIn("v1.2.0.json has changed: say so in CHANGELOG.md", self.run_tool().stderr)

    def test_a_line_that_does_not_begin_with_wire_does_not_count(self):
        self.change("  string kernel = 1;\n", "")
        self.release("kernel is gone", begin="- changed:")
        self.assertEqual(self.run_tool().returncode, 1)

    def test_a_baseline_edited_by_hand_is_refused(self):
        path = self.root / "proto" / "baseline" / "v1.2.0.json"
        baseline = json.loads(path.read_text())
        del baseline["messages"]["gridclock.v1.Answer"]["fields"]["1"]
        path.write_text(json.dumps(baseline))
        self.assertIn("v1.2.0.json has changed", self.run_tool().stderr)

    def test_the_newest_baseline_counts(self):
        (self.root / "CMakeLists.txt").write_text("project(gridclock VERSION 1.10.0 LANGUAGES CXX)\n")
        self.change("double seconds = 1;", "double seconds = 1; string device = 2;")
        self.release("second release")
        self.change("string device = 2;", "")
        self.assert_refused("gridclock.v1.Answer: field 'device' = 2 removed")

    def test_no_baseline_is_refused(self):
        (self.root / "proto" / "baseline" / "v1.2.0.json").unlink()
        self.assertIn("no baseline", self.run_tool().stderr)

    def test_a_contract_that_does_not_compile_says_why(self):
        self.change("string kernel = 1;", "strin kernel = 1;")
        run = self.run_tool()
        self.assertEqual(run.returncode, 1)
        self.assertIn('"strin" is not defined', run.stderr)


if __name__ == "__main__":
    unittest.main()
