#!/usr/bin/env python3
"""Compiles the kernels of kernels.py to PTX that Gridclock runs. No GPU, driver or PyTorch is needed.

usage: compile.py [--columns N] [--capability 90] [--ptx-version 87] [--cubins] FOLDER

Writes FOLDER/KERNEL.ptx. Its first lines are the kernel's words (docs/submit.md), made of what Triton
says of it; so `gridclock run FOLDER/KERNEL.ptx` needs nothing else. With --cubins also KERNEL.cubin, and
its words in KERNEL.words, for `gridclock run KERNEL.cubin --words "$(cat KERNEL.words)"`.
"""
import argparse
import os
import pathlib

# Whether a*b+c is one operation may change with Triton's version: results shall not.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

import triton  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

import kernels  # noqa: E402

LOOP_BLOCK = 1024
# All three have the same parameters. The pointers are promised to be multiples of 16 bytes, which the
# words repeat (`align 16`) for the server to check: a compiled kernel does not say it anywhere.
SIGNATURE = {"output_ptr": "*fp32", "input_ptr": "*fp32", "input_row_stride": "i32", "output_row_stride": "i32",
             "n_cols": "i32", "BLOCK_SIZE": "constexpr"}
PROMISES = {(0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]]}


def warps_for(block_size):
    """More threads for wider rows."""
    return 16 if block_size >= 4096 else 8 if block_size >= 2048 else 4


def words(name, metadata, most_columns):
    """How the kernel is called and launched. Two pointers that Triton adds stand last: memory for all
    blocks, and for its profiler. Neither is used here, so both are null."""
    if metadata.global_scratch_size or metadata.profile_scratch_size or metadata.num_ctas != 1:
        raise SystemExit(f"{name} wants scratch memory or clusters: its words must say so")
    limit = f" where N <= {most_columns}" if most_columns else ""
    return [f"{name} x: f32[M, N] -> y: f32[M, N]{limit}",
            f"  grid(M) block({metadata.num_warps * 32}) shared {metadata.shared}",
            "  params y align 16, x align 16, input_row_stride: int = N, output_row_stride: int = N,",
            "    n_cols: int = N, null, null"]


def compile_one(function, block_size, most_columns, options):
    source = ASTSource(function, SIGNATURE, constexprs={"BLOCK_SIZE": block_size}, attrs=PROMISES)
    # Left alone Triton writes PTX of its own newest version, which an older driver or ptxas refuses.
    made = triton.compile(source, target=GPUTarget("cuda", options.capability, 32),
                          options={"num_warps": warps_for(block_size), "ptx_version": options.ptx_version})
    name = function.__name__
    lines = words(name, made.metadata, most_columns)
    path = options.folder / f"{name}.ptx"
    path.write_text("".join(f"// gridclock: {line}\n" for line in lines) + made.asm["ptx"])
    if options.cubins:
        path.with_suffix(".cubin").write_bytes(made.asm["cubin"])
        path.with_suffix(".words").write_text(" ".join(map(str.strip, lines)))
    print(f"{path}: BLOCK_SIZE {block_size}, {made.metadata.num_warps} warps, {made.metadata.shared} bytes shared")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=781, help="of the longest row; default 781")
    parser.add_argument("--capability", type=int, default=90, help="of the GPU: 80, 86, 89, 90, ...; default 90")
    parser.add_argument("--ptx-version", type=int, default=87,
                        help="that Triton's own ptxas and the server's CUDA read; default 87, CUDA 12.8's")
    parser.add_argument("--cubins", action="store_true", help="the machine's code too, for a server with --allow-cubin")
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    whole_row = triton.next_power_of_2(options.columns)
    compile_one(kernels.square_kernel, whole_row, whole_row, options)
    compile_one(kernels.square_loop_kernel, LOOP_BLOCK, None, options)
    compile_one(kernels.softmax_kernel, whole_row, whole_row, options)


if __name__ == "__main__":
    main()
