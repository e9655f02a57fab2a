"""Three kernels of a first course, in Triton."""

import triton
import triton.language as tl


@triton.jit
def square_kernel(output_ptr, input_ptr, input_row_stride, output_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    """Squares a row; BLOCK_SIZE is the next power of two, so one program holds a whole row."""
    row_idx = tl.program_id(0)
    col_offsets = tl.arange(0, BLOCK_SIZE)
    row = tl.load(input_ptr + row_idx * input_row_stride + col_offsets, mask=col_offsets < n_cols, other=-float("inf"))
    tl.store(output_ptr + row_idx * output_row_stride + col_offsets, row * row, mask=col_offsets < n_cols)


@triton.jit
def square_loop_kernel(output_ptr, input_ptr, input_row_stride, output_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    """The same for rows of any length: a block of fixed size goes along the row."""
    row_idx = tl.program_id(0)
    for start in range(0, n_cols, BLOCK_SIZE):
        col_offsets = start + tl.arange(0, BLOCK_SIZE)
        row = tl.load(input_ptr + row_idx * input_row_stride + col_offsets, mask=col_offsets < n_cols,
                      other=-float("inf"))
        tl.store(output_ptr + row_idx * output_row_stride + col_offsets, row * row, mask=col_offsets < n_cols)


@triton.jit
def softmax_kernel(output_ptr, input_ptr, input_row_stride, output_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    """Softmax of a row without a round trip to memory. What the mask leaves out is -inf: its power is 0."""
    row_idx = tl.program_id(0)
    col_offsets = tl.arange(0, BLOCK_SIZE)
    row = tl.load(input_ptr + row_idx * input_row_stride + col_offsets, mask=col_offsets < n_cols, other=-float("inf"))
    numerator = tl.exp(row - tl.max(row, axis=0))
    softmax = numerator / tl.sum(numerator, axis=0)
    tl.store(output_ptr + row_idx * output_row_stride + col_offsets, softmax, mask=col_offsets < n_cols)
