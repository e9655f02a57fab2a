"""The table of rooms that people read is the one that tools/check_layers.py holds every include against."""
import pathlib
import re
import sys
import unittest

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tools"))
import check_layers  # noqa: E402

ROOMS = {"base": ["base"], "types": ["proto/types"], "messages": ["messages", "protobuf"],
         "codec": ["proto/codec", "messages", "protobuf"], "stubs": ["stubs"], "cpp": ["client/cpp"],
         "core": ["server/core"],
         **{name: [f"kernels/{name}"] for name in ("api", "catalog", "device", "device/cuda", "timing", "verify", "sandbox")}}
THIRD = {"spdlog": "spdlog", "Highway": "simd", "oneTBB": "tbb", "CUDA's runtime": "cuda", "libseccomp": "seccomp",
         "xxHash": "xxhash", "CLI11": "cli11", "civetweb": "civetweb", "nlohmann-json": "json", "gRPC": "grpc",
         "OpenSSL": "openssl", "libzip": "zip"}
ASIDE = {"abseil", "posix"}  # The page says of these in one sentence who may.


def page():
    """Room -> what the page lets it include."""
    rooms = {}
    text = (REPO / "ARCHITECTURE.md").read_text()
    for names, include, third in re.findall(r"(?m)^\| (`\w[^|]*`) \| [^|]* \| ([^|]*) \| ([^|]*) \|$", text):
        if include == "all of its process":
            continue
        allowed = {room for word in include.split(", ") if word != "-" for room in ROOMS[word]}
        allowed |= {group for word, group in THIRD.items() if re.search(rf"\b{word}\b", third)}
        for name in re.findall(r"`(.+?)/`", names):
            rooms[name] = allowed
    return rooms


def checked():
    """Room -> what any of its files may include."""
    rooms = {}
    for name, allowed in check_layers.TABLE.items():
        room = max((r for r in check_layers.TABLE if "." not in r and f"{name}/".startswith(f"{r}/")), key=len, default=None)
        if room not in (None, "examples", "tests"):
            folders = {check_layers.room_of(a, [r for r in check_layers.TABLE if "." not in r]) or a for a in allowed}
            rooms.setdefault(room, set()).update(folders - ASIDE - {room})
    return rooms


class Architecture(unittest.TestCase):
    def test_the_page_is_the_table_that_is_checked(self):
        self.maxDiff = None
        read = page()
        self.assertEqual(sorted(read), sorted(checked()))
        for room, allowed in checked().items():
            self.assertEqual(sorted(read[room]), sorted(allowed), room)

    def test_every_third_party_of_the_page_is_known(self):
        for line in re.findall(r"(?m)^\| `\w[^|]*/` \|.*\| ([^|]*) \|$", (REPO / "ARCHITECTURE.md").read_text()):
            if line != "-":
                self.assertTrue(any(word in line for word in THIRD), line)


if __name__ == "__main__":
    unittest.main()
