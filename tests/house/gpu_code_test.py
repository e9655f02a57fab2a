"""A worker holds the code of the GPUs that it was built for, and a release that of all we name.

usage: gpu_code_test.py [WORKER ARCHITECTURES]    as CMAKE_CUDA_ARCHITECTURES, with commas
"""
import json
import pathlib
import re
import struct
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKER, ARCHITECTURES = sys.argv[1:] if len(sys.argv) == 3 else ("", "")

# A "fatbin", as nvcc puts it into a program: cuobjdump, which reads it too, is not everywhere where
# nvcc is.
MAGIC = struct.pack("<I", 0xBA55ED50)
PTX, ELF = 1, 2
OF_ONE_GPU = 0x100000  # The "a" of 90a.


def entries(program):
    """("ptx" or "elf", "90a") of each piece of code in the program."""
    at = program.find(MAGIC)
    while at >= 0:
        version, header, size = struct.unpack_from("<HHQ", program, at + 4)
        end = at + header + size if version == 1 and header == 16 else at + 4
        piece = at + header
        while piece < end and end != at + 4:
            kind, _, head, length = struct.unpack_from("<HHIQ", program, piece)
            number, = struct.unpack_from("<I", program, piece + 28)
            flags, = struct.unpack_from("<Q", program, piece + 40)
            yield {PTX: "ptx", ELF: "elf"}.get(kind, kind), f"{number}{'a' if flags & OF_ONE_GPU else ''}"
            piece += max(1, head + length)
        at = program.find(MAGIC, end)


def wanted(architectures):
    for name in architectures:
        number, _, only = name.partition("-")
        if only != "virtual":
            yield "elf", number
        if only != "real":
            yield "ptx", number


def release_list():
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    release, = (preset for preset in presets if preset["name"] == "release")
    return release["cacheVariables"]["GRIDCLOCK_CUDA_ARCHITECTURES"].split(";")


class Release(unittest.TestCase):
    def test_has_code_for_each_gpu_and_ptx_of_the_newest(self):
        self.assertEqual(sorted(wanted(release_list())),
                         sorted([("elf", number) for number in ["75", "80", "86", "89", "90a", "100", "120"]]
                                + [("ptx", "120")]))

    def test_is_what_the_page_says(self):
        page = (ROOT / "docs/gpus.md").read_text()
        rows = re.findall(r"^\|[^|]*\| \d+\.\d+ \| `(\w+)` \|$", page, re.MULTILINE)
        self.assertEqual(rows, [number for kind, number in wanted(release_list()) if kind == "elf"])


@unittest.skipUnless(ARCHITECTURES[:1].isdigit(), "built without CUDA, or for the GPU that is here")
class Worker(unittest.TestCase):
    def test_holds_what_it_was_built_for(self):
        program = pathlib.Path(WORKER).read_bytes()
        self.assertEqual(set(entries(program)), set(wanted(ARCHITECTURES.split(","))))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
