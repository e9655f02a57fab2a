#!/usr/bin/env python3
"""Makes Python modules from Gridclock's .proto files: generate.py [PROTO_FOLDER [OUTPUT_FOLDER]]."""

import pathlib
import sys

import grpc_tools
from grpc_tools import protoc

HERE = pathlib.Path(__file__).resolve().parent


def generate(protos: pathlib.Path, out: pathlib.Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    files = [str(p) for p in sorted((protos / "gridclock" / "v1").glob("*.proto"))]
    files += [str(p) for p in sorted((protos / "google" / "rpc").glob("*.proto"))]
    # google/protobuf/any.proto comes with grpc_tools.
    well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    arguments = ["protoc", f"-I{protos}", f"-I{well_known}", f"--python_out={out}"]
    if protoc.main([*arguments, f"--grpc_python_out={out}", *files]) != 0:
        raise SystemExit(f"protoc failed on the files of {protos}")


if __name__ == "__main__":
    given = [pathlib.Path(a) for a in sys.argv[1:]]
    generate(
        given[0] if given else HERE.parent.parent / "proto",
        given[1] if len(given) > 1 else HERE / "generated",
    )
