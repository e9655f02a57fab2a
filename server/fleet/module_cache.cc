#include "server/fleet/module_cache.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/log.h"
#include "base/status.h"
#include "gridclock/worker/v1/compiler.pb.h"
#include "proto/codec/module.h"

namespace gridclock {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kFormat = 1;
constexpr absl::string_view kEnding = ".module";
constexpr absl::string_view kUnfinished = ".part";
constexpr std::size_t kChecksum = sizeof(std::uint64_t);

bool IsId(absl::string_view id) {
  return !id.empty() && std::all_of(id.begin(), id.end(), [](char c) {
    return absl::ascii_isxdigit(static_cast<unsigned char>(c));
  });
}

std::string Packed(absl::string_view principal, const std::string& id, const ModuleCode& module) {
  worker::v1::StoredModule stored;
  stored.set_format(kFormat);
  stored.set_id(id);
  stored.set_principal(std::string(principal));
  Encode(module.facts, stored.mutable_module());
  stored.set_ptx(module.ptx);
  stored.set_cubin(module.cubin);
  const std::string bytes = stored.SerializeAsString();
  const std::uint64_t checksum = XXH3_64bits(bytes.data(), bytes.size());
  std::string out(kChecksum, '\0');
  std::memcpy(out.data(), &checksum, kChecksum);
  return out + bytes;
}

absl::StatusOr<worker::v1::StoredModule> Unpacked(absl::string_view file, const std::string& id) {
  const absl::Status corrupt = absl::DataLossError("it is not what was written");
  if (file.size() < kChecksum) return corrupt;
  std::uint64_t checksum = 0;
  std::memcpy(&checksum, file.data(), kChecksum);
  const absl::string_view bytes = file.substr(kChecksum);
  worker::v1::StoredModule stored;
  if (XXH3_64bits(bytes.data(), bytes.size()) != checksum) return corrupt;
  if (!stored.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return corrupt;
  if (stored.format() != kFormat || stored.id() != id) return corrupt;
  return stored;
}

absl::StatusOr<std::string> Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Who wrote a file, by its beginning: a claim, as its checksum is not compared.
std::string PrincipalOf(const std::string& path) {
  constexpr std::size_t kBeginning = 4096;  // Format, id and principal stand first.
  std::string beginning(kBeginning, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(beginning.data(), kBeginning);
  beginning.resize(static_cast<std::size_t>(file.gcount()));
  if (beginning.size() < kChecksum) return "";
  // What was read before the end is there, though the message is not whole.
  worker::v1::StoredModule stored;
  google::protobuf::io::ArrayInputStream bytes(beginning.data() + kChecksum,
                                               static_cast<int>(beginning.size() - kChecksum));
  static_cast<void>(stored.ParsePartialFromZeroCopyStream(&bytes));
  return stored.principal();
}

// Whole before it has its name. What a machine that lost power left of it has another checksum: it
// is compiled again, so nothing waits for the disk.
bool WriteFile(const std::string& path, const std::string& bytes) {
  const std::string unfinished = absl::StrCat(path, kUnfinished);
  {
    std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) return false;
  }
  return std::rename(unfinished.c_str(), path.c_str()) == 0;
}

void RemoveFile(const std::string& path) {
  std::error_code gone;
  fs::remove(path, gone);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModuleCache>> ModuleCache::Open(const std::string& folder,
                                                               std::uint64_t most_bytes) {
  std::error_code error;
  fs::create_directories(folder, error);
  chmod(folder.c_str(), S_IRWXU);  // It holds code of clients.
  if (!fs::is_directory(folder, error) || access(folder.c_str(), R_OK | W_OK | X_OK) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("want a folder that can be read and written, got '", folder, "'"));
  }
  std::unique_ptr<ModuleCache> cache(new ModuleCache(folder, most_bytes));
  GC_RETURN_IF_ERROR(cache->FindFiles());
  return cache;
}

absl::Status ModuleCache::FindFiles() {
  struct Found {
    fs::file_time_type used;
    std::string id, principal;
    std::uint64_t size;
  };
  std::vector<Found> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    absl::string_view id = name;
    if (absl::EndsWith(name, kUnfinished)) RemoveFile(entry.path().string());
    if (!absl::ConsumeSuffix(&id, kEnding) || !IsId(id)) continue;
    found.push_back({entry.last_write_time(error), std::string(id),
                     PrincipalOf(entry.path().string()), entry.file_size(error)});
  }
  if (error) return absl::FailedPreconditionError(absl::StrCat(folder_, ": ", error.message()));
  std::sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.used < b.used; });
  const MutexLock lock(mutex_);
  for (const Found& file : found) Note(file.id, file.principal, file.size);
  return absl::OkStatus();
}

std::string ModuleCache::PathOf(absl::string_view id) const {
  return absl::StrCat(folder_, "/", id, kEnding);
}

void ModuleCache::Unlist(Files::iterator file) {
  bytes_ -= file->second.size;
  const auto holder = held_.find(file->second.principal);
  holder->second -= file->second.size;
  if (holder->second == 0) held_.erase(holder);
  by_use_.erase(file->second.place);
  files_.erase(file);
}

void ModuleCache::Drop(const std::string& id) {
  const auto file = files_.find(id);
  if (file == files_.end()) return;
  Unlist(file);
  RemoveFile(PathOf(id));
}

void ModuleCache::DropOldestOfLargest() {
  const auto largest = std::max_element(held_.begin(), held_.end(),
                                        [](auto& a, auto& b) { return a.second < b.second; });
  const auto oldest = std::find_if(by_use_.begin(), by_use_.end(), [&](const std::string& id) {
    return files_.find(id)->second.principal == largest->first;
  });
  Drop(std::string(*oldest));
}

// The file is there: it is the one that was used last.
void ModuleCache::Note(const std::string& id, const std::string& principal, std::uint64_t size) {
  if (const auto old = files_.find(id); old != files_.end()) Unlist(old);
  by_use_.push_back(id);
  files_[id] = {size, principal, std::prev(by_use_.end())};
  held_[principal] += size;
  bytes_ += size;
  while (bytes_ > most_bytes_) DropOldestOfLargest();
}

absl::StatusOr<ModuleCode> ModuleCache::Read(absl::string_view principal, const std::string& id) {
  const absl::Status missing = absl::NotFoundError(absl::StrCat("no module ", id, " on disk"));
  if (!IsId(id)) return missing;
  {
    const MutexLock lock(mutex_);
    if (!files_.contains(id)) return missing;
  }
  const auto bytes = Contents(PathOf(id));
  auto stored = bytes.ok() ? Unpacked(*bytes, id) : bytes.status();
  auto facts = stored.ok() ? Decode(stored->module()) : stored.status();
  const MutexLock lock(mutex_);
  if (!files_.contains(id)) return missing;  // Removed meanwhile.
  if (!facts.ok()) {
    Log(LogLevel::kWarning, "module_dropped",
        {{"id", id}, {"error", std::string(facts.status().message())}});
    Drop(id);
    return missing;
  }
  if (stored->principal() != principal) return missing;
  utimensat(AT_FDCWD, PathOf(id).c_str(), nullptr, 0);  // The order holds beyond a restart.
  Note(id, stored->principal(), bytes->size());
  return ModuleCode{*std::move(facts), std::move(*stored->mutable_ptx()),
                    std::move(*stored->mutable_cubin())};
}

void ModuleCache::Write(absl::string_view principal, const std::string& id,
                        const ModuleCode& module) {
  const std::string bytes = Packed(principal, id, module);
  if (!IsId(id) || bytes.size() > most_bytes_) return;
  const MutexLock lock(mutex_);
  if (WriteFile(PathOf(id), bytes)) return Note(id, std::string(principal), bytes.size());
  Log(LogLevel::kWarning, "module_not_cached", {{"id", id}, {"folder", folder_}});
  RemoveFile(absl::StrCat(PathOf(id), kUnfinished));
}

bool ModuleCache::Remove(absl::string_view principal, const std::string& id) {
  const MutexLock lock(mutex_);
  const auto file = files_.find(id);
  if (file == files_.end() || file->second.principal != principal) return false;
  Drop(id);
  return true;
}

std::uint64_t ModuleCache::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace gridclock
