"""docs/errors.md has every pair of code and reason that the sources can send, and no other."""
import pathlib
import re
import unittest

REPO = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("base", "proto/codec", "proto/types", "server/core", "server/fleet", "server/rpc", "kernels")
CODES = ("CANCELLED", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
         "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL",
         "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED")
BY_NAME = {code.replace("_", "").lower(): code for code in CODES}
# What names a code: absl::InternalError(...), kInternal, and our InvalidField(...).
CODE = re.compile(r"absl::(\w+)Error\(|\bk(\w+)\b|\b(InvalidField)\(")
WORD = re.compile(r'(?<![=!]= )"([A-Z]{2,}(?:_[A-Z]+)*)"')
# Words in capitals that are no reasons: names in a process's environment, and the like.
NO_REASON = re.compile(r"(CUDA|GRIDCLOCK|RLIMIT|PR|TORCH)_|(FILE|LD_LIBRARY_PATH|NOT_STARTED|UNKNOWN|EAGER|EVENT_PAIR|GPU)$")


def statements(text):
    """Pieces of code that end with a semicolon, without comments and without what messages say."""
    text = re.sub(r"//.*", "", text)
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"', lambda m: m[0] if WORD.fullmatch(m[0]) else '""', text)
    return re.split(r";|[{}]\n", text)


def pairs_in(text):
    """(code, reason) of each reason; no code where the statement does not name one."""
    for statement in statements(text):
        for match in WORD.finditer(statement):
            if NO_REASON.match(match[1]):
                continue
            named = [(a or b or "InvalidArgument").lower() for a, b, _ in CODE.findall(statement[:match.start()])]
            codes = [BY_NAME[name] for name in named if name in BY_NAME]
            yield (codes or [None])[-1], match[1]


def pairs_sent():
    paths = [path for folder in FOLDERS for path in sorted((REPO / folder).rglob("*.*"))]
    return {pair: path.relative_to(REPO) for path in paths if path.suffix in (".cc", ".h", ".cu", ".cuh")
            for pair in pairs_in(path.read_text())}


def pairs_told(page):
    """Of the rows `| CODE | REASON | ...`; a code without a reason has a dash there."""
    rows = re.findall(r"^\| `([A-Z_]+)` \| (?:`([A-Z_]+)`|-) \|", page, re.MULTILINE)
    return {(code, reason or None) for code, reason in rows}


class Errors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sent = pairs_sent()
        cls.told = pairs_told((REPO / "docs/errors.md").read_text())

    def test_what_is_sent_is_told(self):
        reasons = {reason for _, reason in self.told}
        missing = [f"{code or 'some code'} {reason}, in {path}" for (code, reason), path in self.sent.items()
                   if (code, reason) not in self.told and not (code is None and reason in reasons)]
        self.assertEqual(missing, [], "not in docs/errors.md")

    def test_what_is_told_is_sent(self):
        gone = [pair for pair in self.told if pair[1] and pair not in self.sent and (None, pair[1]) not in self.sent]
        self.assertEqual(gone, [], "in docs/errors.md, and nothing sends it")

    def test_codes_are_codes_and_most_reasons_have_one(self):
        self.assertEqual({code for code, _ in self.told} - set(CODES), set())
        self.assertGreater(len([code for code, _ in self.sent if code]), 20)

    def test_the_reader_of_sources(self):
        text = ('return WithReason(absl::InternalError("a; b IS BAD"), "ONE");\n'
                'return WithReason(InvalidField("f", "text"), "SIX");\n'
                'if (kind == "TWO") return {kUnavailable, "THREE"};  // "FOUR"\n'
                'details.reason = "FIVE";\nsetenv("CUDA_HOME");\n')
        self.assertEqual(list(pairs_in(text)), [("INTERNAL", "ONE"), ("INVALID_ARGUMENT", "SIX"), ("UNAVAILABLE", "THREE"), (None, "FIVE")])


if __name__ == "__main__":
    unittest.main()
