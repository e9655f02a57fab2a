// Numbers that people write, and tables for them to read.
#ifndef GRIDCLOCK_CLIENT_CLI_FORMAT_H_
#define GRIDCLOCK_CLIENT_CLI_FORMAT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/units.h"

namespace gridclock::cli {

// "5", "5s", "250ms", "2m".
absl::StatusOr<absl::Duration> ParseSeconds(absl::string_view text);
// "1M", "4096": K, M and G are powers of 1024.
absl::StatusOr<std::int64_t> ParseSize(absl::string_view text);

// Lines of equal columns. The first row is the heading; numbers stand to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> heading) : rows_{std::move(heading)} {}
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // Takes the column of this heading out.
  void Drop(const std::string& heading);
  std::string ToText() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_FORMAT_H_
