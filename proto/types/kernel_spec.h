// The words of a kernel as data: what it takes, what it gives, what it costs. The language is
// described in docs/signatures.md.
#ifndef GRIDCLOCK_PROTO_TYPES_KERNEL_SPEC_H_
#define GRIDCLOCK_PROTO_TYPES_KERNEL_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/types/expression.h"

namespace gridclock {

// One entry between the brackets of an operand.
struct Dim {
  enum class Kind : std::uint8_t {
    kExpr,    // "M", "2*K", "4": expr
    kRun,     // "*" (name "*") or "*A": any number of dimensions
    kSwap,    // "* swap(A, i, j)": run `name` with dimensions i and j (attributes) exchanged
    kAt,      // "N @ axis": dimension `name` at the place that the attribute `at` says
    kChoose,  // "ta ? [K, M] : [M, K]": expr decides between yes and no
  };
  Kind kind = Kind::kExpr;
  Expr expr = {};
  std::string name = {};
  std::string at = {};
  std::string swap_i = {}, swap_j = {};
  std::vector<Dim> yes = {}, no = {};
  friend bool operator==(const Dim&, const Dim&) = default;
};

struct OperandSpec {
  std::string name;
  bool inout = false;    // Read and written, returned under its name.
  bool is_list = false;  // "..."
  std::string elem;      // A DTYPE ("f32"), a variable ("T") or an attribute of type dtype ("to").
  std::vector<Dim> dims;
  std::string over;  // The input whose buffer this output may use; "" if none.
  friend bool operator==(const OperandSpec&, const OperandSpec&) = default;
};

using AttributeValue = std::variant<std::int64_t, double, bool, DType, std::string>;

struct AttributeSpec {
  enum class Type : std::uint8_t { kI64, kF64, kBool, kDType, kEnum };
  struct Range {
    double low = 0, high = 0;
    // For i64 the bounds exactly: a double cannot hold them all.
    std::int64_t low_int = 0, high_int = 0;
    bool low_open = false, high_open = false;
    friend bool operator==(const Range&, const Range&) = default;
  };
  std::string name;
  Type type = Type::kI64;
  std::vector<std::string> words;               // Of kEnum.
  std::optional<AttributeValue> default_value;  // Without one the caller must give a value.
  std::optional<Range> range;
  std::vector<AttributeValue> allowed;  // "in {1, 2}"; empty: any.
  friend bool operator==(const AttributeSpec&, const AttributeSpec&) = default;
};

// "T in {f32, f16}" (variable, dtypes) or an expression that must be true.
struct Condition {
  std::string variable;
  std::vector<DType> dtypes;
  std::optional<Expr> expr;
  friend bool operator==(const Condition&, const Condition&) = default;
};

// One kernel parameter of a submitted kernel.
struct ParamSpec {
  enum class Kind : std::uint8_t { kOperand, kTable, kPointers, kSizes, kValue, kNull };
  Kind kind = Kind::kOperand;
  std::string name = {};
  std::string ctype = {};         // Of kValue.
  std::optional<Expr> expr = {};  // Of kValue.
  std::int64_t promise = 0;       // `align` of a pointer, `multiple` of a value; 0: none.
  friend bool operator==(const ParamSpec&, const ParamSpec&) = default;
};

struct Clauses {
  std::optional<Expr> flops, bytes, when, shared;
  std::vector<Expr> grid, block, cluster;
  std::vector<OperandSpec> scratch;
  std::vector<ParamSpec> params;
  friend bool operator==(const Clauses&, const Clauses&) = default;
};

// An implementation of a kernel on one kind of device.
struct VariantSpec {
  std::string name;         // "naive", "vec4".
  std::string device_kind;  // "cpu" or "cuda".
  std::string summary;
  Clauses clauses;  // Of these, `when` says which calls it can take.
  friend bool operator==(const VariantSpec&, const VariantSpec&) = default;
};

struct KernelSpec {
  std::string name;
  std::string summary;  // One line.
  std::string formula;
  std::string notes;        // Numerical notes; may be empty.
  bool diagnostic = false;  // empty, copy, spin, fault: kept out of lists for people.
  std::vector<OperandSpec> inputs, outputs;
  std::vector<AttributeSpec> attributes;
  std::vector<Condition> conditions;
  Clauses clauses;
  std::vector<VariantSpec> variants;  // Plainest first, fastest last.
  friend bool operator==(const KernelSpec&, const KernelSpec&) = default;
};

// Parses "name signature { clause }". Fills all but summary, formula, notes and variants.
// INVALID_ARGUMENT quotes the place: "at 'K]': want ':', got ']'".
absl::StatusOr<KernelSpec> ParseKernelSpec(absl::string_view text);
// Parses clauses alone, as a variant has them: "when N % 4 == 0".
absl::StatusOr<Clauses> ParseClauses(absl::string_view text);
// Rules that a parsed or decoded spec must keep (one run per operand, reserved words, known names).
absl::Status Validate(const KernelSpec& spec);

// The signature and clauses as text that parses back to the same spec.
std::string ToText(const KernelSpec& spec);
std::string ToText(const OperandSpec& operand);
std::string ToText(const AttributeSpec& attribute);
std::string ToText(const Clauses& clauses);
// "0.001", "true", "f32", "tanh".
std::string ToText(const AttributeValue& value);

// True if signature, attributes, flops and bytes agree; variants may differ between workers.
bool SameWords(const KernelSpec& a, const KernelSpec& b);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_KERNEL_SPEC_H_
