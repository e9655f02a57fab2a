// Modules for people and programs, and the files that one is made of.
#ifndef GRIDCLOCK_CLIENT_CLI_MODULES_H_
#define GRIDCLOCK_CLIENT_CLI_MODULES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/json.h"
#include "client/cli/terminal.h"
#include "gridclock/v1/modules.pb.h"

namespace gridclock::cli {

// Every field but PTX, SASS and cubin.
Json ToJson(const v1::Module& module);

// What each entry needs, and how many of its blocks fit a multiprocessor.
std::string ResourcesText(const v1::Module& module);
// A line for each: its id, what it was made of, its entries and its bytes.
std::string ModulesText(const std::vector<v1::Module>& modules);
// Of these the one whose id begins so. A whole id is taken as it is.
absl::StatusOr<std::string> IdThatBegins(const std::string& beginning,
                                         const std::vector<v1::Module>& modules);
// What was set aside and what the compiler said, with `path` in place of the module's name.
std::string LogText(const v1::Module& module, const std::string& path, const Terminal& terminal);

// PTX or SASS as a terminal shows it: tabs are blanks, and nothing of it is a control character.
std::string CodeText(absl::string_view code);

// A file of device code ends in .cu, .ptx or .cubin.
absl::Status CheckIsCode(const std::string& path);

// The source at `path`, and the files that it and they include by #include "NAME": from the folder
// of the file that includes them, else from the source's. Names are as the sources say them; in
// that of the source itself what the server takes in no name is a "_". `files` are told those that
// were read, up to one that cannot be.
absl::Status ReadSource(const std::string& path, v1::CompileRequest* out,
                        std::vector<std::string>* files = nullptr);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_MODULES_H_
