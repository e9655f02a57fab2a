#include "proto/codec/values.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace gridclock {
namespace {

// The numbers of the plain enums are those of the messages.
template <typename Plain, typename Wire>
absl::StatusOr<Plain> EnumOr(Wire wire, Plain zero, int last, absl::string_view field) {
  const int number = static_cast<int>(wire);
  if (number == 0) return zero;
  if (number < 0 || number > last) {
    return InvalidField(field, absl::StrCat("want 1 to ", last, ", got ", number));
  }
  return static_cast<Plain>(number);
}

// Tensors are laid out with gaps of less than 64 bytes; the sum must stay far from 2^64.
constexpr std::uint64_t kMostOperandBytes = std::uint64_t{1} << 62;
constexpr int kMostListTensors = 10'000;

absl::StatusOr<std::uint64_t> AppendTensor(DType dtype, const std::int64_t* dims, std::size_t rank,
                                           OperandValue* out) {
  TensorSpec& tensor = out->tensors.emplace_back();
  tensor.dtype = dtype;
  tensor.shape.assign(dims, dims + rank);
  GC_ASSIGN_OR_RETURN(const std::int64_t bytes, CheckedBytes(tensor));
  return static_cast<std::uint64_t>(bytes) + kTensorAlignment;
}

absl::Status CheckRanks(const v1::TensorSpec& spec, absl::string_view field) {
  if (spec.ranks().empty()) {
    return InvalidField(absl::StrCat(field, ".ranks"),
                        "want at least one tensor in a list, got none");
  }
  if (spec.ranks_size() > kMostListTensors) {
    return InvalidField(absl::StrCat(field, ".ranks"),
                        absl::StrCat("want at most ", kMostListTensors, " tensors in a list, got ",
                                     spec.ranks_size()));
  }
  std::uint64_t sum = 0;
  for (const std::uint32_t rank : spec.ranks()) sum += rank;
  if (sum != static_cast<std::uint64_t>(spec.dims_size())) {
    return InvalidField(absl::StrCat(field, ".ranks"),
                        absl::StrCat("the ranks add up to ", sum, " dimensions, but ",
                                     spec.dims_size(), " came in dims"));
  }
  return absl::OkStatus();
}

absl::Status DecodeList(const v1::TensorSpec& spec, DType dtype, absl::string_view field,
                        OperandValue* out) {
  GC_RETURN_IF_ERROR(CheckRanks(spec, field));
  out->is_list = true;
  out->tensors.reserve(spec.ranks_size());
  const std::int64_t* dims = spec.dims().data();
  std::uint64_t total = 0;
  for (const std::uint32_t rank : spec.ranks()) {
    const auto bytes = AppendTensor(dtype, dims, rank, out);
    if (!bytes.ok()) {
      return InvalidField(
          absl::StrCat(field, ".dims"),
          absl::StrCat("tensor ", out->tensors.size() - 1, ": ", bytes.status().message()));
    }
    dims += rank;
    total += *bytes;
    if (total > kMostOperandBytes) {
      return InvalidField(absl::StrCat(field, ".dims"),
                          "the tensors of the list overflow 2^62 bytes");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DType> Decode(v1::DType dtype, absl::string_view field) {
  const int number = static_cast<int>(dtype);
  if (number >= 1 && number <= kDTypeCount) return static_cast<DType>(number);
  const std::string known = absl::StrJoin(
      AllDTypes(), ", ", [](std::string* out, DType one) { absl::StrAppend(out, Name(one)); });
  return InvalidField(
      field, absl::StrCat("want a dtype out of ", known, "; got ",
                          number == 0 ? std::string("none") : absl::StrCat("number ", number)));
}

absl::StatusOr<OperandValue> Decode(const v1::TensorSpec& spec, absl::string_view field) {
  GC_ASSIGN_OR_RETURN(const DType dtype, Decode(spec.dtype(), absl::StrCat(field, ".dtype")));
  OperandValue value;
  if (spec.is_list()) {
    GC_RETURN_IF_ERROR(DecodeList(spec, dtype, field, &value));
    return value;
  }
  if (!spec.ranks().empty()) {
    return InvalidField(absl::StrCat(field, ".ranks"),
                        absl::StrCat("want none but of a list (is_list), got ", spec.ranks_size()));
  }
  const auto bytes = AppendTensor(dtype, spec.dims().data(), spec.dims_size(), &value);
  if (!bytes.ok()) return InvalidField(absl::StrCat(field, ".dims"), bytes.status().message());
  if (*bytes > kMostOperandBytes) {
    return InvalidField(absl::StrCat(field, ".dims"),
                        absl::StrCat(ToText(value.tensors[0]), " overflows 2^62 bytes"));
  }
  return value;
}

absl::StatusOr<AttributeValue> Decode(const v1::AttributeValue& value, absl::string_view field) {
  switch (value.value_case()) {
    case v1::AttributeValue::kI64:
      return AttributeValue(value.i64());
    case v1::AttributeValue::kF64:
      return AttributeValue(value.f64());
    case v1::AttributeValue::kFlag:
      return AttributeValue(value.flag());
    case v1::AttributeValue::kDtype: {
      GC_ASSIGN_OR_RETURN(const DType dtype, Decode(value.dtype(), field));
      return AttributeValue(dtype);
    }
    case v1::AttributeValue::kWord:
      return AttributeValue(value.word());
    case v1::AttributeValue::VALUE_NOT_SET:
      break;
  }
  return InvalidField(field, "want a value, got none");
}

absl::StatusOr<Generator> Decode(const v1::Generator& generator, absl::string_view field) {
  const int kind = static_cast<int>(generator.kind());
  if (kind < 1 || kind > static_cast<int>(GeneratorKind::kRandint)) {
    return InvalidField(absl::StrCat(field, ".kind"),
                        absl::StrCat("want a generator, got kind ", kind));
  }
  return Generator{.kind = static_cast<GeneratorKind>(kind),
                   .a = generator.a(),
                   .b = generator.b(),
                   .seed = generator.seed()};
}

absl::StatusOr<MeasureOptions> Decode(const v1::MeasureOptions& in) {
  MeasureOptions out;
  GC_ASSIGN_OR_RETURN(out.method, EnumOr(in.method(), Method::kIsolated,
                                         static_cast<int>(Method::kEventPair), "measure.method"));
  GC_ASSIGN_OR_RETURN(
      out.l2, EnumOr(in.l2(), L2State::kHot, static_cast<int>(L2State::kColdDirty), "measure.l2"));
  out.max_samples = in.max_samples();
  out.min_samples = in.min_samples();
  if (in.relative_interval() != 0) out.relative_interval = in.relative_interval();
  if (in.confidence() != 0) out.confidence = in.confidence();
  if (in.budget_seconds() != 0) {
    GC_RETURN_IF_ERROR(CheckBudget(in.budget_seconds()));
    out.budget = absl::Seconds(in.budget_seconds());
  }
  if (in.warmup_limit_seconds() != 0) {
    GC_RETURN_IF_ERROR(CheckWarmupLimit(in.warmup_limit_seconds()));
    out.warmup_limit = absl::Seconds(in.warmup_limit_seconds());
  }
  if (in.has_schedule()) {
    const v1::Schedule& schedule = in.schedule();
    out.schedule = Schedule{.wait = schedule.wait(),
                            .warmup = schedule.warmup(),
                            .active = schedule.active(),
                            .repeat = schedule.repeat() == 0 ? 1 : schedule.repeat()};
  }
  GC_RETURN_IF_ERROR(Validate(out));
  return out;
}

v1::DType Encode(DType dtype) {
  return static_cast<v1::DType>(dtype);
}

void Encode(const MethodFacts& method, v1::Device::MethodFacts* out) {
  out->set_method(static_cast<v1::Method>(method.method));
  out->set_floor_ns(method.floor_ns);
  out->set_missing(method.missing);
  out->set_note(method.note);
}

void Encode(const FlopRate& rate, v1::Device::FlopRate* out) {
  out->set_dtype(Encode(rate.dtype));
  out->set_flops_per_second(rate.flops_per_second);
}

void Encode(const OperandValue& value, v1::TensorSpec* out) {
  out->Clear();
  out->set_is_list(value.is_list);
  for (const TensorSpec& tensor : value.tensors) {
    out->set_dtype(Encode(tensor.dtype));
    for (const std::int64_t dim : tensor.shape) out->add_dims(dim);
    if (value.is_list) out->add_ranks(static_cast<std::uint32_t>(tensor.shape.size()));
  }
}

void Encode(const AttributeValue& value, v1::AttributeValue* out) {
  struct Visitor {
    v1::AttributeValue* out;
    void operator()(std::int64_t v) const { out->set_i64(v); }
    void operator()(double v) const { out->set_f64(v); }
    void operator()(bool v) const { out->set_flag(v); }
    void operator()(DType v) const { out->set_dtype(Encode(v)); }
    void operator()(const std::string& v) const { out->set_word(v); }
  };
  std::visit(Visitor{out}, value);
}

void Encode(const Generator& generator, v1::Generator* out) {
  out->set_kind(static_cast<v1::Generator::Kind>(generator.kind));
  out->set_a(generator.a);
  out->set_b(generator.b);
  out->set_seed(generator.seed);
}

void Encode(const MeasureOptions& options, v1::MeasureOptions* out) {
  out->set_method(static_cast<v1::Method>(options.method));
  out->set_l2(static_cast<v1::L2State>(options.l2));
  out->set_min_samples(options.min_samples);
  out->set_max_samples(options.max_samples);
  out->set_relative_interval(options.relative_interval);
  out->set_confidence(options.confidence);
  out->set_budget_seconds(absl::ToDoubleSeconds(options.budget));
  out->set_warmup_limit_seconds(absl::ToDoubleSeconds(options.warmup_limit));
  if (!options.schedule) return;
  out->mutable_schedule()->set_wait(options.schedule->wait);
  out->mutable_schedule()->set_warmup(options.schedule->warmup);
  out->mutable_schedule()->set_active(options.schedule->active);
  out->mutable_schedule()->set_repeat(options.schedule->repeat);
}

}  // namespace gridclock
