// The devices of a server: as text for people, and what they mean for the variants of a kernel.
#ifndef GRIDCLOCK_CLIENT_CLI_DEVICES_H_
#define GRIDCLOCK_CLIENT_CLI_DEVICES_H_

#include <span>
#include <string>
#include <vector>

#include "gridclock/v1/system.pb.h"
#include "proto/types/kernel_spec.h"

namespace gridclock::cli {

// A line for each, and below them what only a GPU has.
std::string DevicesText(std::span<const v1::Device> devices);

// The kind of the device that the server would take for a call of `spec`: of those that `wanted`
// may mean ("", "cuda:0", "cuda", a UUID) one with a variant, a GPU first. "" if there is none.
std::string KindFor(const KernelSpec& spec, std::span<const v1::Device> devices,
                    const std::string& wanted);

// The kinds of the devices, in order, each once.
std::vector<std::string> KindsOf(std::span<const v1::Device> devices);

// "cpu: naive simd  cuda: naive vec4", of these kinds; "-" if there is none.
std::string VariantsText(const KernelSpec& spec, std::span<const std::string> kinds);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_DEVICES_H_
