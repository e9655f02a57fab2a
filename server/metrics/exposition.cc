#include "server/metrics/exposition.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "io/prometheus/client/metrics.pb.h"

namespace gridclock {
namespace {

namespace client = ::io::prometheus::client;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The shortest text that is this number again; with an exponent where Prometheus writes one too.
std::string NumberText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> text{};
  const double size = std::abs(value);
  const bool fixed = value == 0 || (size >= 1e-4 && size < 1e17);
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value,
                                 fixed ? std::chars_format::fixed : std::chars_format::scientific)
                       .ptr;
  return std::string(text.data(), end);
}

// As Prometheus 3 writes a bound whatever the format was, so that a series keeps its name.
std::string BoundText(double bound) {
  std::string text = NumberText(bound);
  if (text.find_first_of(".eI") == std::string::npos) text += ".0";
  return text;
}

std::string Escaped(absl::string_view text) {
  if (text.find_first_of("\\\n\"") == text.npos) return std::string(text);
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\n", "\\n"}, {"\"", "\\\""}});
}

double BoundOf(const MetricSpec& spec, std::size_t bucket) {
  return bucket < spec.bounds.size() ? spec.bounds[bucket] : kInfinity;
}

std::vector<std::string> BoundTexts(const MetricSpec& spec) {
  std::vector<std::string> out;
  for (const double bound : spec.bounds) out.push_back(BoundText(bound));
  out.push_back(BoundText(kInfinity));
  return out;
}

std::optional<Exemplar> ExemplarOf(const MetricSpec& spec, const Histogram::Snapshot& histogram,
                                   std::size_t bucket, const ExemplarFinder& finder) {
  if (!finder || histogram.runs[bucket] == 0) return std::nullopt;
  return finder(histogram.runs[bucket], bucket == 0 ? -kInfinity : spec.bounds[bucket - 1],
                BoundOf(spec, bucket));
}

class TextWriter {
 public:
  TextWriter(bool open_metrics, const ExemplarFinder& finder)
      : open_metrics_(open_metrics), finder_(finder) {}

  void Add(const FamilyValues& family) {
    const MetricSpec& spec = SpecOf(family.metric);
    // OpenMetrics names a family of counters without the end that its samples have.
    absl::string_view name = spec.name;
    std::string help(spec.help);
    if (open_metrics_) {
      absl::ConsumeSuffix(&name, "_total");
      help = Escaped(help);
    }
    absl::StrAppend(&out_, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", TypeName(spec.type),
                    "\n");
    const std::vector<std::string> bounds = BoundTexts(spec);
    for (const SeriesValue& series : family.series) {
      if (series.histogram) {
        AddHistogram(spec, series, bounds);
      } else {
        AddSample(spec.name, Labels(spec, series), NumberText(series.value));
        out_ += '\n';
      }
    }
  }
  std::string Finish() {
    if (open_metrics_) out_ += "# EOF\n";
    return std::move(out_);
  }

 private:
  static std::string Labels(const MetricSpec& spec, const SeriesValue& series) {
    std::string out;
    for (std::size_t i = 0; i < spec.labels.size() && i < series.labels.size(); ++i) {
      absl::StrAppend(&out, i == 0 ? "" : ",", spec.labels[i], "=\"", Escaped(series.labels[i]),
                      "\"");
    }
    return out;
  }

  void AddSample(absl::string_view name, absl::string_view labels, absl::string_view value) {
    absl::StrAppend(&out_, name);
    if (!labels.empty()) absl::StrAppend(&out_, "{", labels, "}");
    absl::StrAppend(&out_, " ", value);
  }

  void AddHistogram(const MetricSpec& spec, const SeriesValue& series,
                    const std::vector<std::string>& bounds) {
    const Histogram::Snapshot& histogram = *series.histogram;
    const std::string labels = Labels(spec, series);
    const std::string before =
        absl::StrCat(spec.name, "_bucket{", labels, labels.empty() ? "" : ",", "le=\"");
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
      below += histogram.counts[i];
      absl::StrAppend(&out_, before, bounds[i], "\"} ", below);
      if (open_metrics_) AddExemplar(ExemplarOf(spec, histogram, i, finder_));
      out_ += '\n';
    }
    AddSample(absl::StrCat(spec.name, "_sum"), labels, NumberText(histogram.sum));
    out_ += '\n';
    AddSample(absl::StrCat(spec.name, "_count"), labels, absl::StrCat(below));
    out_ += '\n';
  }

  void AddExemplar(const std::optional<Exemplar>& exemplar) {
    if (!exemplar) return;
    const std::int64_t ms = absl::ToUnixMillis(exemplar->at);
    absl::StrAppend(&out_, " # {run_id=\"", exemplar->run, "\"} ", NumberText(exemplar->value), " ",
                    ms / 1000, ".", absl::Dec(ms % 1000, absl::kZeroPad3));
  }

  const bool open_metrics_;
  const ExemplarFinder& finder_;
  std::string out_;
};

// Empty buckets between full ones cost less than another span where they are few.
constexpr int kGap = 2;

void SetNative(const Histogram::Snapshot& histogram, client::Histogram* out) {
  out->set_schema(kNativeSchema);
  out->set_zero_threshold(NativeUpperBound(0));
  out->set_zero_count(histogram.native[0]);
  int next = 0;  // The index, in Prometheus' count, that would continue the span.
  std::int64_t before = 0;
  client::BucketSpan* span = nullptr;
  const auto add = [&](std::uint64_t count) {
    out->add_positive_delta(static_cast<std::int64_t>(count) - before);
    before = static_cast<std::int64_t>(count);
    span->set_length(span->length() + 1);
    ++next;
  };
  for (std::size_t i = 1; i < histogram.native.size(); ++i) {
    if (histogram.native[i] == 0) continue;
    const int index = kNativeFirst + static_cast<int>(i);
    if (span == nullptr || index - next > kGap) {
      const int offset = span == nullptr ? index : index - next;
      span = out->add_positive_span();
      span->set_offset(offset);
      next = index;
    }
    while (next < index) add(0);
    add(histogram.native[i]);
  }
}

void SetClassic(const MetricSpec& spec, const Histogram::Snapshot& histogram,
                const ExemplarFinder& finder, client::Histogram* out) {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
    below += histogram.counts[i];
    client::Bucket* bucket = out->add_bucket();
    bucket->set_cumulative_count(below);
    bucket->set_upper_bound(BoundOf(spec, i));
    const auto exemplar = ExemplarOf(spec, histogram, i, finder);
    if (!exemplar) continue;
    client::LabelPair* label = bucket->mutable_exemplar()->add_label();
    label->set_name("run_id");
    label->set_value(exemplar->run);
    bucket->mutable_exemplar()->set_value(exemplar->value);
    auto* at = bucket->mutable_exemplar()->mutable_timestamp();
    const std::int64_t ms = absl::ToUnixMillis(exemplar->at);
    at->set_seconds(ms / 1000);
    at->set_nanos(static_cast<std::int32_t>(ms % 1000 * 1'000'000));
  }
  out->set_sample_count(below);
  out->set_sample_sum(histogram.sum);
}

client::MetricType TypeOf(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return client::COUNTER;
    case MetricType::kGauge:
      return client::GAUGE;
    case MetricType::kHistogram:
      return client::HISTOGRAM;
  }
  return client::GAUGE;
}

client::MetricFamily MessageOf(const FamilyValues& family, const ExemplarFinder& finder) {
  const MetricSpec& spec = SpecOf(family.metric);
  client::MetricFamily out;
  out.set_name(std::string(spec.name));
  out.set_help(std::string(spec.help));
  out.set_type(TypeOf(spec.type));
  for (const SeriesValue& series : family.series) {
    client::Metric* metric = out.add_metric();
    for (std::size_t i = 0; i < spec.labels.size() && i < series.labels.size(); ++i) {
      client::LabelPair* label = metric->add_label();
      label->set_name(std::string(spec.labels[i]));
      label->set_value(series.labels[i]);
    }
    if (series.histogram) {
      SetClassic(spec, *series.histogram, finder, metric->mutable_histogram());
      SetNative(*series.histogram, metric->mutable_histogram());
    } else if (spec.type == MetricType::kCounter) {
      metric->mutable_counter()->set_value(series.value);
    } else {
      metric->mutable_gauge()->set_value(series.value);
    }
  }
  return out;
}

std::string Protobuf(std::span<const FamilyValues> families, const ExemplarFinder& finder) {
  std::string out;
  google::protobuf::io::StringOutputStream stream(&out);
  for (const FamilyValues& family : families) {
    google::protobuf::util::SerializeDelimitedToZeroCopyStream(MessageOf(family, finder), &stream);
  }
  return out;
}

std::optional<Format> FormatOf(absl::string_view type, const std::vector<std::string>& parameters) {
  const auto says = [&](absl::string_view name, absl::string_view value) {
    for (const std::string& parameter : parameters) {
      if (parameter == absl::StrCat(name, "=", value)) return true;
    }
    return false;
  };
  if (type == "application/vnd.google.protobuf" &&
      says("proto", "io.prometheus.client.MetricFamily") && says("encoding", "delimited")) {
    return Format::kProtobuf;
  }
  if (type == "application/openmetrics-text") return Format::kOpenMetrics;
  if (type == "text/plain" || type == "text/*" || type == "*/*") return Format::kText;
  return std::nullopt;
}

double WeightOf(const std::vector<std::string>& parameters) {
  double weight = 1;
  for (absl::string_view parameter : parameters) {
    if (absl::ConsumePrefix(&parameter, "q=") && !absl::SimpleAtod(parameter, &weight)) return 0;
  }
  return weight;
}

}  // namespace

Format FormatFor(absl::string_view accept) {
  Format best = Format::kText;
  double most = 0;
  for (const absl::string_view range : absl::StrSplit(accept, ',')) {
    std::vector<std::string> parts;
    for (const absl::string_view part : absl::StrSplit(range, ';')) {
      parts.emplace_back(absl::StripAsciiWhitespace(part));
    }
    const std::string type = parts[0];
    parts.erase(parts.begin());
    const std::optional<Format> format = FormatOf(type, parts);
    const double weight = WeightOf(parts);
    if (!format || !(weight > most)) continue;
    best = *format;
    most = weight;
  }
  return best;
}

absl::string_view ContentTypeOf(Format format) {
  switch (format) {
    case Format::kText:
      return "text/plain; version=0.0.4; charset=utf-8";
    case Format::kOpenMetrics:
      return "application/openmetrics-text; version=1.0.0; charset=utf-8";
    case Format::kProtobuf:
      return "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; "
             "encoding=delimited";
  }
  return "";
}

std::string Expose(Format format, std::span<const FamilyValues> families,
                   const ExemplarFinder& exemplar) {
  if (format == Format::kProtobuf) return Protobuf(families, exemplar);
  TextWriter writer(format == Format::kOpenMetrics, exemplar);
  for (const FamilyValues& family : families) writer.Add(family);
  return writer.Finish();
}

}  // namespace gridclock
