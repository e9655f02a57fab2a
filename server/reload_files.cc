#include "server/reload_files.h"

#ifdef GRIDCLOCK_TEST_BUILD
#include <fstream>
#include <limits>
#endif
#include <string>
#include <utility>

#include "base/log.h"
#include "base/status.h"

namespace gridclock {

void AddFiles(const ServerOptions& options, Security& security, Reloader& reloader) {
#ifdef GRIDCLOCK_TEST_BUILD
  if (!options.reload_pipe.empty()) {
    reloader.Add("pipe", [&options]() -> absl::Status {
      std::ifstream pipe(options.reload_pipe);
      pipe.ignore(std::numeric_limits<std::streamsize>::max());
      return absl::OkStatus();
    });
  }
#endif
  if (!options.token_file.empty()) {
    reloader.Add("tokens", [&]() -> absl::Status {
      GC_ASSIGN_OR_RETURN(TokenFile tokens, ReadTokens(options));
      security.authenticator.Replace(std::move(tokens));
      return absl::OkStatus();
    });
  }
  if (security.tls == nullptr) return;
  reloader.Add("certificates", [&]() -> absl::Status {
    GC_ASSIGN_OR_RETURN(Tls tls, ReadTls(options));
    security.tls->Replace(std::move(tls));
    return absl::OkStatus();
  });
}

void LogReload(const absl::StatusOr<std::vector<Reloader::Part>>& parts) {
  if (!parts.ok()) return;
  if (parts->empty()) Log(LogLevel::kInfo, "reload", {{"part", "none"}});
  for (const Reloader::Part& part : *parts) {
    if (part.last.ok())
      Log(LogLevel::kInfo, "reload", {{"part", part.name}});
    else
      Log(LogLevel::kError, "reload_failed",
          {{"part", part.name}, {"error", std::string(part.last.message())}});
  }
}

}  // namespace gridclock
