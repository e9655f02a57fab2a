#include "client/cli/format.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/terminal.h"

namespace gridclock::cli {
namespace {

bool IsNumber(absl::string_view text) {
  return !text.empty() && (absl::ascii_isdigit(text[0]) || text == "-" || text[0] == '+');
}

}  // namespace

absl::StatusOr<absl::Duration> ParseSeconds(absl::string_view text) {
  double seconds = 0;
  absl::Duration out;
  if (absl::SimpleAtod(text, &seconds)) {
    out = absl::Seconds(seconds);
  } else if (!absl::ParseDuration(text, &out)) {
    return absl::InvalidArgumentError(
        absl::StrCat("want a time like 5, 250ms or 2m, got '", text, "'"));
  }
  if (out < absl::ZeroDuration() || std::isnan(seconds)) {
    return absl::InvalidArgumentError(absl::StrCat("want a time of 0 or more, got '", text, "'"));
  }
  return out;
}

absl::StatusOr<std::int64_t> ParseSize(absl::string_view text) {
  absl::string_view digits = text;
  int shift = 0;
  for (const auto& [letter, power] : {std::pair{'K', 10}, {'M', 20}, {'G', 30}}) {
    if (!digits.empty() && digits.back() == letter) {
      shift = power;
      digits.remove_suffix(1);
      break;
    }
  }
  std::int64_t value = 0, out = 0;
  if (!absl::SimpleAtoi(digits, &value) || value < 0 ||
      __builtin_mul_overflow(value, std::int64_t{1} << shift, &out)) {
    return absl::InvalidArgumentError(
        absl::StrCat("want a size like 4096, 64K or 1M, got '", text, "'"));
  }
  return out;
}

void Table::Drop(const std::string& heading) {
  const auto column = std::find(rows_[0].begin(), rows_[0].end(), heading) - rows_[0].begin();
  for (auto& row : rows_) {
    if (column < static_cast<std::ptrdiff_t>(row.size())) row.erase(row.begin() + column);
  }
}

std::string Table::ToText() const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  // A column of numbers stands to the right, its heading too.
  std::vector<bool> right(widths.size(), rows_.size() > 1);
  for (std::size_t r = 1; r < rows_.size(); ++r) {
    for (std::size_t i = 0; i < rows_[r].size(); ++i) {
      if (!rows_[r][i].empty() && !IsNumber(rows_[r][i])) right[i] = false;
    }
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - Width(row[i]), ' ');
      absl::StrAppend(&line, i > 0 ? "  " : "", right[i] ? blanks : "", row[i],
                      right[i] ? "" : blanks);
    }
    absl::StrAppend(&out, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return out;
}

}  // namespace gridclock::cli
