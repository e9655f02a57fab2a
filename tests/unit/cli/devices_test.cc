#include "client/cli/devices.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridclock::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::Device Gpu() {
  v1::Device d;
  d.set_name("cuda:0");
  d.set_state(v1::Device::READY);
  d.set_model("NVIDIA H200");
  d.set_uuid("GPU-1");
  d.set_own_memory(true);
  d.set_compute_capability(90);
  d.set_driver("580.65");
  d.set_cuda("13.0");
  d.set_sm_clock_hz(1.98e9);
  d.set_l2_bytes(50 << 20);
  v1::Device::MethodFacts* has = d.add_methods();
  has->set_method(v1::ISOLATED);
  has->set_floor_ns(2100);
  has->set_note("odd here");
  d.set_launch_offset_ns(2150);
  d.set_kernel_offset_ns(-1400);
  d.set_copy_offset_ns(900);
  d.set_serial_record_offset_ns(1300);
  v1::Device::MethodFacts* lacks = d.add_methods();
  lacks->set_method(v1::DEVICE_TIME);
  lacks->set_missing("no CUPTI");
  v1::Device::FlopRate* rate = d.add_flop_rates();
  rate->set_dtype(v1::F32);
  rate->set_flops_per_second(6.69e13);
  return d;
}

TEST(DevicesText, TellsWhatAGpuIsAndWhatItLacks) {
  const std::string text = DevicesText(std::vector{Gpu()});

  EXPECT_THAT(text, HasSubstr("NVIDIA H200"));
  EXPECT_THAT(text, HasSubstr("cuda:0  GPU-1\n"));
  EXPECT_THAT(text, HasSubstr("compute capability 9.0, driver 580.65, CUDA 13.0\n"));
  EXPECT_THAT(text, HasSubstr("L2 50.0 MiB at -, clocks 1.98 GHz and -"));
  EXPECT_THAT(text, HasSubstr("isolated 2.10 µs; isolated: odd here; no device_time: no CUPTI\n"));
  EXPECT_THAT(text, HasSubstr("launch 2.15 µs, a further kernel -1400 ns, a copy +900 ns, "
                              "a serial record 1.30 µs,"));
  EXPECT_THAT(text, HasSubstr("f32 66.9 TFLOP/s\n"));
  EXPECT_THAT(text, Not(HasSubstr("sandbox")));
}

TEST(DevicesText, TellsWhatHoldsSubmittedCodeOnAGpu) {
  v1::Device gpu = Gpu();
  gpu.set_sandbox("landlock 7, seccomp");
  EXPECT_THAT(DevicesText(std::vector{gpu}), HasSubstr("sandbox landlock 7, seccomp\n"));
  gpu.set_pageable_access(true);
  EXPECT_THAT(DevicesText(std::vector{gpu}),
              HasSubstr("seccomp; kernels reach host memory of their process\n"));
}

TEST(DevicesText, ACpuIsALineAlone) {
  v1::Device cpu;
  cpu.set_name("cpu");
  cpu.set_level("x86-64-v4");

  const std::string text = DevicesText(std::vector{cpu});

  EXPECT_THAT(text, HasSubstr("x86-64-v4"));
  EXPECT_THAT(text, Not(HasSubstr("compute capability")));
}

TEST(DevicesText, WhatAServerSaysCannotSteerTheTerminal) {
  v1::Device gpu = Gpu();
  gpu.set_driver("\x1b[2J");
  EXPECT_THAT(DevicesText(std::vector{gpu}), Not(HasSubstr("\x1b")));
}

v1::Device Named(const std::string& name, const std::string& kind) {
  v1::Device d;
  d.set_name(name);
  d.set_kind(kind);
  return d;
}

KernelSpec WithVariants(const std::vector<VariantSpec>& variants) {
  KernelSpec spec;
  spec.variants = variants;
  return spec;
}

TEST(KindFor, IsTheKindOfADeviceThatTheServerHasAndPrefers) {
  const v1::Device cpu = Named("cpu", "cpu"), gpu = Named("cuda:0", "cuda");
  const KernelSpec both = WithVariants({{"vec4", "cuda", "", {}}, {"simd", "cpu", "", {}}});
  EXPECT_EQ(KindFor(both, std::vector{cpu}, ""), "cpu");
  EXPECT_EQ(KindFor(both, std::vector{gpu}, ""), "cuda");
  EXPECT_EQ(KindFor(both, std::vector{cpu, gpu}, ""), "cuda");
  EXPECT_EQ(KindFor(both, std::vector{cpu, gpu}, "cpu"), "cpu");
  EXPECT_EQ(KindFor(both, std::vector{cpu}, "cuda:0"), "");
  EXPECT_EQ(KindFor(WithVariants({{"simd", "cpu", "", {}}}), std::vector{cpu, gpu}, ""), "cpu");
}

TEST(VariantsText, KeepsTheKindsApartAndLeavesOutThoseWithoutADevice) {
  const KernelSpec spec =
      WithVariants({{"naive", "cuda", "", {}}, {"naive", "cpu", "", {}}, {"vec4", "cuda", "", {}}});
  const auto text = [&](const std::vector<v1::Device>& devices) {
    return VariantsText(spec, KindsOf(devices));
  };
  EXPECT_EQ(text({Named("cpu", "cpu")}), "cpu: naive");
  EXPECT_EQ(text({Named("cpu", "cpu"), Named("cuda:0", "cuda"), Named("cuda:1", "cuda")}),
            "cpu: naive  cuda: naive vec4");
  EXPECT_EQ(text({}), "-");
}

}  // namespace
}  // namespace gridclock::cli
