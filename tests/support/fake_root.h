// A folder with files of /proc and /sys as some machine has them.
#ifndef GRIDCLOCK_TESTS_SUPPORT_FAKE_ROOT_H_
#define GRIDCLOCK_TESTS_SUPPORT_FAKE_ROOT_H_

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace gridclock {

class FakeRoot {
 public:
  explicit FakeRoot(const std::string& name)
      : path_(testing::TempDir() + "/" + name + "_" + std::to_string(getpid())) {}
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  const std::string& path() const { return path_; }
  void Write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path_ + path).parent_path());
    std::ofstream(path_ + path) << text;
  }
  void WriteCache(int cpu, int index, int level, const std::string& type, const std::string& size,
                  const std::string& sharers) const {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                               "/cache/index" + std::to_string(index);
    Write(folder + "/level", std::to_string(level) + "\n");
    Write(folder + "/type", type + "\n");
    Write(folder + "/size", size + "\n");
    if (!sharers.empty()) Write(folder + "/shared_cpu_list", sharers + "\n");
  }

 private:
  const std::string path_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_SUPPORT_FAKE_ROOT_H_
