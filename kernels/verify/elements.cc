#include "kernels/verify/elements.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/status.h"
#include "proto/types/convert.h"
#include "proto/types/tensor.h"

namespace gridclock {
namespace {

template <typename T>
double RoundedToOdd(const std::byte* data, std::int64_t index) {
  T x = 0;
  std::memcpy(&x, data + index * std::int64_t{sizeof(x)}, sizeof(x));
  const auto near = static_cast<double>(x);
  const __int128 rest = static_cast<__int128>(x) - static_cast<__int128>(near);
  if (rest == 0 || (std::bit_cast<std::uint64_t>(near) & 1) != 0) return near;
  const double infinity = std::numeric_limits<double>::infinity();
  return std::nextafter(near, rest > 0 ? infinity : -infinity);
}

}  // namespace

OperandElements::OperandElements(const OperandView& view, bool paged, Bools bools,
                                 Integers integers)
    : integers_(integers) {
  std::size_t pages = 0;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < view.data.size(); ++i) {
    const TensorSpec& tensor = view.value->tensors[i];
    const auto page_elements = static_cast<std::uint64_t>(kPageBytes) / SizeOf(tensor.dtype);
    const auto elements = static_cast<std::uint64_t>(Elements(tensor.shape));
    Tensor& made = tensors_.emplace_back();
    const bool as_bytes = tensor.dtype == DType::kBool && bools == Bools::kBytes;
    made.dtype = as_bytes ? DType::kU8 : tensor.dtype;
    made.data = static_cast<const std::byte*>(view.data[i]);
    made.first = first;
    made.elements = static_cast<std::int64_t>(elements);
    first += made.elements;
    made.first_page = pages;
    made.page_count = static_cast<std::size_t>((elements + page_elements - 1) / page_elements);
    made.shift = std::countr_zero(page_elements);
    pages += made.page_count;
  }
  if (!paged) return;
  pages_.resize(std::max<std::size_t>(pages, 1));
  wanted_ = std::make_unique<std::atomic<bool>[]>(pages_.size());
}

const OperandElements::Tensor& OperandElements::TensorOf(std::int64_t* index) const {
  // The last tensor that begins there or before; those without elements begin where the next does.
  const auto beyond =
      std::upper_bound(tensors_.begin() + 1, tensors_.end(), *index,
                       [](std::int64_t i, const Tensor& tensor) { return i < tensor.first; });
  *index -= (beyond - 1)->first;
  return *(beyond - 1);
}

std::uint64_t OperandElements::LoadBits(std::int64_t index) const {
  const Tensor& tensor = TensorOf(&index);
  std::uint64_t bits = 0;
  std::memcpy(&bits, tensor.data + index * std::int64_t{sizeof(bits)}, sizeof(bits));
  return bits;
}

double OperandElements::LoadFrom(const Tensor& tensor, const std::byte* data,
                                 std::int64_t index) const {
  if (integers_ == Integers::kToOdd) {
    if (tensor.dtype == DType::kI64) return RoundedToOdd<std::int64_t>(data, index);
    if (tensor.dtype == DType::kU64) return RoundedToOdd<std::uint64_t>(data, index);
  }
  return LoadAsDouble(tensor.dtype, data, index);
}

double OperandElements::Load(std::int64_t index, bool* missing) const {
  const Tensor& tensor = TensorOf(&index);
  if (pages_.empty()) return LoadFrom(tensor, tensor.data, index);
  const std::size_t page = tensor.first_page + static_cast<std::size_t>(index >> tensor.shift);
  if (pages_[page] == nullptr) {
    wanted_[page].store(true, std::memory_order_relaxed);
    *missing = true;
    return 0;
  }
  const std::int64_t within = index & ((std::int64_t{1} << tensor.shift) - 1);
  return LoadFrom(tensor, pages_[page], within);
}

std::vector<OperandElements::Page> OperandElements::TakeWanted() {
  std::vector<Page> wanted;
  for (const Tensor& tensor : tensors_) {
    const auto bytes = static_cast<std::size_t>(tensor.elements * SizeOf(tensor.dtype));
    for (std::size_t i = 0; i < tensor.page_count; ++i) {
      const std::size_t index = tensor.first_page + i;
      if (!wanted_[index].exchange(false, std::memory_order_relaxed)) continue;
      const std::size_t offset = i * kPageBytes;
      wanted.push_back({index, tensor.data + offset, std::min(kPageBytes, bytes - offset)});
    }
  }
  return wanted;
}

void OperandElements::DropAll() {
  std::fill(pages_.begin(), pages_.end(), nullptr);
}

PageStore::PageStore(OperandReader& reader, std::uint64_t most_bytes)
    : reader_(reader),
      most_pages_(std::max<std::size_t>(
          1, static_cast<std::size_t>(most_bytes / OperandElements::kPageBytes))) {}

void PageStore::Clear(std::span<OperandElements* const> operands) {
  for (OperandElements* operand : operands) operand->DropAll();
  used_ = 0;
}

absl::StatusOr<bool> PageStore::Bring(std::span<OperandElements* const> operands) {
  std::vector<std::pair<OperandElements*, OperandElements::Page>> wanted;
  for (OperandElements* operand : operands) {
    for (const OperandElements::Page& page : operand->TakeWanted()) {
      wanted.emplace_back(operand, page);
    }
  }
  const bool room = wanted.size() <= most_pages_ - used_;
  if (!room) Clear(operands);
  wanted.resize(std::min(wanted.size(), most_pages_ - used_));
  for (const auto& [operand, page] : wanted) {
    if (used_ == memory_.size()) {
      memory_.push_back(std::make_unique<std::byte[]>(OperandElements::kPageBytes));
    }
    std::byte* const to = memory_[used_++].get();
    GC_RETURN_IF_ERROR(reader_.Read(page.from, {to, page.bytes}));
    operand->Put(page.index, to);
  }
  GC_RETURN_IF_ERROR(reader_.Finish());
  return room;
}

}  // namespace gridclock
