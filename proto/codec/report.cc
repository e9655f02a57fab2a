// What a worker reports of an order: samples, the end, a failure.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/text.h"
#include "proto/codec/values.h"
#include "proto/codec/vitals.h"
#include "proto/codec/worker.h"

namespace gridclock {
namespace {

// Texts that a worker sends end up in answers to clients.
constexpr std::size_t kMostText = 2048;
constexpr int kMostLaunches = 256;

std::string Clipped(absl::string_view text) {
  bool cut = false;
  return CutText(std::string(text), kMostText, &cut);
}

bool IsTime(double ns) {
  return std::isfinite(ns) && ns >= 0;
}

absl::Status Broken(const Job& job, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("report of job ", job.id, ": ", what));
}

std::int64_t MostSamples(const Job& job) {
  if (!job.measure) return 1;
  if (!job.measure->schedule) return MostSamples(*job.measure, !job.host_memory);
  return job.measure->schedule->active * job.measure->schedule->repeat;
}

}  // namespace

void EncodeSamples(std::uint64_t id, std::int64_t first, std::span<const double> samples_ns,
                   bool warmup, worker::v1::ToServer* out) {
  worker::v1::Samples* frame = out->mutable_samples();
  frame->set_id(id);
  frame->set_first(first);
  frame->mutable_samples_ns()->Clear();
  frame->mutable_samples_ns()->Add(samples_ns.begin(), samples_ns.end());
  frame->set_warmup(warmup);
}

void EncodeDone(std::uint64_t id, std::uint64_t generation, const Outcome& outcome,
                worker::v1::Done* out) {
  out->set_id(id);
  out->set_generation(generation);
  out->set_variant(outcome.variant);
  if (outcome.timing) {
    // The sample of a single launch is not worth a frame of its own.
    const bool single = outcome.timing->stop == StopReason::kSingleLaunch;
    Encode(*outcome.timing, single, out->mutable_timing());
  }
  for (const Phase& phase : outcome.phases) Encode(phase, out->add_phases());
  for (const Flag flag : outcome.flags) out->add_flags(Encode(flag));
  for (const Launch& launch : outcome.launches) Encode(launch, out->add_device_kernels());
  if (outcome.verification) {
    Encode(*outcome.verification, out->mutable_verification());
    out->mutable_verification()->set_first_mismatch(Clipped(outcome.verification->first_mismatch));
    for (std::string& text : *out->mutable_verification()->mutable_more_mismatches()) {
      text = Clipped(text);
    }
  }
  for (const OutputResult& output : outcome.outputs) {
    out->add_checksums(output.checksum.value_or(0));
  }
  out->set_peak_device_bytes(outcome.peak_device_bytes);
  out->set_printed(outcome.printed);
  out->set_printed_truncated(outcome.printed_truncated);
}

void EncodeFailed(std::uint64_t id, std::uint64_t generation, const absl::Status& status,
                  bool sticky, const Outcome* partial, worker::v1::Failed* out) {
  const ErrorDetails details = DetailsOf(status);
  out->set_id(id);
  out->set_generation(generation);
  out->set_code(static_cast<int>(status.code()));
  out->set_message(Clipped(status.message()));
  out->set_reason(details.reason);
  out->set_field(details.field);
  out->set_sticky(sticky);
  if (partial != nullptr) EncodeDone(id, generation, *partial, out->mutable_partial());
}

absl::Status SampleBuffer::Add(const worker::v1::Samples& frame, const Job& job) {
  const auto expected = frame.warmup() ? warmups_ : static_cast<std::int64_t>(samples_.size());
  // Each frame costs whoever reads the stream something, whatever is in it.
  if (frame.samples_ns_size() == 0) return Broken(job, "a frame of no samples");
  if (frame.first() != expected) {
    return Broken(job, absl::StrCat("samples begin at ", frame.first(), "; want ", expected));
  }
  if (!std::all_of(frame.samples_ns().begin(), frame.samples_ns().end(), IsTime)) {
    return Broken(job, "a sample is not a time");
  }
  if (frame.warmup()) {
    if (!job.streamed) return Broken(job, "warm-ups, which nobody asked to see");
    warmups_ += frame.samples_ns_size();
    return absl::OkStatus();
  }
  if (expected + frame.samples_ns_size() > MostSamples(job)) {
    return Broken(job, absl::StrCat("more than the ", MostSamples(job), " samples ordered"));
  }
  samples_.insert(samples_.end(), frame.samples_ns().begin(), frame.samples_ns().end());
  return absl::OkStatus();
}

namespace {

bool IsStateIfSet(const std::optional<DeviceState>& state) {
  return !state || IsState(*state);
}

bool TimesAreTimes(const Timing& timing) {
  const Statistics& s = timing.statistics;
  const double times[] = {s.median,
                          s.min,
                          s.max,
                          s.q1,
                          s.q3,
                          s.mean,
                          s.stddev,
                          s.ci_low.value_or(0),
                          s.ci_high.value_or(0),
                          s.p99.value_or(0),
                          timing.second ? timing.second->median_ns : 0,
                          timing.method_floor_ns,
                          timing.roofline_ns};
  return std::all_of(std::begin(times), std::end(times), IsTime) && IsStateIfSet(timing.before) &&
         IsStateIfSet(timing.after) &&
         std::all_of(timing.samples_ns.begin(), timing.samples_ns.end(), IsTime);
}

bool EnumsAreKnown(const v1::Timing& timing) {
  return timing.method() >= v1::ISOLATED && timing.method() <= v1::EVENT_PAIR &&
         timing.second_method() >= v1::METHOD_UNSPECIFIED &&
         timing.second_method() <= v1::EVENT_PAIR && timing.l2() >= v1::HOT &&
         timing.l2() <= v1::COLD_DIRTY && timing.stop() >= v1::Timing::SINGLE_LAUNCH &&
         timing.stop() <= v1::Timing::YIELDED;
}

absl::StatusOr<Timing> DecodeTiming(const v1::Timing& wire, const Job& job,
                                    std::vector<double> samples) {
  if (!EnumsAreKnown(wire)) return Broken(job, "an unknown method, cache state or stop reason");
  const bool inside = wire.stop() == v1::Timing::SINGLE_LAUNCH;
  if (!inside && wire.samples_ns_size() != 0) {
    return Broken(job, "samples of a measurement must come ahead in frames of their own");
  }
  if (inside && !samples.empty()) return Broken(job, "a single launch with samples ahead");
  if (wire.samples_ns_size() > MostSamples(job)) return Broken(job, "more samples than ordered");
  Timing timing = Decode(wire);
  if (!inside) timing.samples_ns = std::move(samples);
  if (timing.samples_ns.empty()) return Broken(job, "a timing without a sample");
  if (!TimesAreTimes(timing) || timing.warmups < 0) {
    return Broken(job, "a number of the timing is not a time");
  }
  timing.roofline_basis = Clipped(timing.roofline_basis);
  for (auto* state : {&timing.before, &timing.after}) {
    if (!*state) continue;
    for (std::string& reason : (*state)->clock_reasons) reason = Clipped(reason);
  }
  return timing;
}

absl::StatusOr<Verification> DecodeVerification(const v1::Verification& wire, const Job& job) {
  if (wire.checked() < 0 || wire.total() < wire.checked() || wire.mismatches() < 0 ||
      wire.mismatches() > wire.checked() || wire.undecided() < 0 ||
      wire.undecided() > wire.checked() - wire.mismatches()) {
    return Broken(job, "counts of the verification contradict each other");
  }
  // An infinite error is legal: NaN where a number was wanted.
  const auto is_amount = [](double value) { return value >= 0; };
  if (!is_amount(wire.max_error()) || !is_amount(wire.max_abs()) || !is_amount(wire.max_rel()) ||
      !is_amount(wire.max_ulp()) || wire.nan_mismatches() < 0 ||
      wire.nan_mismatches() > wire.mismatches()) {
    return Broken(job, "an error of the verification is no amount");
  }
  if (wire.more_mismatches_size() >= static_cast<int>(kMostNamedMismatches) ||
      (wire.more_mismatches_size() > 0 && wire.more_mismatches_size() >= wire.mismatches())) {
    return Broken(job,
                  absl::StrCat(wire.more_mismatches_size(),
                               " mismatches named behind the "
                               "first, of ",
                               wire.mismatches(), "; at most ", kMostNamedMismatches - 1, " are"));
  }
  Verification out = Decode(wire);
  out.first_mismatch = Clipped(CleanText(out.first_mismatch));
  for (std::string& text : out.more_mismatches) text = Clipped(CleanText(text));
  return out;
}

absl::Status DecodePhases(const worker::v1::Done& done, const Job& job, Outcome* out) {
  const std::int64_t arrived = absl::ToUnixNanos(job.arrived);
  // Those of its own work, each once, in this order.
  auto last = v1::Phase::QUEUED;
  for (const v1::Phase& wire : done.phases()) {
    Phase phase = Decode(wire);
    if (std::exchange(last, wire.kind()) >= wire.kind() || wire.kind() > v1::Phase::OUTPUT_COPIED ||
        phase.start_ns < arrived || phase.end_ns < phase.start_ns) {
      return Broken(job, absl::StrCat("phase ", wire.kind(), " from ", phase.start_ns, " to ",
                                      phase.end_ns, " cannot be: the job arrived at ", arrived));
    }
    phase.start_ns -= arrived;
    phase.end_ns -= arrived;
    out->phases.push_back(phase);
  }
  return absl::OkStatus();
}

absl::Status DecodeOutputs(const worker::v1::Done& done, const Job& job, Outcome* out) {
  if (static_cast<std::size_t>(done.checksums_size()) != job.outputs.size()) {
    return Broken(job, absl::StrCat(done.checksums_size(), " outputs reported, ",
                                    job.outputs.size(), " ordered"));
  }
  out->outputs.resize(job.outputs.size());
  for (std::size_t i = 0; i < job.outputs.size(); ++i) {
    // A guest could say any: of submitted code the server makes them itself.
    if (job.outputs[i].sink != SinkKind::kChecksum || job.program != nullptr) continue;
    out->outputs[i].checksum = done.checksums(static_cast<int>(i));
  }
  return absl::OkStatus();
}

absl::Status DecodePrinted(const worker::v1::Done& done, const Job& job, Outcome* out) {
  if (done.printed().size() > kMostPrinted) {
    return Broken(job,
                  absl::StrCat(done.printed().size(), " bytes printed, at most ", kMostPrinted));
  }
  if (job.program == nullptr && !done.printed().empty()) {
    return Broken(job, "a kernel of the catalogue prints nothing");
  }
  out->printed = done.printed();
  out->printed_truncated = done.printed_truncated();
  return absl::OkStatus();
}

absl::StatusOr<Outcome> DecodeOutcome(const worker::v1::Done& done, const Job& job,
                                      std::vector<double> samples) {
  Outcome out;
  out.variant = job.variant;
  if (done.variant() != job.variant) {
    return Broken(job, absl::StrCat("ran variant '", Clipped(done.variant()), "', ordered '",
                                    job.variant, "'"));
  }
  if (done.has_timing()) {
    GC_ASSIGN_OR_RETURN(out.timing, DecodeTiming(done.timing(), job, std::move(samples)));
  }
  GC_RETURN_IF_ERROR(DecodePhases(done, job, &out));
  out.flags = DecodeFlags(done.flags());
  if (done.device_kernels_size() > kMostLaunches) return Broken(job, "too many device kernels");
  for (const v1::DeviceKernel& launch : done.device_kernels()) {
    out.launches.push_back(Decode(launch));
    out.launches.back().name = Clipped(launch.name());
  }
  if (done.has_verification()) {
    if (job.program != nullptr) return Broken(job, "a guest verifies nothing");
    GC_ASSIGN_OR_RETURN(out.verification, DecodeVerification(done.verification(), job));
  }
  GC_RETURN_IF_ERROR(DecodeOutputs(done, job, &out));
  GC_RETURN_IF_ERROR(DecodePrinted(done, job, &out));
  out.flops = job.flops;
  out.bytes = job.bytes;
  out.peak_device_bytes = done.peak_device_bytes();
  return out;
}

bool IsMeasuredAs(const MeasureOptions& ordered, const std::optional<Timing>& timing) {
  return timing && timing->stop != StopReason::kSingleLaunch && timing->method == ordered.method &&
         timing->l2 == ordered.l2;
}

// Whether all that was ordered is there, or the word that it could not be had.
absl::Status CheckComplete(const Job& job, const Outcome& outcome) {
  if (job.measure && !IsMeasuredAs(*job.measure, outcome.timing)) {
    return Broken(job, "no measurement by the method and the cache state ordered");
  }
  const bool told = std::find(outcome.flags.begin(), outcome.flags.end(), Flag::kUnverified) !=
                    outcome.flags.end();
  if (job.verify && !job.check && !outcome.verification && !told)
    return Broken(job, "no verification");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Outcome> Decode(const worker::v1::Done& done, const Job& job,
                               std::vector<double> samples) {
  GC_ASSIGN_OR_RETURN(Outcome outcome, DecodeOutcome(done, job, std::move(samples)));
  GC_RETURN_IF_ERROR(CheckComplete(job, outcome));
  return outcome;
}

absl::StatusOr<Outcome> DecodeCompared(const worker::v1::Done& done, const Job& job) {
  Outcome out;
  if (!done.has_verification()) return Broken(job, "no verification");
  GC_ASSIGN_OR_RETURN(out.verification, DecodeVerification(done.verification(), job));
  GC_RETURN_IF_ERROR(DecodePhases(done, job, &out));
  out.flags = DecodeFlags(done.flags());
  return out;
}

absl::StatusOr<WorkerFailure> Decode(const worker::v1::Failed& failed, const Job& job,
                                     std::vector<double> samples) {
  if (failed.code() < 1 || failed.code() > static_cast<int>(absl::StatusCode::kUnauthenticated)) {
    return Broken(job, absl::StrCat("a failure of code ", failed.code()));
  }
  absl::Status status(static_cast<absl::StatusCode>(failed.code()), Clipped(failed.message()));
  ErrorDetails details;
  details.reason = Clipped(failed.reason());
  details.field = Clipped(failed.field());
  // A kernel's own check, of what its words cannot say, has no reason.
  WorkerFailure out{
      .status = WithReasonIfNone(WithDetails(std::move(status), details), "SIGNATURE_MISMATCH"),
      .sticky = failed.sticky(),
      .partial = {}};
  if (failed.has_partial()) {
    GC_ASSIGN_OR_RETURN(out.partial, DecodeOutcome(failed.partial(), job, std::move(samples)));
  }
  return out;
}

}  // namespace gridclock
