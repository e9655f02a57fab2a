// The words of a kernel: expressions travel as text of the language.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/codec/values.h"

namespace gridclock {
namespace {

template <typename Wire, typename Plain, typename DecodeOne>
absl::Status DecodeAll(const Wire& wire, absl::string_view field, std::vector<Plain>* out,
                       DecodeOne decode) {
  out->reserve(wire.size());
  for (int i = 0; i < static_cast<int>(wire.size()); ++i) {
    GC_ASSIGN_OR_RETURN(Plain plain, decode(wire.Get(i), absl::StrCat(field, "[", i, "]")));
    out->push_back(std::move(plain));
  }
  return absl::OkStatus();
}

// Declared before EncodeAll, whose lookup would not find them later.
void Encode(const Dim& in, v1::Dim* out);
void Encode(const OperandSpec& in, v1::OperandSpec* out);
void Encode(const AttributeSpec& in, v1::AttributeSpec* out);
void Encode(const Condition& in, v1::Condition* out);
void Encode(const ParamSpec& in, v1::ParamSpec* out);
void Encode(const VariantSpec& in, v1::VariantSpec* out);

template <typename Plain, typename Wire>
void EncodeAll(const std::vector<Plain>& plain, Wire* out) {
  for (const Plain& one : plain) Encode(one, out->Add());
}

absl::StatusOr<Expr> DecodeExpr(absl::string_view text, absl::string_view field) {
  auto expr = ParseExpr(text);
  if (!expr.ok()) return WithField(Annotate(expr.status(), field), field);
  return expr;
}

absl::Status DecodeOptional(absl::string_view text, absl::string_view field,
                            std::optional<Expr>* out) {
  if (text.empty()) return absl::OkStatus();
  GC_ASSIGN_OR_RETURN(*out, DecodeExpr(text, field));
  return absl::OkStatus();
}

std::string Text(const std::optional<Expr>& expr) {
  return expr ? ToText(*expr) : "";
}

absl::StatusOr<Dim> DecodeDim(const v1::Dim& in, const std::string& field);

absl::Status DecodeChoose(const v1::Dim::Choose& in, const std::string& field, Dim* out) {
  out->kind = Dim::Kind::kChoose;
  GC_ASSIGN_OR_RETURN(out->expr, DecodeExpr(in.condition(), absl::StrCat(field, ".condition")));
  GC_RETURN_IF_ERROR(DecodeAll(in.yes(), absl::StrCat(field, ".yes"), &out->yes, DecodeDim));
  return DecodeAll(in.no(), absl::StrCat(field, ".no"), &out->no, DecodeDim);
}

absl::StatusOr<Dim> DecodeDim(const v1::Dim& in, const std::string& field) {
  Dim out;
  switch (in.kind_case()) {
    case v1::Dim::kExpression: {
      GC_ASSIGN_OR_RETURN(out.expr, DecodeExpr(in.expression(), field));
      return out;
    }
    case v1::Dim::kRun:
      out.kind = Dim::Kind::kRun;
      out.name = in.run();
      return out;
    case v1::Dim::kSwap:
      out.kind = Dim::Kind::kSwap;
      out.name = in.swap().run();
      out.swap_i = in.swap().i();
      out.swap_j = in.swap().j();
      return out;
    case v1::Dim::kAt:
      out.kind = Dim::Kind::kAt;
      out.name = in.at().dim();
      out.at = in.at().attribute();
      return out;
    case v1::Dim::kChoose:
      GC_RETURN_IF_ERROR(DecodeChoose(in.choose(), field, &out));
      return out;
    case v1::Dim::KIND_NOT_SET:
      break;
  }
  return WithField(absl::InvalidArgumentError(absl::StrCat(field, ": no kind of dimension is set")),
                   field);
}

void Encode(const Dim& in, v1::Dim* out) {
  switch (in.kind) {
    case Dim::Kind::kExpr:
      out->set_expression(ToText(in.expr));
      return;
    case Dim::Kind::kRun:
      out->set_run(in.name);
      return;
    case Dim::Kind::kSwap:
      out->mutable_swap()->set_run(in.name);
      out->mutable_swap()->set_i(in.swap_i);
      out->mutable_swap()->set_j(in.swap_j);
      return;
    case Dim::Kind::kAt:
      out->mutable_at()->set_dim(in.name);
      out->mutable_at()->set_attribute(in.at);
      return;
    case Dim::Kind::kChoose:
      out->mutable_choose()->set_condition(ToText(in.expr));
      EncodeAll(in.yes, out->mutable_choose()->mutable_yes());
      EncodeAll(in.no, out->mutable_choose()->mutable_no());
      return;
  }
}

absl::StatusOr<OperandSpec> DecodeOperand(const v1::OperandSpec& in, const std::string& field) {
  OperandSpec out{.name = in.name(),
                  .inout = in.inout(),
                  .is_list = in.is_list(),
                  .elem = in.elem(),
                  .dims = {},
                  .over = in.over()};
  GC_RETURN_IF_ERROR(DecodeAll(in.dims(), absl::StrCat(field, ".dims"), &out.dims, DecodeDim));
  return out;
}

void Encode(const OperandSpec& in, v1::OperandSpec* out) {
  out->set_name(in.name);
  out->set_inout(in.inout);
  out->set_is_list(in.is_list);
  out->set_elem(in.elem);
  EncodeAll(in.dims, out->mutable_dims());
  out->set_over(in.over);
}

absl::Status DecodeDomain(const v1::AttributeSpec& in, const std::string& field,
                          AttributeSpec* out) {
  if (in.has_default_value()) {
    GC_ASSIGN_OR_RETURN(out->default_value,
                        Decode(in.default_value(), absl::StrCat(field, ".default_value")));
  }
  if (in.has_range()) {
    out->range = AttributeSpec::Range{.low = in.range().low(),
                                      .high = in.range().high(),
                                      .low_int = in.range().low_int(),
                                      .high_int = in.range().high_int(),
                                      .low_open = in.range().low_open(),
                                      .high_open = in.range().high_open()};
  }
  return DecodeAll(in.allowed(), absl::StrCat(field, ".allowed"), &out->allowed,
                   [](const v1::AttributeValue& value, const std::string& where) {
                     return Decode(value, where);
                   });
}

absl::StatusOr<AttributeSpec> DecodeAttribute(const v1::AttributeSpec& in,
                                              const std::string& field) {
  if (in.type() < v1::AttributeSpec::TYPE_I64 || in.type() > v1::AttributeSpec::TYPE_ENUM) {
    return WithField(
        absl::InvalidArgumentError(absl::StrCat(field, ".type: unknown type ", in.type())), field);
  }
  AttributeSpec out{.name = in.name(),
                    .type = static_cast<AttributeSpec::Type>(in.type() - 1),
                    .words = {in.words().begin(), in.words().end()},
                    .default_value = {},
                    .range = {},
                    .allowed = {}};
  GC_RETURN_IF_ERROR(DecodeDomain(in, field, &out));
  return out;
}

void Encode(const AttributeSpec& in, v1::AttributeSpec* out) {
  out->set_name(in.name);
  out->set_type(static_cast<v1::AttributeSpec::Type>(static_cast<int>(in.type) + 1));
  for (const std::string& word : in.words) out->add_words(word);
  if (in.default_value) Encode(*in.default_value, out->mutable_default_value());
  if (in.range) {
    v1::AttributeSpec::Range* range = out->mutable_range();
    range->set_low(in.range->low);
    range->set_high(in.range->high);
    range->set_low_int(in.range->low_int);
    range->set_high_int(in.range->high_int);
    range->set_low_open(in.range->low_open);
    range->set_high_open(in.range->high_open);
  }
  EncodeAll(in.allowed, out->mutable_allowed());
}

absl::StatusOr<Condition> DecodeCondition(const v1::Condition& in, const std::string& field) {
  Condition out{.variable = in.variable(), .dtypes = {}, .expr = {}};
  for (const int dtype : in.dtypes()) {
    GC_ASSIGN_OR_RETURN(out.dtypes.emplace_back(),
                        Decode(static_cast<v1::DType>(dtype), absl::StrCat(field, ".dtypes")));
  }
  GC_RETURN_IF_ERROR(
      DecodeOptional(in.expression(), absl::StrCat(field, ".expression"), &out.expr));
  return out;
}

void Encode(const Condition& in, v1::Condition* out) {
  out->set_variable(in.variable);
  for (const DType dtype : in.dtypes) out->add_dtypes(Encode(dtype));
  out->set_expression(Text(in.expr));
}

absl::StatusOr<ParamSpec> DecodeParam(const v1::ParamSpec& in, const std::string& field) {
  if (in.kind() < v1::ParamSpec::OPERAND || in.kind() > v1::ParamSpec::NULL_POINTER) {
    return WithField(
        absl::InvalidArgumentError(absl::StrCat(field, ".kind: unknown kind ", in.kind())), field);
  }
  ParamSpec out{.kind = static_cast<ParamSpec::Kind>(in.kind() - 1),
                .name = in.name(),
                .ctype = in.ctype(),
                .expr = {},
                .promise = in.promise()};
  GC_RETURN_IF_ERROR(
      DecodeOptional(in.expression(), absl::StrCat(field, ".expression"), &out.expr));
  return out;
}

void Encode(const ParamSpec& in, v1::ParamSpec* out) {
  out->set_kind(static_cast<v1::ParamSpec::Kind>(static_cast<int>(in.kind) + 1));
  out->set_name(in.name);
  out->set_ctype(in.ctype);
  out->set_expression(Text(in.expr));
  out->set_promise(in.promise);
}

}  // namespace

absl::StatusOr<Clauses> Decode(const v1::Clauses& in, absl::string_view field) {
  Clauses out;
  GC_RETURN_IF_ERROR(DecodeOptional(in.flops(), absl::StrCat(field, ".flops"), &out.flops));
  GC_RETURN_IF_ERROR(DecodeOptional(in.bytes(), absl::StrCat(field, ".bytes"), &out.bytes));
  GC_RETURN_IF_ERROR(DecodeOptional(in.when(), absl::StrCat(field, ".when"), &out.when));
  GC_RETURN_IF_ERROR(DecodeOptional(in.shared(), absl::StrCat(field, ".shared"), &out.shared));
  GC_RETURN_IF_ERROR(DecodeAll(in.grid(), absl::StrCat(field, ".grid"), &out.grid, DecodeExpr));
  GC_RETURN_IF_ERROR(DecodeAll(in.block(), absl::StrCat(field, ".block"), &out.block, DecodeExpr));
  GC_RETURN_IF_ERROR(
      DecodeAll(in.cluster(), absl::StrCat(field, ".cluster"), &out.cluster, DecodeExpr));
  GC_RETURN_IF_ERROR(
      DecodeAll(in.scratch(), absl::StrCat(field, ".scratch"), &out.scratch, DecodeOperand));
  GC_RETURN_IF_ERROR(
      DecodeAll(in.params(), absl::StrCat(field, ".params"), &out.params, DecodeParam));
  return out;
}

void Encode(const Clauses& in, v1::Clauses* out) {
  out->set_flops(Text(in.flops));
  out->set_bytes(Text(in.bytes));
  out->set_when(Text(in.when));
  out->set_shared(Text(in.shared));
  for (const Expr& expr : in.grid) out->add_grid(ToText(expr));
  for (const Expr& expr : in.block) out->add_block(ToText(expr));
  for (const Expr& expr : in.cluster) out->add_cluster(ToText(expr));
  EncodeAll(in.scratch, out->mutable_scratch());
  EncodeAll(in.params, out->mutable_params());
}

namespace {

absl::StatusOr<VariantSpec> DecodeVariant(const v1::VariantSpec& in, const std::string& field) {
  VariantSpec out{
      .name = in.name(), .device_kind = in.device_kind(), .summary = in.summary(), .clauses = {}};
  GC_ASSIGN_OR_RETURN(out.clauses, Decode(in.clauses(), absl::StrCat(field, ".clauses")));
  return out;
}

void Encode(const VariantSpec& in, v1::VariantSpec* out) {
  out->set_name(in.name);
  out->set_device_kind(in.device_kind);
  out->set_summary(in.summary);
  Encode(in.clauses, out->mutable_clauses());
}

}  // namespace

absl::StatusOr<KernelSpec> Decode(const v1::KernelSpec& in) {
  KernelSpec out;
  out.name = in.name();
  out.summary = in.summary();
  out.formula = in.formula();
  out.notes = in.notes();
  out.diagnostic = in.diagnostic();
  GC_RETURN_IF_ERROR(DecodeAll(in.inputs(), "inputs", &out.inputs, DecodeOperand));
  GC_RETURN_IF_ERROR(DecodeAll(in.outputs(), "outputs", &out.outputs, DecodeOperand));
  GC_RETURN_IF_ERROR(DecodeAll(in.attributes(), "attributes", &out.attributes, DecodeAttribute));
  GC_RETURN_IF_ERROR(DecodeAll(in.conditions(), "conditions", &out.conditions, DecodeCondition));
  GC_ASSIGN_OR_RETURN(out.clauses, Decode(in.clauses(), "clauses"));
  GC_RETURN_IF_ERROR(DecodeAll(in.variants(), "variants", &out.variants, DecodeVariant));
  GC_RETURN_IF_ERROR(Validate(out));
  return out;
}

void Encode(const KernelSpec& in, v1::KernelSpec* out) {
  out->set_name(in.name);
  out->set_summary(in.summary);
  out->set_formula(in.formula);
  out->set_notes(in.notes);
  out->set_diagnostic(in.diagnostic);
  EncodeAll(in.inputs, out->mutable_inputs());
  EncodeAll(in.outputs, out->mutable_outputs());
  EncodeAll(in.attributes, out->mutable_attributes());
  EncodeAll(in.conditions, out->mutable_conditions());
  Encode(in.clauses, out->mutable_clauses());
  EncodeAll(in.variants, out->mutable_variants());
  out->set_words(ToText(in));
}

}  // namespace gridclock
