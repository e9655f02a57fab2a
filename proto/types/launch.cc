#include "proto/types/launch.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "proto/types/bind_errors.h"
#include "proto/types/job.h"

namespace gridclock {
namespace {

static_assert(std::endian::native == std::endian::little);

// Since CUDA 12.1 and compute capability 7.0.
constexpr std::int64_t kMostParameterBytes = 32764;

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

// --- Geometry ---

// `least` is 0 for a grid: a tensor without elements, or one without a tail, leaves it nothing to
// do.
absl::Status BindSizes(absl::string_view clause, const std::vector<Expr>& exprs,
                       const std::array<std::int64_t, 3>& most, std::int64_t least,
                       const Binding& binding, std::array<std::uint32_t, 3>* out) {
  constexpr const char* kAxes[] = {"x", "y", "z"};
  for (std::size_t i = 0; i < exprs.size(); ++i) {
    const absl::StatusOr<std::int64_t> size = EvaluateInt(exprs[i], binding);
    if (!size.ok()) return Annotate(size.status(), clause);
    if (*size < least || *size > most[i]) {
      return Wrong(absl::StrCat(clause, ".", kAxes[i], " is ", *size, ", want ", least, " to ",
                                most[i], " ('", ToText(exprs[i]), "')"));
    }
    (*out)[i] = static_cast<std::uint32_t>(*size);
  }
  return absl::OkStatus();
}

std::string SizesText(const std::array<std::uint32_t, 3>& sizes) {
  return absl::StrCat("(", absl::StrJoin(sizes, ", "), ")");
}

absl::Status CheckBlock(const BoundLaunch& launch, const LaunchLimits& limits) {
  const auto threads = static_cast<std::int64_t>(launch.block_threads());
  if (threads <= limits.block_threads) return absl::OkStatus();
  return Wrong(absl::StrCat("block ", SizesText(launch.block), " has ", threads,
                            " threads, at most ", limits.block_threads));
}

absl::Status CheckCluster(const BoundLaunch& launch, const LaunchLimits& limits) {
  if (!launch.has_cluster()) return absl::OkStatus();
  const std::int64_t blocks = std::accumulate(launch.cluster.begin(), launch.cluster.end(),
                                              std::int64_t{1}, std::multiplies<>());
  if (blocks > limits.cluster_blocks) {
    return Wrong(absl::StrCat("cluster ", SizesText(launch.cluster), " has ", blocks,
                              " blocks; this device takes ", limits.cluster_blocks, " at most"));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (launch.grid[i] % launch.cluster[i] == 0) continue;
    return Wrong(absl::StrCat("grid ", SizesText(launch.grid), " is not a multiple of cluster ",
                              SizesText(launch.cluster)));
  }
  return absl::OkStatus();
}

absl::Status BindShared(const std::optional<Expr>& expr, const Binding& binding,
                        const LaunchLimits& limits, std::uint64_t* out) {
  if (!expr) return absl::OkStatus();
  const absl::StatusOr<std::int64_t> bytes = EvaluateInt(*expr, binding);
  if (!bytes.ok()) return Annotate(bytes.status(), "shared");
  if (*bytes < 0 || *bytes > limits.shared_bytes) {
    return Wrong(absl::StrCat("shared is ", *bytes, " bytes, want 0 to ", limits.shared_bytes,
                              " ('", ToText(*expr), "')"));
  }
  *out = static_cast<std::uint64_t>(*bytes);
  return absl::OkStatus();
}

absl::Status BindGeometry(const Clauses& clauses, const Binding& binding,
                          const LaunchLimits& limits, BoundLaunch* out) {
  const std::int64_t blocks = limits.cluster_blocks;
  GC_RETURN_IF_ERROR(BindSizes("grid", clauses.grid, limits.grid, 0, binding, &out->grid));
  GC_RETURN_IF_ERROR(BindSizes("block", clauses.block, limits.block, 1, binding, &out->block));
  GC_RETURN_IF_ERROR(
      BindSizes("cluster", clauses.cluster, {blocks, blocks, blocks}, 1, binding, &out->cluster));
  GC_RETURN_IF_ERROR(CheckBlock(*out, limits));
  GC_RETURN_IF_ERROR(CheckCluster(*out, limits));
  return BindShared(clauses.shared, binding, limits, &out->shared_bytes);
}

// --- Parameters ---

template <typename T>
void Store(T value, BoundParam* out) {
  std::memcpy(out->value.data(), &value, sizeof(T));
  out->size = sizeof(T);
}

absl::Status OutOfRange(const ParamSpec& param, std::int64_t value) {
  return Wrong(
      absl::StrCat("'", ToText(*param.expr), "' is ", value, ", which is no ", param.ctype));
}

template <typename T>
absl::Status StoreWhole(const ParamSpec& param, std::int64_t value, BoundParam* out) {
  if (!std::in_range<T>(value)) return OutOfRange(param, value);
  Store(static_cast<T>(value), out);
  return absl::OkStatus();
}

absl::Status BindWhole(const ParamSpec& param, const Binding& binding, BoundParam* out) {
  GC_ASSIGN_OR_RETURN(const std::int64_t value, EvaluateInt(*param.expr, binding));
  if (param.promise != 0 && value % param.promise != 0) {
    return Wrong(absl::StrCat("'", ToText(*param.expr), "' is ", value,
                              "; it was promised to be a multiple of ", param.promise));
  }
  if (param.ctype == "int") return StoreWhole<std::int32_t>(param, value, out);
  if (param.ctype == "unsigned") return StoreWhole<std::uint32_t>(param, value, out);
  if (param.ctype == "int64") return StoreWhole<std::int64_t>(param, value, out);
  return StoreWhole<std::uint64_t>(param, value, out);
}

absl::Status BindReal(const ParamSpec& param, const Binding& binding, BoundParam* out) {
  GC_ASSIGN_OR_RETURN(const Value value, Evaluate(*param.expr, binding));
  const auto* whole = std::get_if<std::int64_t>(&value);
  const double number = whole != nullptr ? static_cast<double>(*whole) : std::get<double>(value);
  if (param.ctype == "double") {
    Store(number, out);
    return absl::OkStatus();
  }
  if (std::isfinite(number) && std::abs(number) > std::numeric_limits<float>::max()) {
    return Wrong(absl::StrCat("'", ToText(*param.expr), "' is ", number, ", which is no float"));
  }
  Store(static_cast<float>(number), out);
  return absl::OkStatus();
}

absl::Status BindValue(const ParamSpec& param, const Binding& binding, BoundParam* out) {
  if (param.ctype == "float" || param.ctype == "double") return BindReal(param, binding, out);
  if (param.ctype != "bool") return BindWhole(param, binding, out);
  GC_ASSIGN_OR_RETURN(const bool truth, EvaluateBool(*param.expr, binding));
  Store(static_cast<std::uint8_t>(truth), out);
  return absl::OkStatus();
}

// An `inout` operand is found as the input that it is.
const OperandValue& FindOperand(const Program& program, const Binding& binding,
                                const std::vector<OperandValue>& scratch, const ParamSpec& param,
                                BoundParam* out) {
  const auto index_in = [&](const std::vector<OperandSpec>& specs) {
    const auto named = [&](const OperandSpec& spec) { return spec.name == param.name; };
    return static_cast<std::size_t>(std::find_if(specs.begin(), specs.end(), named) -
                                    specs.begin());
  };
  const KernelSpec& words = program.words;
  out->side = BoundParam::Side::kInput;
  out->index = index_in(words.inputs);
  if (out->index < words.inputs.size()) return binding.inputs[out->index];
  const std::size_t output = index_in(words.outputs);
  if (output < words.outputs.size()) {
    out->side = BoundParam::Side::kOutput;
    out->index = binding.outputs.size() - words.outputs.size() + output;
    return binding.outputs[out->index];
  }
  out->side = BoundParam::Side::kScratch;
  out->index = index_in(words.clauses.scratch);
  return scratch[out->index];
}

absl::Status BindOperand(const Program& program, const Binding& binding,
                         const std::vector<OperandValue>& scratch, const ParamSpec& param,
                         BoundParam* out) {
  const OperandValue& value = FindOperand(program, binding, scratch, param, out);
  if (param.kind == ParamSpec::Kind::kPointers) out->size = 8 * value.tensors.size();
  if (param.kind == ParamSpec::Kind::kOperand) out->dtype = value.tensors.at(0).dtype;
  if (param.promise == 0 || kTensorAlignment % param.promise == 0) return absl::OkStatus();
  return Wrong(absl::StrCat("'", param.name, "' is promised to be aligned to ", param.promise,
                            " bytes; tensors are to ", kTensorAlignment,
                            ", so only a divisor of it can be promised"));
}

absl::StatusOr<BoundParam> BindParam(const Program& program, const Binding& binding,
                                     const std::vector<OperandValue>& scratch,
                                     const ParamSpec& param) {
  BoundParam out;
  out.kind = param.kind;
  if (param.kind == ParamSpec::Kind::kNull) return out;
  const absl::Status status = param.kind == ParamSpec::Kind::kValue
                                  ? BindValue(param, binding, &out)
                                  : BindOperand(program, binding, scratch, param, &out);
  if (!status.ok()) return Annotate(status, absl::StrCat("parameter '", param.name, "'"));
  return out;
}

// As the C++ of devices lays them out: each at a multiple of its size, or of 8 bytes.
std::int64_t ParameterBytes(const std::vector<BoundParam>& params) {
  std::uint64_t bytes = 0;
  for (const BoundParam& param : params) {
    const std::uint64_t piece = std::min<std::uint64_t>(param.size, 8);
    bytes = (bytes + piece - 1) / piece * piece + param.size;
  }
  return static_cast<std::int64_t>(bytes);
}

absl::Status CheckParameterBytes(const BoundLaunch& launch, const LaunchLimits& limits) {
  const std::int64_t bytes = ParameterBytes(launch.params);
  if (bytes <= limits.parameter_bytes) return absl::OkStatus();
  return Wrong(absl::StrCat("the parameters take ", bytes, " bytes, allowed are ",
                            limits.parameter_bytes,
                            "; hand a long list over by table(...) in place of pointers(...)"));
}

absl::StatusOr<BoundLaunch> BindLaunch(const Program& program, const ProgramLaunch& launch,
                                       const Binding& binding,
                                       const std::vector<OperandValue>& scratch,
                                       const LaunchLimits& limits) {
  BoundLaunch out;
  out.cooperative = launch.cooperative;
  GC_RETURN_IF_ERROR(BindGeometry(launch.clauses, binding, limits, &out));
  for (const ParamSpec& param : launch.clauses.params) {
    GC_ASSIGN_OR_RETURN(out.params.emplace_back(), BindParam(program, binding, scratch, param));
  }
  GC_RETURN_IF_ERROR(CheckParameterBytes(out, limits));
  return out;
}

bool HasElements(const OperandValue& value) {
  return std::any_of(value.tensors.begin(), value.tensors.end(),
                     [](const TensorSpec& tensor) { return Elements(tensor.shape) > 0; });
}

bool Takes(const BoundLaunch& launch, BoundParam::Side side, std::size_t index) {
  return std::any_of(launch.params.begin(), launch.params.end(), [&](const BoundParam& param) {
    const bool reaches = param.kind == ParamSpec::Kind::kOperand ||
                         param.kind == ParamSpec::Kind::kTable ||
                         param.kind == ParamSpec::Kind::kPointers;
    return reaches && param.side == side && param.index == index;
  });
}

// An output of which each launch has no blocks would come back as it lay in memory.
absl::Status CheckOutputs(const Program& program, const Binding& binding,
                          const std::vector<BoundLaunch>& launches) {
  const std::size_t own = binding.outputs.size() - program.words.outputs.size();
  for (std::size_t i = own; i < binding.outputs.size(); ++i) {
    const auto takes_it = [&](const auto& launch) {
      return Takes(launch, BoundParam::Side::kOutput, i);
    };
    const auto writes_it = [&](const auto& launch) {
      return takes_it(launch) && !launch.is_empty();
    };
    if (!HasElements(binding.outputs[i]) ||
        std::none_of(launches.begin(), launches.end(), takes_it) ||
        std::any_of(launches.begin(), launches.end(), writes_it)) {
      continue;
    }
    return WrongField("program.launches",
                      absl::StrCat("nothing writes output '", program.words.outputs[i - own].name,
                                   "': the grid of each launch that takes it is 0, as a grid of ",
                                   "(N / 256) is where N is less than 256"));
  }
  return absl::OkStatus();
}

absl::Status CheckWhen(const KernelSpec& words, const Binding& binding,
                       const DeviceTraits& device) {
  const absl::StatusOr<bool> holds = HoldsWhen(words.clauses, binding, device);
  if (!holds.ok()) return WithField(Annotate(holds.status(), "when"), "program.words");
  if (*holds) return absl::OkStatus();
  return WrongField("program.words",
                    absl::StrCat("kernel '", words.name, "' takes only calls where ",
                                 ToText(*words.clauses.when)));
}

}  // namespace

const SmLimits& SmLimitsOf(const DeviceTraits& device) {
  const SmLimits* sm = device.sm == 0 ? nullptr : SmLimitsOf(absl::StrCat("sm_", device.sm));
  return sm != nullptr ? *sm : *SmLimitsOf("sm_90");
}

LaunchLimits LaunchLimitsOf(const DeviceTraits& device) {
  LaunchLimits limits;
  limits.shared_bytes = SmLimitsOf(device).block_shared_bytes;
  if (device.sm == 0 || device.sm >= 90) limits.cluster_blocks = 8;
  if (device.sm == 0 || device.sm >= 70) limits.parameter_bytes = kMostParameterBytes;
  return limits;
}

absl::StatusOr<BoundProgram> BindProgram(const Program& program, const Binding& binding,
                                         const DeviceTraits& device) {
  GC_RETURN_IF_ERROR(CheckWhen(program.words, binding, device));
  const LaunchLimits limits = LaunchLimitsOf(device);
  BoundProgram out;
  GC_ASSIGN_OR_RETURN(out.scratch, BindScratch(program.words.clauses, binding));
  for (std::size_t i = 0; i < program.launches.size(); ++i) {
    auto launch = BindLaunch(program, program.launches[i], binding, out.scratch, limits);
    if (!launch.ok()) {
      return WithField(Annotate(launch.status(), absl::StrCat("launches[", i, "]")),
                       absl::StrCat("program.launches[", i, "].words"));
    }
    out.launches.push_back(*std::move(launch));
  }
  GC_RETURN_IF_ERROR(CheckOutputs(program, binding, out.launches));
  return out;
}

}  // namespace gridclock
