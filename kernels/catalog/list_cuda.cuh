// Element-wise kernels over lists of tensors on a GPU. A list of a thousand small tensors is bound
// by launches, not by memory, so the ladder goes from a launch for each operation and tensor to one
// launch for all:
//
//   naive           an elementary operation at a time, a tensor at a time: M x N launches
//   foreach         an elementary operation at a time, over the whole list: M launches
//   per_tensor      the fused operation, a tensor at a time: N launches
//   param_struct    fused, pointers and sizes in the launch's arguments: as many launches as they
//                   have room for
//   pointer_table   fused, one launch; pointers and sizes in a table that is copied there first
//   auto            param_struct where 4,096 bytes of arguments take the list, else pointer_table
//
// A GPU takes about a thousand launches before its host must wait. More of them cannot be timed by
// the methods that hold the device back until all are queued: event_pair and back_to_back time the
// first three of a long list.
#ifndef GRIDCLOCK_KERNELS_CATALOG_LIST_CUDA_CUH_
#define GRIDCLOCK_KERNELS_CATALOG_LIST_CUDA_CUH_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/catalog/cuda_element.cuh"
#include "kernels/catalog/cuda_launch.cuh"
#include "kernels/catalog/list_sizes.h"
#include "kernels/catalog/list_table.cuh"

namespace gridclock::cuda::list {

// A fused operation over the tensors of a list:
//   struct Op {
//     using Element = T;
//     static constexpr int kOperands = 3;
//     static constexpr unsigned kReads = 0b011, kWrites = 0b100;  // Bit k: operand k.
//     __device__ void operator()(Wide<T> (&x)[kOperands]) const;  // Of one place in each operand.
//   };
template <class Op>
using WideOf = Wide<typename Op::Element>;

// An elementary operation of the unfused variants: column `to` becomes one of columns `a`, `b` and
// a number. Columns are the operands, and behind them temporary tensors, which are wide.
enum class Do : std::uint8_t { kAdd, kSubtract, kMultiply, kDivide, kRoot, kScale, kShift };
struct Step {
  Do what = Do::kAdd;
  int to = 0, a = 0, b = 0;
  double number = 0;
};

// --- What one block does ---

// Packs of each operand that a thread asks for before it waits: they, with the warps that fit, hide
// how far memory is.
template <class Op>
inline constexpr int kPacks = Op::kOperands > 3 ? 2 : 4;

template <class Op>
inline constexpr int kLanes = kPackBytes / static_cast<int>(sizeof(typename Op::Element));

// Elements of one block.
template <class Op>
inline constexpr std::int64_t kChunk = std::int64_t{kListThreads} * kLanes<Op>* kPacks<Op>;

// `packs` packs of `lanes` elements, a block's width apart; the first begins at element `first`.
template <int packs, int lanes, class Op>
__device__ void Apply(const Op& op, void* const* at, std::int64_t first) {
  using T = typename Op::Element;
  using P = Pack<T, lanes>;
  const auto place = [&](int k, int i) {
    return reinterpret_cast<P*>(static_cast<T*>(at[k]) + first + i * kListThreads * lanes);
  };
  P in[packs][Op::kOperands];
#pragma unroll
  for (int i = 0; i < packs; ++i) {
#pragma unroll
    for (int k = 0; k < Op::kOperands; ++k) {
      if ((Op::kReads >> k & 1) != 0) in[i][k] = *place(k, i);
    }
  }
#pragma unroll
  for (int i = 0; i < packs; ++i) {
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) {
      WideOf<Op> x[Op::kOperands];
#pragma unroll
      for (int k = 0; k < Op::kOperands; ++k) {
        x[k] = (Op::kReads >> k & 1) != 0 ? Widen(in[i][k].lane[lane]) : WideOf<Op>{0};
      }
      op(x);
#pragma unroll
      for (int k = 0; k < Op::kOperands; ++k) {
        if ((Op::kWrites >> k & 1) != 0) in[i][k].lane[lane] = Narrow<T>(x[k]);
      }
    }
#pragma unroll
    for (int k = 0; k < Op::kOperands; ++k) {
      if ((Op::kWrites >> k & 1) != 0) *place(k, i) = in[i][k];
    }
  }
}

// The chunk of this number of a tensor of `size` elements.
template <class Op>
__device__ void ApplyChunk(const Op& op, void* const* at, std::int64_t size, std::int64_t chunk) {
  constexpr int kWidth = kLanes<Op>;
  const std::int64_t begin = chunk * kChunk<Op>;
  const std::int64_t end = size - begin < kChunk<Op> ? size : begin + kChunk<Op>;
  std::uintptr_t addresses = 0;
#pragma unroll
  for (int k = 0; k < Op::kOperands; ++k) addresses |= reinterpret_cast<std::uintptr_t>(at[k]);
  const bool aligned = addresses % kPackBytes == 0;
  if (aligned && end - begin == kChunk<Op>) {
    Apply<kPacks<Op>, kWidth>(op, at, begin + threadIdx.x * kWidth);
    return;
  }
  // The end of a tensor, or one that lies askew, where all of it goes one element at a time.
  const std::int64_t whole = aligned ? end - (end - begin) % kWidth : begin;
  for (std::int64_t i = begin + threadIdx.x * kWidth; i < whole; i += kListThreads * kWidth) {
    Apply<1, kWidth>(op, at, i);
  }
  for (std::int64_t i = whole + threadIdx.x; i < end; i += kListThreads) Apply<1, 1>(op, at, i);
}

// --- Fused kernels ---

template <class Op>
struct OneTensor {
  void* at[Op::kOperands];
  std::int64_t size;
};

template <class Op>
__global__ void __launch_bounds__(kListThreads) TensorKernel(Op op, OneTensor<Op> tensor) {
  ApplyChunk(op, tensor.at, tensor.size, blockIdx.x);
}

template <class Op, int kArgBytes>
struct Arguments {
  static constexpr int kMost =
      static_cast<int>(gridclock::list::TensorsOfALaunch(Op::kOperands, kArgBytes));
  Op op;
  int count;
  void* at[kMost][Op::kOperands];
  std::int64_t size[kMost];
  int first[kMost];  // Block.
};

// The arguments are read where they lie, in constant memory; a copy would go to local memory.
template <class Op, int kArgBytes>
__global__ void __launch_bounds__(kListThreads)
    ParamKernel(const __grid_constant__ Arguments<Op, kArgBytes> list) {
  const int block = static_cast<int>(blockIdx.x);
  const int i = LastNotAboveInArguments(list.first, list.count, block);
  ApplyChunk(list.op, list.at[i], list.size[i], block - list.first[i]);
}

template <class Op>
__global__ void __launch_bounds__(kListThreads) TableKernel(Op op, Table table) {
  const int block = static_cast<int>(blockIdx.x);
  const int i = LastNotAbove(table.first, table.count, block);
  void* at[Op::kOperands];
#pragma unroll
  for (int k = 0; k < Op::kOperands; ++k) at[k] = table.at[i * Op::kOperands + k];
  ApplyChunk(op, at, table.size[i], block - table.first[i]);
}

// --- Elementary kernels ---

template <typename T>
struct Column {
  void* data;
  bool wide;
  __device__ Wide<T> Get(std::int64_t i) const {
    return wide ? static_cast<const Wide<T>*>(data)[i] : Widen(static_cast<const T*>(data)[i]);
  }
  __device__ void Set(std::int64_t i, Wide<T> x) const {
    if (wide) {
      static_cast<Wide<T>*>(data)[i] = x;
    } else {
      static_cast<T*>(data)[i] = Narrow<T>(x);
    }
  }
};

template <typename W>
__device__ W Compute(const Step& step, W a, W b) {
  switch (step.what) {
    case Do::kAdd:
      return a + b;
    case Do::kSubtract:
      return a - b;
    case Do::kMultiply:
      return a * b;
    case Do::kDivide:
      return a / b;
    case Do::kRoot:
      return sqrt(a);
    case Do::kScale:
      return a * static_cast<W>(step.number);
    default:
      return a + static_cast<W>(step.number);
  }
}

template <typename T>
__global__ void StepKernel(Step step, Column<T> to, Column<T> a, Column<T> b, std::int64_t n) {
  for (std::int64_t i = GridThread(); i < n; i += GridThreads()) {
    to.Set(i, Compute(step, a.Get(i), b.Get(i)));
  }
}

inline constexpr std::int64_t kStepChunk = 4 * kListThreads;

template <typename T>
__global__ void __launch_bounds__(kListThreads)
    StepListKernel(Step step, Table table, int operands, int columns) {
  const int block = static_cast<int>(blockIdx.x);
  const int t = LastNotAbove(table.first, table.count, block);
  const auto column = [&](int k) { return Column<T>{table.at[t * columns + k], k >= operands}; };
  const Column<T> to = column(step.to), a = column(step.a), b = column(step.b);
  const std::int64_t begin = (block - table.first[t]) * kStepChunk;
  for (std::int64_t i = begin + threadIdx.x; i < begin + kStepChunk && i < table.size[t];
       i += kListThreads) {
    to.Set(i, Compute(step, a.Get(i), b.Get(i)));
  }
}

// --- The host's side of the ladder ---

enum class Rung : std::uint8_t { kNaive, kForeach, kPerTensor, kParamStruct, kPointerTable, kAuto };

// What a kernel is made of: its fused operation, the operands in the order of its columns, and the
// same in elementary steps.
template <class Op>
struct Recipe {
  Op op;
  std::array<const OperandView*, Op::kOperands> operands;
  std::vector<Step> steps;
  int temporaries = 0;

  std::int64_t count() const { return static_cast<std::int64_t>(operands[0]->data.size()); }
  std::int64_t Size(std::int64_t i) const {
    return Elements(operands[0]->value->tensors[static_cast<std::size_t>(i)].shape);
  }
  void* At(std::int64_t i, int k) const {
    return operands[static_cast<std::size_t>(k)]->data[static_cast<std::size_t>(i)];
  }
};

template <class Op>
absl::Status RunNaive(const Call& call, const Recipe<Op>& recipe) {
  using T = typename Op::Element;
  for (std::int64_t i = 0; i < recipe.count(); ++i) {
    const std::int64_t size = recipe.Size(i);
    if (size == 0) continue;
    const auto column = [&](int k) {
      const bool wide = k >= Op::kOperands;
      return Column<T>{wide ? call.scratch[static_cast<std::size_t>(k - Op::kOperands)].data[0]
                            : recipe.At(i, k),
                       wide};
    };
    for (const Step& step : recipe.steps) {
      GC_RETURN_IF_ERROR(Launch(call, StepKernel<T>,
                                {.grid = {Blocks(size, kListThreads)}, .block = {kListThreads}},
                                step, column(step.to), column(step.a), column(step.b), size));
    }
  }
  return absl::OkStatus();
}

template <class Op>
absl::Status RunForeach(const Call& call, const Recipe<Op>& recipe) {
  using T = typename Op::Element;
  const int columns = Op::kOperands + recipe.temporaries;
  TableBuilder builder(recipe.count(), columns, kStepChunk);
  std::int64_t before = 0;  // Elements: the temporary tensors of a list lie behind each other.
  for (std::int64_t i = 0; i < recipe.count(); ++i) {
    builder.Add(recipe.Size(i), [&](int k) -> void* {
      if (k < Op::kOperands) return recipe.At(i, k);
      const auto& temporary = call.scratch[static_cast<std::size_t>(1 + k - Op::kOperands)];
      return static_cast<WideOf<Op>*>(temporary.data[0]) + before;
    });
    before += recipe.Size(i);
  }
  if (builder.blocks() == 0) return absl::OkStatus();
  GC_ASSIGN_OR_RETURN(const Table table, builder.Send(call, call.scratch[0].data[0]));
  for (const Step& step : recipe.steps) {
    GC_RETURN_IF_ERROR(Launch(call, StepListKernel<T>,
                              {.grid = {builder.blocks()}, .block = {kListThreads}}, step, table,
                              Op::kOperands, columns));
  }
  return absl::OkStatus();
}

template <class Op>
absl::Status RunPerTensor(const Call& call, const Recipe<Op>& recipe) {
  for (std::int64_t i = 0; i < recipe.count(); ++i) {
    OneTensor<Op> tensor{.at = {}, .size = recipe.Size(i)};
    if (tensor.size == 0) continue;
    for (int k = 0; k < Op::kOperands; ++k) tensor.at[k] = recipe.At(i, k);
    GC_RETURN_IF_ERROR(Launch(call, TensorKernel<Op>,
                              {.grid = {Blocks(tensor.size, kChunk<Op>)}, .block = {kListThreads}},
                              recipe.op, tensor));
  }
  return absl::OkStatus();
}

template <int kArgBytes, class Op>
absl::Status RunParamStruct(const Call& call, const Recipe<Op>& recipe) {
  using Args = Arguments<Op, kArgBytes>;
  static_assert(sizeof(Args) <= kArgBytes);
  for (std::int64_t begin = 0; begin < recipe.count(); begin += Args::kMost) {
    Args list{.op = recipe.op, .count = 0, .at = {}, .size = {}, .first = {}};
    const std::int64_t end = std::min<std::int64_t>(recipe.count(), begin + Args::kMost);
    std::int64_t blocks = 0;
    for (std::int64_t i = begin; i < end; ++i, ++list.count) {
      for (int k = 0; k < Op::kOperands; ++k) list.at[list.count][k] = recipe.At(i, k);
      list.size[list.count] = recipe.Size(i);
      list.first[list.count] = static_cast<int>(blocks);
      blocks += ChunksOf(recipe.Size(i), kChunk<Op>);
    }
    if (blocks == 0) continue;
    GC_RETURN_IF_ERROR(Launch(call, ParamKernel<Op, kArgBytes>,
                              {.grid = {blocks}, .block = {kListThreads}}, list));
  }
  return absl::OkStatus();
}

template <class Op>
absl::Status RunParamStruct(const Call& call, const Recipe<Op>& recipe, std::int64_t arg_bytes) {
  using gridclock::list::kFewArgBytes, gridclock::list::kManyArgBytes;
  return arg_bytes == kFewArgBytes ? RunParamStruct<kFewArgBytes>(call, recipe)
                                   : RunParamStruct<kManyArgBytes>(call, recipe);
}

template <class Op>
absl::Status RunPointerTable(const Call& call, const Recipe<Op>& recipe) {
  TableBuilder builder(recipe.count(), Op::kOperands, kChunk<Op>);
  for (std::int64_t i = 0; i < recipe.count(); ++i) {
    builder.Add(recipe.Size(i), [&](int k) { return recipe.At(i, k); });
  }
  if (builder.blocks() == 0) return absl::OkStatus();
  GC_ASSIGN_OR_RETURN(const Table table, builder.Send(call, call.scratch[0].data[0]));
  return Launch(call, TableKernel<Op>, {.grid = {builder.blocks()}, .block = {kListThreads}},
                recipe.op, table);
}

template <class Op>
absl::Status RunAuto(const Call& call, const Recipe<Op>& recipe) {
  constexpr std::int64_t kBytes = gridclock::list::kArgBytesOfAuto;
  return recipe.count() <= Arguments<Op, kBytes>::kMost ? RunParamStruct<kBytes>(call, recipe)
                                                        : RunPointerTable(call, recipe);
}

template <class Op>
absl::Status Run(const Call& call, Rung rung, const Recipe<Op>& recipe) {
  switch (rung) {
    case Rung::kNaive:
      return RunNaive(call, recipe);
    case Rung::kForeach:
      return RunForeach(call, recipe);
    case Rung::kPerTensor:
      return RunPerTensor(call, recipe);
    case Rung::kParamStruct:
      return RunParamStruct(call, recipe, call.binding->I64("arg_bytes"));
    case Rung::kPointerTable:
      return RunPointerTable(call, recipe);
    default:
      return RunAuto(call, recipe);
  }
}

// How the scratch of the variants is sized.
struct LadderWords {
  std::string list;      // An operand that is a list.
  std::string elements;  // Bytes of an element of a temporary tensor: "max(sizeof(T), 4)".
  int operands = 0, temporaries = 0;
};

// The temporary tensors are as large as the list, also for `naive`, which needs the largest
// tensor's size alone: words know no largest.
inline std::string TemporaryWords(const LadderWords& words) {
  std::string clauses;
  for (int t = 0; t < words.temporaries; ++t) {
    absl::StrAppend(&clauses, " scratch temporary", t, ": u8[numel(", words.list, ") * ",
                    words.elements, "]");
  }
  return clauses;
}

inline std::string TableWords(const LadderWords& words, int columns) {
  return absl::StrCat("scratch entries: u8[count(", words.list, ") * ",
                      gridclock::list::EntryBytes(columns), "]");
}

// The variants of a kernel over lists.
template <absl::Status (*kRun)(const Call& call, Rung rung)>
std::vector<Variant> Ladder(const LadderWords& words) {
  return {
      {"naive", "A launch for each elementary operation of each tensor",
       [](const Call& call) { return kRun(call, Rung::kNaive); }, TemporaryWords(words)},
      {"foreach", "A launch for each elementary operation, over the whole list",
       [](const Call& call) { return kRun(call, Rung::kForeach); },
       TableWords(words, words.operands + words.temporaries) + TemporaryWords(words)},
      {"per_tensor", "All operations in one launch for each tensor",
       [](const Call& call) { return kRun(call, Rung::kPerTensor); }},
      {"param_struct", "All in one launch for as many tensors as arg_bytes have room for",
       [](const Call& call) { return kRun(call, Rung::kParamStruct); }},
      {"pointer_table", "One launch; a table of pointers is copied to the device before it",
       [](const Call& call) { return kRun(call, Rung::kPointerTable); },
       TableWords(words, words.operands)},
      {"auto", "param_struct where 4,096 bytes of arguments take the list, else pointer_table",
       [](const Call& call) { return kRun(call, Rung::kAuto); }, TableWords(words, words.operands)},
  };
}

}  // namespace gridclock::cuda::list

#endif  // GRIDCLOCK_KERNELS_CATALOG_LIST_CUDA_CUH_
