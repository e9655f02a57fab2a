#include "server/rpc/upload.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "proto/types/quote.h"

namespace gridclock {
namespace {

absl::Status Wrong(absl::string_view field, absl::string_view text) {
  return WithReason(InvalidField(field, text), "BAD_CHUNK");
}

// Returns where the last byte lies; `size` MUST be over 0.
std::uint64_t Scatter(const ArenaMemory& memory, WireReader reader, std::uint64_t size,
                      OperandCursor* cursor) {
  const Reuse reuse = ReuseOf(cursor->position() + cursor->left());
  MemoryRange range;
  for (; size > 0 && cursor->left() > 0; size -= range.size) {
    range = cursor->Next(size);
    const auto piece = memory(range);
    reader.Copy(piece.data(), piece.size(), reuse);
  }
  return range.offset + range.size;
}

// The words that the job was admitted by.
absl::StatusOr<std::shared_ptr<const KernelSpec>> WordsOf(const KernelTable& table,
                                                          const Job& job) {
  if (job.program == nullptr) return table.Find(job.kernel);
  return std::shared_ptr<const KernelSpec>(job.program, &job.program->program.words);
}

}  // namespace

void CopyInline(const Backend& backend, const DecodedRun& run, Slices data, const Job& job) {
  const auto spec = WordsOf(backend.table, job);
  if (!spec.ok()) return;  // Cannot be: the job was admitted by it.
  const auto copy = [&](const JobInput& to, const std::string& name) {
    for (std::size_t i = 0; i < run.request.inputs.size(); ++i) {
      if (run.data[i].size == 0 || run.request.inputs[i].operand.name != name) continue;
      OperandCursor cursor(to.value, to.memory);
      Scatter(backend.memory, WireReader(data, run.data[i]), run.data[i].size, &cursor);
    }
  };
  for (std::size_t i = 0; i < job.inputs.size(); ++i) copy(job.inputs[i], (*spec)->inputs[i].name);
  if (!job.check) return;
  for (std::size_t i = 0; i < job.check->expected.size(); ++i) {
    copy(job.check->expected[i], ExpectedName(job.outputs[i]));
  }
}

Upload::Upload(const KernelTable& table, const ArenaMemory& memory,
               std::shared_ptr<const ActiveJob> active, Arrived arrived)
    : memory_(memory),
      arrived_(std::move(arrived)),
      arrival_bytes_(active->job().program != nullptr ? kGuestArrivalBytes : kArrivalBytes),
      job_(std::move(active)) {
  const Job& job = job_->job();
  const auto spec = WordsOf(table, job);
  if (!spec.ok()) return;  // Cannot be: the job was admitted by it.
  for (std::size_t i = 0; i < job.inputs.size(); ++i) {
    Expect(job.inputs[i], (*spec)->inputs[i].name, i);
  }
  for (std::size_t i = 0; job.check && i < job.check->expected.size(); ++i) {
    Expect(job.check->expected[i], ExpectedName(job.outputs[i]), std::nullopt);
  }
  if (complete()) job_.reset();
}

void Upload::Expect(const JobInput& input, const std::string& name,
                    std::optional<std::size_t> index) {
  if (input.source != SourceKind::kStream) return;
  inputs_.push_back({.name = name,
                     .index = index,
                     .size = WireBytes(input.value),
                     .cursor = OperandCursor(input.value, input.memory),
                     .start = input.memory.offset});
  if (inputs_.back().size > 0) ++missing_;
}

std::string Upload::Missing() const {
  for (const Input& input : inputs_) {
    if (input.cursor.left() == 0) continue;
    return absl::StrCat("input '", input.name, "': ", input.cursor.position(), " of ", input.size,
                        " bytes came");
  }
  return "";
}

Upload::Input* Upload::Find(absl::string_view name) {
  for (Input& input : inputs_) {
    if (input.name == name) return &input;
  }
  return nullptr;
}

absl::Status Upload::Check(const Input* input, const StreamChunk& chunk) const {
  if (input == nullptr) {
    const std::string names = absl::StrJoin(inputs_, ", ", [](std::string* out, const Input& i) {
      absl::StrAppend(out, "'", i.name, "'");
    });
    return Wrong("chunk.name", absl::StrCat("want one of the inputs that are streamed [", names,
                                            "], got ", Quote(chunk.name)));
  }
  const std::uint64_t at = input->cursor.position();
  if (chunk.offset != at) {
    return Wrong("chunk.offset",
                 absl::StrCat("input '", input->name, "': want ", at, ", got ", chunk.offset));
  }
  if (chunk.data.size > input->cursor.left()) {
    return Wrong("chunk.data", absl::StrCat("input '", input->name, "' has ", input->size,
                                            " bytes, got a chunk that ends at ", chunk.offset,
                                            " + ", chunk.data.size));
  }
  // A client may not keep a stream open with chunks that bring nothing.
  if (chunk.data.size == 0) {
    return Wrong("chunk.data",
                 absl::StrCat("input '", input->name, "': want bytes, got an empty chunk"));
  }
  return absl::OkStatus();
}

absl::Status Upload::Take(const StreamChunk& chunk, Slices message) {
  Input* input = Find(chunk.name);
  GC_RETURN_IF_ERROR(Check(input, chunk));
  const std::uint64_t end =
      Scatter(memory_, WireReader(message, chunk.data), chunk.data.size, &input->cursor);
  input->placed = end - input->start;
  if (input->cursor.left() == 0) --missing_;
  if (complete())
    job_.reset();
  else
    Tell(*input);
  return absl::OkStatus();
}

void Upload::Tell(Input& input) const {
  const bool much = input.placed - input.told >= arrival_bytes_;
  const bool end = input.told > 0 && input.cursor.left() == 0;
  if (!input.index || (!much && !end)) return;
  input.told = input.placed;
  arrived_({.input = *input.index, .bytes = input.placed});
}

}  // namespace gridclock
