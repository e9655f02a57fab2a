#include "proto/types/spec_facts.h"

#include "absl/strings/str_join.h"

namespace gridclock {
namespace {

constexpr auto kToText = [](std::string* out, const auto& part) { *out += ToText(part); };

SpecFact CostFact(const char* label, const std::optional<Expr>& cost, const char* otherwise) {
  if (cost.has_value()) return {label, ToText(*cost)};
  return {label, otherwise, /*is_prose=*/true};
}

}  // namespace

std::vector<SpecFact> FactsOf(const KernelSpec& spec) {
  std::vector<SpecFact> facts;
  const auto add = [&facts](const char* label, std::string text, bool is_prose = false) {
    if (!text.empty()) facts.push_back({label, std::move(text), is_prose});
  };
  add("formula", spec.formula);
  add("takes", absl::StrJoin(spec.inputs, ", ", kToText));
  add("gives", absl::StrJoin(spec.outputs, ", ", kToText));
  for (const AttributeSpec& attribute : spec.attributes) add("attribute", ToText(attribute));
  add("where", absl::StrJoin(spec.conditions, ", ", kToText));
  facts.push_back(CostFact("flops", spec.clauses.flops, "none are counted"));
  facts.push_back(CostFact("bytes", spec.clauses.bytes, "each input once, each output once"));
  add("notes", spec.notes, /*is_prose=*/true);
  return facts;
}

std::string TakesText(const VariantSpec& variant) {
  return variant.clauses.when.has_value() ? ToText(*variant.clauses.when) : "all";
}

std::string ScratchText(const VariantSpec& variant) {
  return absl::StrJoin(variant.clauses.scratch, ", ", kToText);
}

}  // namespace gridclock
