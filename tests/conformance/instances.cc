#include "tests/conformance/instances.h"

#include <algorithm>
#include <bit>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "kernels/catalog/list_sizes.h"

namespace gridclock {
namespace {

// The names of one call.
struct Names final : Scope {
  std::map<std::string, std::int64_t> dims;
  std::map<std::string, Shape> runs;
  std::map<std::string, AttributeValue> attributes;
  std::vector<Shape> members;  // Of a list: what all its runs are for each tensor.

  absl::StatusOr<Value> Lookup(absl::string_view name) const override {
    const std::string key(name);
    if (const auto dim = dims.find(key); dim != dims.end()) return Value(dim->second);
    if (const auto value = attributes.find(key); value != attributes.end()) {
      return std::visit([](const auto& v) { return Value(v); }, value->second);
    }
    return absl::InvalidArgumentError(absl::StrCat("unbound name '", key, "'"));
  }
  absl::StatusOr<std::int64_t> Measure(absl::string_view, absl::string_view,
                                       std::int64_t) const override {
    return absl::InvalidArgumentError("inputs have no measured dimensions");
  }
};

void CollectDims(const std::vector<Dim>& dims, std::vector<std::string>& names,
                 std::vector<std::string>& runs) {
  const auto add = [](std::vector<std::string>& to, const std::string& name) {
    if (std::find(to.begin(), to.end(), name) == to.end()) to.push_back(name);
  };
  for (const Dim& dim : dims) {
    if (dim.kind == Dim::Kind::kExpr && dim.expr.op == Expr::Op::kName) add(names, dim.expr.name);
    if (dim.kind == Dim::Kind::kAt) add(names, dim.name);
    if (dim.kind == Dim::Kind::kRun) add(runs, dim.name);
    CollectDims(dim.yes, names, runs);
    CollectDims(dim.no, names, runs);
  }
}

// False where an expression cannot be evaluated.
bool AppendShape(const std::vector<Dim>& dims, Names& names, Shape& shape) {
  for (const Dim& dim : dims) {
    if (dim.kind == Dim::Kind::kExpr) {
      const auto size = EvaluateInt(dim.expr, names);
      if (!size.ok() || *size < 0) return false;
      shape.push_back(*size);
    } else if (dim.kind == Dim::Kind::kAt) {
      names.attributes[dim.at] = static_cast<std::int64_t>(shape.size());
      shape.push_back(names.dims[dim.name]);
    } else if (dim.kind == Dim::Kind::kRun) {
      const Shape& run = names.runs[dim.name];
      shape.insert(shape.end(), run.begin(), run.end());
    } else if (dim.kind == Dim::Kind::kChoose) {
      const auto yes = EvaluateBool(dim.expr, names);
      if (!yes.ok() || !AppendShape(*yes ? dim.yes : dim.no, names, shape)) return false;
    }
  }
  return true;
}

DType DTypeOf(const OperandSpec& operand, DType dtype) {
  return ParseDType(operand.elem).value_or(dtype);
}

// Values that an attribute takes in turn.
std::vector<AttributeValue> ValuesOf(const AttributeSpec& spec) {
  using Type = AttributeSpec::Type;
  if (spec.type == Type::kBool) return {false, true};
  if (spec.type == Type::kEnum) return {spec.words.begin(), spec.words.end()};
  if (!spec.allowed.empty()) return spec.allowed;
  if (spec.type == Type::kDType) return {AllDTypes().begin(), AllDTypes().end()};
  if (spec.default_value) return {*spec.default_value};
  if (spec.type == Type::kI64) return {std::int64_t{1}, std::int64_t{-1}};
  return {1.5, -0.25, 0.0};
}

// Another value than the default, for numbers that say what they may be.
std::optional<AttributeValue> OtherValue(const AttributeSpec& spec, std::size_t i) {
  using Type = AttributeSpec::Type;
  if (!spec.default_value || !spec.allowed.empty()) return std::nullopt;
  const bool of_any_sign = !spec.range || spec.range->low < 0;  // In i64 the place of a dimension.
  if (spec.type == Type::kI64 && !of_any_sign) return std::int64_t{3};
  if (spec.type != Type::kF64) return std::nullopt;
  // No larger than 1, so that what is large stays a number.
  if (i == 1 && of_any_sign) return -1.0;
  return 0.3;  // Which f32 does not hold.
}

// Beside the calls with defaults two in which no number has its default.
constexpr std::size_t kOthers = 2;

std::vector<std::map<std::string, AttributeValue>> WithOthers(
    const KernelSpec& spec, std::vector<std::map<std::string, AttributeValue>> all) {
  const std::size_t given = all.size();
  for (std::size_t i = 0; i < kOthers; ++i) {
    for (std::size_t c = 0; c < given; ++c) {
      auto values = all[c];
      for (const AttributeSpec& attribute : spec.attributes) {
        if (const auto other = OtherValue(attribute, i)) values[attribute.name] = *other;
      }
      if (std::find(all.begin(), all.end(), values) == all.end()) all.push_back(values);
    }
  }
  return all;
}

// The attributes that say which dimensions change places.
std::vector<std::string> SwappedBy(const KernelSpec& spec) {
  std::vector<std::string> names;
  for (const OperandSpec& output : spec.outputs) {
    for (const Dim& dim : output.dims) {
      if (dim.kind == Dim::Kind::kSwap) names.insert(names.end(), {dim.swap_i, dim.swap_j});
    }
  }
  return names;
}

// Every combination of values, as an odometer.
std::vector<std::map<std::string, AttributeValue>> Combinations(const KernelSpec& spec) {
  const std::vector<std::string> swapped = SwappedBy(spec);
  std::vector<std::map<std::string, AttributeValue>> all(1);
  for (const AttributeSpec& attribute : spec.attributes) {
    std::vector<std::map<std::string, AttributeValue>> next;
    for (const auto& so_far : all) {
      std::vector<AttributeValue> values = ValuesOf(attribute);
      if (std::find(swapped.begin(), swapped.end(), attribute.name) != swapped.end()) {
        values.insert(values.end(), {std::int64_t{0}, std::int64_t{1}});
      }
      for (const AttributeValue& value : values) {
        next.push_back(so_far);
        next.back()[attribute.name] = value;
      }
    }
    all = std::move(next);
  }
  return WithOthers(spec, std::move(all));
}

const std::vector<Shape>& Runs(std::size_t how_many_names, bool with_dims) {
  static const std::vector<Shape> kAlone = {{},           {0},
                                            {1},          {31},
                                            {32},         {33},
                                            {1023},       {4099},
                                            {70001},      {2, 0, 3},
                                            {7, 11, 13},  {1, 1, 1},
                                            {5, 64},      {2, 1, 3, 1, 2, 1, 2, 3},
                                            {80, 208},    {16, 3, 32, 2},
                                            {1, 80, 208}, {208, 80, 1}};
  static const std::vector<Shape> kBatches = {{}, {3}, {1}, {2, 5}, {0}, {1, 2, 1}, {67}};
  return with_dims || how_many_names > 1 ? kBatches : kAlone;
}

const std::vector<std::int64_t>& SmallSizes() {
  static const std::vector<std::int64_t> kSizes = {1, 33, 7, 32, 0, 31, 127, 1023, 2, 64};
  return kSizes;
}

// The i-th choice of sizes: each name steps through the list at its own pace.
Names NamesAt(const std::vector<std::string>& dims, const std::vector<std::string>& runs,
              std::size_t i) {
  constexpr std::size_t kPaces[] = {1, 3, 7, 9};
  Names names;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    names.dims[dims[d]] = SmallSizes()[(i * kPaces[d % 4] + 2 * d) % SmallSizes().size()];
  }
  const auto& choices = Runs(runs.size(), !dims.empty());
  for (std::size_t r = 0; r < runs.size(); ++r) {
    names.runs[runs[r]] = choices[(i * kPaces[r % 4] + i / choices.size() + r) % choices.size()];
  }
  return names;
}

std::vector<Names> SmallNames(const std::vector<std::string>& dims,
                              const std::vector<std::string>& runs) {
  const std::size_t choices = dims.empty() && runs.empty() ? 1 : 24;
  std::vector<Names> all;
  for (std::size_t i = 0; i < choices; ++i) all.push_back(NamesAt(dims, runs, i));
  return all;
}

// Sizes for the names of a kernel in the order in which its words first have them.
struct LargeSizes {
  std::vector<std::int64_t> dims;
  std::vector<Shape> runs;
};

// Outputs of f32 and f64 go past the caches from 16 MiB on; those of narrower types never.
std::int64_t StreamedElements(DType dtype) {
  constexpr std::int64_t kNotStreamed = 300'000;
  const std::int64_t size = SizeOf(dtype);
  return (size >= 4 ? (std::int64_t{17} << 20) / size : kNotStreamed) + 13;
}

// Element by element; of 16 bits so many that threads of a GPU have two packs of 16 bytes each, as
// they have of f32 and f64 before these are streamed.
std::vector<LargeSizes> LargeRuns(DType dtype) {
  const std::int64_t size = SizeOf(dtype) == 2 ? 1'050'001 : StreamedElements(dtype);
  return {{{}, {{size}}}, {{}, {{size + 1}}}};
}

// Matrices that no tile divides, or that all do; dimensions before, between and behind.
std::vector<LargeSizes> LargeMatrices() {
  return {
      {{}, {{1100, 2064}}}, {{}, {{3, 517, 1025}}}, {{}, {{1280, 7, 640}}}, {{}, {{70, 33, 1000}}}};
}
std::vector<LargeSizes> HugeMatrices() {
  return {{{}, {{46341, 46352}}}, {{}, {{3, 30016, 24000}}}};
}

// The thresholds are those of the catalogue: softmax has blocks of 2048, and cuts rows from 32768
// on; sum has chunks of 16384, tiles of 1024 columns, and its own way with many rows from 1024 on;
// matmul has blocks of up to 512 (K) x 1536 (M) x 1024 (N), and gives each of several matrices to
// one thread, and reads small ones of whole tiles of columns where they lie; cumsum has parts of
// 32768 and, of columns, of 1024 rows; max reads rows from 65536 on in four quarters. On a GPU
// softmax keeps rows of 64 KiB in a block and of 768 KiB in a cluster of up to 8, and reads 16
// bytes at a time where the length of a row allows it; norms have 8192 elements of a row in a
// block, and 4 rows and more for each block or cluster where there are many; reductions have blocks
// of 512 threads for 1024 rows of 32768 and more, cut fewer rows, and have a block for the states
// of more than 256 parts of 16384: of these bf16 alone has some here, as they take long.
std::vector<LargeSizes> LargeSizesFor(std::size_t dims, std::size_t runs, DType dtype) {
  const std::int64_t streamed = StreamedElements(dtype);
  if (dims == 0) return LargeRuns(dtype);
  if (dims == 1) {
    std::vector<LargeSizes> sizes = {{{2049}, {{3}, {}}},     {{40961}, {{2}, {}}},
                                     {{40961}, {{5}, {}}},    {{70001}, {{}, {3}}},
                                     {{1500}, {{2}, {1025}}}, {{1100}, {{}, {2049}}},
                                     {{33}, {{5}, {2049}}},   {{33}, {{}, {40961}}},
                                     {{2100}, {{}, {600}}},   {{2056}, {{streamed / 2056 + 1}, {}}},
                                     {{8192}, {{5}, {}}},     {{32768}, {{3}, {}}},
                                     {{131072}, {{3}, {}}},   {{1024}, {{600}, {}}},
                                     {{70008}, {{70}, {}}},   {{70003}, {{5}, {}}},
                                     {{streamed}, {{}, {}}}};
    if (runs == 2 && dtype == DType::kBF16) {
      sizes.push_back({{32771}, {{1025}, {}}});
      sizes.push_back({{32771}, {{300}, {}}});
      sizes.push_back({{4259843}, {{}, {}}});
    }
    return sizes;
  }
  return {{{300, 1600, 1100}, {{}}}, {{5, 1600, 1100}, {{4}}}, {{604, 1600, 9}, {{4}}},
          {{604, 7, 1100}, {{4}}},   {{40, 43, 64}, {{5}}},    {{64, 40, 256}, {{}}}};
}

std::vector<LargeSizes> HugeSizesFor(std::size_t dims) {
  constexpr std::int64_t kHuge = 2149 * kHugePattern;
  static_assert(kHuge > std::int64_t{1} << 31);
  if (dims == 0) return {{{}, {{kHuge}}}};
  constexpr std::int64_t kRow = 1024;
  if (dims == 1) {
    return {{{kHuge}, {{}}},
            {{1}, {{kHuge}, {}}},
            {{kRow}, {{kHuge / kRow + 1}, {}}},
            {{kHuge / kRow + 1}, {{}, {kRow}}},
            {{131072}, {{kHuge / 131072 + 1}, {}}}};
  }
  return {{{1, 46341, 46341}, {{}}}};
}

bool TakesLists(const KernelSpec& spec) {
  return std::any_of(spec.inputs.begin(), spec.inputs.end(),
                     [](const OperandSpec& operand) { return operand.is_list; });
}

// So many tensors, of a few elements each and now and then of none.
std::vector<Shape> Many(std::int64_t count) {
  std::vector<Shape> shapes;
  for (std::int64_t i = 0; i < count; ++i) shapes.push_back({i * 7 % 5});
  return shapes;
}

// Blocks on a GPU have 2048 elements, or up to 8192 of 16 bits; the arguments of a launch have room
// for so many tensors, of which there is one more.
std::int64_t TensorsOfALaunch(const KernelSpec& spec, std::int64_t arg_bytes) {
  return list::TensorsOfALaunch(std::ssize(spec.inputs) + std::ssize(spec.outputs), arg_bytes);
}

// Every other of them with as many bytes of arguments as `few` have: HasTurn.
std::vector<std::vector<Shape>> SmallLists(const KernelSpec& spec) {
  const std::int64_t few = TensorsOfALaunch(spec, 4096), many = TensorsOfALaunch(spec, 32764);
  return {{{}},
          {{0}},
          {{0}, {0}, {5}, {0}},
          {{1}, {33}, {0}, {1023}, {7, 11, 13}, {2, 1, 3, 1, 2, 1, 2, 3}, {}, {31}},
          {{2047}, {2048}, {2049}, {4096}, {4097}, {8191}, {8192}, {8193}},
          {{70001}, {3}},
          Many(few),
          Many(many),
          Many(few + 1),
          Many(many + 1)};
}

std::vector<std::vector<Shape>> ListsOf(const KernelSpec& spec, Size size, DType dtype) {
  if (size == Size::kSmall) return SmallLists(spec);
  if (size == Size::kHuge) return {{{(std::int64_t{1} << 31) + 1}}};
  const std::int64_t streamed = StreamedElements(dtype);
  return {Many(10'000), {{1}, {streamed}, {0}, {70001}}, {{streamed / 2}, {3}, {streamed / 2}}};
}

std::vector<Names> ListNames(const KernelSpec& spec, Size size, DType dtype) {
  std::vector<Names> all;
  for (auto& members : ListsOf(spec, size, dtype)) {
    Names names;
    names.members = std::move(members);
    all.push_back(std::move(names));
  }
  return all;
}

std::vector<Names> NamesFor(const std::vector<LargeSizes>& sizes,
                            const std::vector<std::string>& dims,
                            const std::vector<std::string>& runs) {
  std::vector<Names> all;
  for (const LargeSizes& one : sizes) {
    Names names;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      names.dims[dims[d]] = one.dims[d % one.dims.size()];
    }
    for (std::size_t r = 0; r < runs.size(); ++r) {
      names.runs[runs[r]] = one.runs[r % one.runs.size()];
    }
    all.push_back(std::move(names));
  }
  return all;
}

std::vector<Names> ChoicesOf(Size size, const std::vector<std::string>& dims,
                             const std::vector<std::string>& runs, DType dtype, bool swaps) {
  if (size == Size::kSmall || (dims.empty() && runs.empty())) return SmallNames(dims, runs);
  if (swaps) return NamesFor(size == Size::kLarge ? LargeMatrices() : HugeMatrices(), dims, runs);
  return NamesFor(size == Size::kLarge ? LargeSizesFor(dims.size(), runs.size(), dtype)
                                       : HugeSizesFor(dims.size()),
                  dims, runs);
}

std::optional<Instance> Make(const KernelSpec& spec, DType dtype, Names names) {
  Instance instance;
  for (const OperandSpec& operand : spec.inputs) {
    OperandValue value{.is_list = operand.is_list, .tensors = {}};
    for (std::size_t i = 0; i < (operand.is_list ? names.members.size() : 1); ++i) {
      if (operand.is_list) names.runs["*"] = names.members[i];
      TensorSpec& tensor = value.tensors.emplace_back();
      tensor.dtype = DTypeOf(operand, dtype);
      if (!AppendShape(operand.dims, names, tensor.shape)) return std::nullopt;
    }
    instance.inputs.push_back({operand.name, std::move(value)});
  }
  for (const AttributeSpec& attribute : spec.attributes) {
    instance.attributes.push_back({attribute.name, names.attributes[attribute.name]});
  }
  return instance;
}

// Whether the i-th choice of sizes meets the c-th combination of attributes. Small calls meet all,
// but of a cast, which has two hundred pairs of dtypes, each pair has some of the sizes. Large ones
// are dear: another combination for each size and dtype, so that they meet all, but not each time.
// Lists meet 4096 and 32764 bytes of arguments, the last attribute, by turns. Of three attributes
// of two values each, every two meet each size with all of their values.
bool HasTurn(const KernelSpec& spec, Size size, DType dtype, std::size_t i, std::size_t c,
             std::size_t combinations) {
  if (size != Size::kSmall) return (i + static_cast<std::size_t>(dtype)) % combinations == c;
  if (TakesLists(spec)) return i % 2 == c % 2;
  if (spec.attributes.size() == 3 && combinations == 8) return (i + std::popcount(c)) % 2 == 0;
  const bool casts =
      std::any_of(spec.attributes.begin(), spec.attributes.end(),
                  [](const AttributeSpec& a) { return a.type == AttributeSpec::Type::kDType; });
  return !casts || (i + c) % 6 == 0;
}

// What a plain loop touches or computes, whichever is more.
std::int64_t TermsOf(const Binding& binding) {
  std::int64_t elements = 0;
  for (const auto* operands : {&binding.inputs, &binding.outputs}) {
    for (const OperandValue& operand : *operands) {
      for (const TensorSpec& tensor : operand.tensors) elements += Elements(tensor.shape);
    }
  }
  return std::max(elements, binding.flops / 2);
}

// Work that a plain loop finishes in a moment.
bool IsSmall(std::int64_t terms) {
  return terms <= 3'000'000;
}

std::int64_t OddUpTo(std::int64_t most, std::mt19937_64& random) {
  return 1 + 2 * static_cast<std::int64_t>(random() % static_cast<std::uint64_t>((most + 1) / 2));
}

// Sizes up to `most`; where there are dimensions beside runs, these have a few elements.
Names RandomNames(const std::vector<std::string>& dims, const std::vector<std::string>& runs,
                  std::int64_t most, std::mt19937_64& random) {
  Names names;
  for (const std::string& dim : dims) names.dims[dim] = OddUpTo(most, random);
  for (const std::string& run : runs) {
    names.runs[run] = dims.empty() ? Shape{OddUpTo(most, random), OddUpTo(most, random)}
                                   : Shape{OddUpTo(7, random)};
  }
  for (int i = 0; i < 3; ++i) names.members.push_back({OddUpTo(most, random)});
  return names;
}

// Sizes that are huge for a kernel of two runs of dimensions need not be for a kernel of one.
bool IsHuge(const Binding& binding) {
  const auto is_huge = [](const OperandValue& operand) {
    return std::any_of(operand.tensors.begin(), operand.tensors.end(), [](const TensorSpec& t) {
      return Elements(t.shape) > std::int64_t{1} << 31;
    });
  };
  return std::any_of(binding.inputs.begin(), binding.inputs.end(), is_huge) ||
         std::any_of(binding.outputs.begin(), binding.outputs.end(), is_huge);
}

// The call, if it binds and is of the size.
std::optional<Instance> MakeOfSize(const KernelSpec& spec, DType dtype, Size size, Names names) {
  auto instance = Make(spec, dtype, std::move(names));
  if (!instance) return std::nullopt;
  const auto binding = Bind(spec, instance->inputs, instance->attributes);
  if (!binding.ok() || (size == Size::kSmall && !IsSmall(TermsOf(*binding)))) return std::nullopt;
  if (size == Size::kHuge && !IsHuge(*binding)) return std::nullopt;
  return instance;
}

}  // namespace

std::vector<DType> DTypesOf(const KernelSpec& spec) {
  for (const Condition& condition : spec.conditions) {
    if (!condition.variable.empty()) return condition.dtypes;
  }
  for (const OperandSpec& operand : spec.inputs) {
    if (!ParseDType(operand.elem)) return {AllDTypes().begin(), AllDTypes().end()};
  }
  return {DType::kF32};
}

std::vector<Instance> ForPlainLoops(const KernelSpec& spec, const std::vector<Instance>& calls) {
  std::vector<Instance> quick;
  const Instance* least = nullptr;
  std::int64_t least_terms = 0;
  for (const Instance& call : calls) {
    const auto binding = Bind(spec, call.inputs, call.attributes);
    if (!binding.ok()) continue;
    const std::int64_t terms = TermsOf(*binding);
    if (IsSmall(terms)) quick.push_back(call);
    if (least != nullptr && terms >= least_terms) continue;
    least = &call;
    least_terms = terms;
  }
  if (quick.empty() && least != nullptr) quick.push_back(*least);
  return quick;
}

std::vector<Instance> OfShortLists(const KernelSpec& spec, const std::vector<Instance>& calls) {
  const std::int64_t most = TensorsOfALaunch(spec, 4096);
  std::vector<Instance> some;
  for (const Instance& call : calls) {
    const bool is_short = std::all_of(
        call.inputs.begin(), call.inputs.end(),
        [most](const NamedOperand& input) { return std::ssize(input.value.tensors) <= most; });
    if (is_short) some.push_back(call);
  }
  return some;
}

std::vector<Instance> InstancesOf(const KernelSpec& spec, DType dtype, Size size) {
  std::vector<std::string> dims, runs;
  for (const OperandSpec& operand : spec.inputs) CollectDims(operand.dims, dims, runs);
  const auto choices = TakesLists(spec)
                           ? ListNames(spec, size, dtype)
                           : ChoicesOf(size, dims, runs, dtype, !SwappedBy(spec).empty());
  const auto combinations = Combinations(spec);
  std::vector<Instance> instances;
  for (std::size_t c = 0; c < combinations.size(); ++c) {
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (!HasTurn(spec, size, dtype, i, c, combinations.size())) continue;
      Names names = choices[i];
      names.attributes = combinations[c];
      const auto instance = MakeOfSize(spec, dtype, size, std::move(names));
      if (!instance) continue;
      instances.push_back(*instance);
    }
  }
  return instances;
}

std::vector<Instance> RandomInstancesOf(const KernelSpec& spec, DType dtype, std::uint64_t seed) {
  constexpr std::size_t kCalls = 2;
  std::vector<std::string> dims, runs;
  for (const OperandSpec& operand : spec.inputs) CollectDims(operand.dims, dims, runs);
  const auto combinations = Combinations(spec);
  std::mt19937_64 random(seed);
  std::vector<Instance> instances;
  for (std::int64_t most = 700; most > 1 && instances.size() < kCalls; most -= 10) {
    Names names = RandomNames(dims, runs, most, random);
    names.attributes = combinations[random() % combinations.size()];
    auto instance = MakeOfSize(spec, dtype, Size::kSmall, std::move(names));
    if (instance) instances.push_back(*std::move(instance));
  }
  return instances;
}

std::string ToText(const Instance& instance) {
  std::string text;
  for (const NamedOperand& input : instance.inputs) {
    const auto& tensors = input.value.tensors;
    absl::StrAppend(&text, input.name, "=", ToText(tensors[0]));
    if (input.value.is_list) absl::StrAppend(&text, " and ", tensors.size() - 1, " more");
    absl::StrAppend(&text, " ");
  }
  for (const NamedAttribute& attribute : instance.attributes) {
    absl::StrAppend(&text, attribute.name, "=", ToText(attribute.value), " ");
  }
  return text;
}

}  // namespace gridclock
