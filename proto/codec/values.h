// Values that both services and workers exchange: messages of gridclock.v1 <-> plain types.
// Decoding answers INVALID_ARGUMENT with the field's path; encoding cannot fail.
#ifndef GRIDCLOCK_PROTO_CODEC_VALUES_H_
#define GRIDCLOCK_PROTO_CODEC_VALUES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "gridclock/v1/kernels.pb.h"
#include "gridclock/v1/system.pb.h"
#include "gridclock/v1/types.pb.h"
#include "proto/types/device.h"
#include "proto/types/job.h"

namespace gridclock {

// `field` is the path of the message for error details: "inputs[2].spec".
absl::StatusOr<DType> Decode(v1::DType dtype, absl::string_view field);
absl::StatusOr<OperandValue> Decode(const v1::TensorSpec& spec, absl::string_view field);
absl::StatusOr<AttributeValue> Decode(const v1::AttributeValue& value, absl::string_view field);
absl::StatusOr<Generator> Decode(const v1::Generator& generator, absl::string_view field);
// Zero fields take the defaults of MeasureOptions; the result is validated.
absl::StatusOr<MeasureOptions> Decode(const v1::MeasureOptions& options);

v1::DType Encode(DType dtype);
void Encode(const MethodFacts& method, v1::Device::MethodFacts* out);
void Encode(const FlopRate& rate, v1::Device::FlopRate* out);
void Encode(const OperandValue& value, v1::TensorSpec* out);
void Encode(const AttributeValue& value, v1::AttributeValue* out);
void Encode(const Generator& generator, v1::Generator* out);
void Encode(const MeasureOptions& options, v1::MeasureOptions* out);

// Summaries, for the server (encode) and for clients and the worker's edge (decode).
void Encode(const Timing& timing, bool with_samples, v1::Timing* out);
Timing Decode(const v1::Timing& timing);
void Encode(const Phase& phase, v1::Phase* out);
Phase Decode(const v1::Phase& phase);
void Encode(const Launch& launch, v1::DeviceKernel* out);
Launch Decode(const v1::DeviceKernel& launch);
void Encode(const Verification& verification, v1::Verification* out);
Verification Decode(const v1::Verification& verification);
v1::Flag Encode(Flag flag);
std::vector<Flag> DecodeFlags(const google::protobuf::RepeatedField<int>& flags);

// Fills bytes_per_second, flops_per_second and roofline_fraction of `out` from the outcome's costs.
void EncodeSummary(const Job& job, const Outcome& outcome, bool with_samples, v1::RunSummary* out);

absl::StatusOr<Clauses> Decode(const v1::Clauses& clauses, absl::string_view field);
void Encode(const Clauses& clauses, v1::Clauses* out);
absl::StatusOr<KernelSpec> Decode(const v1::KernelSpec& spec);
void Encode(const KernelSpec& spec, v1::KernelSpec* out);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_CODEC_VALUES_H_
