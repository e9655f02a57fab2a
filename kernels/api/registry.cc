#include "kernels/api/registry.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace gridclock {
namespace {

absl::Status AddVariants(absl::string_view device_kind, const std::vector<Variant>& variants,
                         std::vector<VariantSpec>& specs) {
  for (const Variant& variant : variants) {
    VariantSpec spec{.name = variant.name,
                     .device_kind = std::string(device_kind),
                     .summary = variant.summary,
                     .clauses = {}};
    if (!variant.clauses.empty()) {
      auto clauses = ParseClauses(variant.clauses);
      if (!clauses.ok()) return Annotate(clauses.status(), absl::StrCat("variant ", variant.name));
      spec.clauses = *std::move(clauses);
    }
    specs.push_back(std::move(spec));
  }
  return absl::OkStatus();
}

absl::StatusOr<KernelSpec> MakeSpec(const std::string& name, const KernelDef& def) {
  GC_ASSIGN_OR_RETURN(KernelSpec spec, ParseKernelSpec(absl::StrCat(name, " ", def.words)));
  spec.summary = def.summary;
  spec.formula = def.formula;
  spec.notes = def.notes;
  spec.diagnostic = def.diagnostic;
  GC_RETURN_IF_ERROR(AddVariants("cpu", def.cpu, spec.variants));
  GC_RETURN_IF_ERROR(AddVariants("cuda", def.cuda, spec.variants));
  GC_RETURN_IF_ERROR(Validate(spec));
  return spec;
}

}  // namespace

absl::StatusOr<Registry> Registry::Create(std::vector<std::pair<std::string, KernelDef>> defs) {
  Registry registry;
  for (auto& [name, def] : defs) {
    auto spec = MakeSpec(name, def);
    if (!spec.ok()) {
      return absl::InternalError(absl::StrCat("kernel '", name, "': ", spec.status().message()));
    }
    const bool added =
        registry.kernels_.emplace(name, RegisteredKernel{*std::move(spec), std::move(def)}).second;
    if (!added) return absl::InternalError(absl::StrCat("kernel '", name, "' is defined twice"));
  }
  return registry;
}

const RegisteredKernel* Registry::Find(absl::string_view name) const {
  const auto found = kernels_.find(name);
  return found == kernels_.end() ? nullptr : &found->second;
}

const Variant* Registry::FindVariant(const RegisteredKernel& kernel, absl::string_view device_kind,
                                     absl::string_view variant) {
  const auto& variants = device_kind == "cuda" ? kernel.def.cuda : kernel.def.cpu;
  for (const Variant& candidate : variants) {
    if (candidate.name == variant) return &candidate;
  }
  return nullptr;
}

}  // namespace gridclock
