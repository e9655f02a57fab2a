// An NVML as its manual gives the interface, with one device, "GPU-1". It is a library of its own,
// as the real one is; what a test does not set is not supported.
#include "tests/unit/device/fake_nvml.h"

#include <cstring>
#include <vector>

using gridclock::FakeNvml;

namespace {

constexpr int kSuccess = 0, kNotSupported = 3, kNotFound = 6, kInsufficientSize = 7;

// As the manual has it, not as the code under test has.
struct ProcessInfo {
  unsigned int pid;
  unsigned long long used_gpu_memory;
  unsigned int gpu_instance_id;
  unsigned int compute_instance_id;
};

int List(const std::vector<unsigned>& pids, unsigned* count, ProcessInfo* infos) {
  const unsigned room = *count;
  *count = static_cast<unsigned>(pids.size());
  for (unsigned i = 0; i < room && i < pids.size(); ++i) infos[i] = {pids[i], 1 << 20, ~0U, ~0U};
  return room < pids.size() ? kInsufficientSize : kSuccess;
}

}  // namespace

extern "C" {

FakeNvml* TheFakeNvml() {
  static FakeNvml fake;
  return &fake;
}

int nvmlInit_v2() {
  return TheFakeNvml()->init_error;
}
const char* nvmlErrorString(int) {
  return "said by the fake";
}
int nvmlSystemGetDriverVersion(char* version, unsigned) {
  std::strcpy(version, "580.65.06");
  return kSuccess;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  *device = TheFakeNvml();
  return std::strcmp(uuid, "GPU-1") == 0 ? kSuccess : kNotFound;
}
int nvmlDeviceGetClockInfo(void*, int type, unsigned* megahertz) {
  if (TheFakeNvml()->clocks[type] == 0) return kNotSupported;
  *megahertz = TheFakeNvml()->clocks[type];
  return kSuccess;
}
int nvmlDeviceGetMaxClockInfo(void*, int type, unsigned* megahertz) {
  *megahertz = type == 1 ? 1980 : 3201;
  return kSuccess;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  if (TheFakeNvml()->milliwatts == 0) return kNotSupported;
  *milliwatts = TheFakeNvml()->milliwatts;
  return kSuccess;
}
int nvmlDeviceGetTemperature(void*, int sensor, unsigned* celsius) {
  *celsius = 41;
  return sensor == 0 ? kSuccess : kNotSupported;
}
int nvmlDeviceGetMemoryInfo(void*, unsigned long long* memory) {
  memory[0] = 1000;  // In all, free, used.
  memory[1] = 1000 - TheFakeNvml()->memory_used;
  memory[2] = TheFakeNvml()->memory_used;
  return TheFakeNvml()->memory_used == 0 ? kNotSupported : kSuccess;
}
// Of an older driver: the newer name is missing.
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = TheFakeNvml()->clock_reasons;
  return kSuccess;
}
int nvmlDeviceGetViolationStatus(void*, int policy, unsigned long long* times) {
  times[0] = 1;
  times[1] = policy == 0 ? 700 : 900;
  return kSuccess;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, ProcessInfo* infos) {
  return List(TheFakeNvml()->processes, count, infos);
}
int nvmlDeviceGetMPSComputeRunningProcesses_v3(void*, unsigned* count, ProcessInfo* infos) {
  return List(TheFakeNvml()->mps_processes, count, infos);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void*, unsigned* count, ProcessInfo* infos) {
  return List(TheFakeNvml()->graphics_processes, count, infos);
}
int nvmlDeviceGetMigMode(void*, unsigned* current, unsigned* pending) {
  *current = *pending = TheFakeNvml()->mig_mode;
  return kSuccess;
}

}  // extern "C"
