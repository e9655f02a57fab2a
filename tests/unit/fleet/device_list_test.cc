// The devices of a machine as its worker program lists them, and which of them are served.
#include "server/fleet/device_list.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

const ListedDevice kCpu = {"cpu", "cpu", "", ""};
const ListedDevice kFirst = {"cuda:0", "cuda", "GPU-aa", "NVIDIA H200"};
const ListedDevice kSecond = {"cuda:1", "cuda", "GPU-bb", "NVIDIA H200"};
const DeviceList kTwoGpus = {.devices = {kFirst, kSecond, kCpu}, .remarks = ""};
const DeviceList kNoGpu = {.devices = {kCpu}, .remarks = "no GPU: no driver"};

TEST(ParseDeviceList, LinesOfJsonAreDevicesAndOthersRemarks) {
  ASSERT_OK_AND_ASSIGN(
      const DeviceList list,
      ParseDeviceList("no GPU: no driver\n"
                      R"({"name":"cuda:0","kind":"cuda","uuid":"GPU-aa","model":"NVIDIA H200"})"
                      "\n"
                      R"({"name":"cpu","kind":"cpu"})"
                      "\n"));
  EXPECT_THAT(list.devices, ElementsAre(kFirst, kCpu));
  EXPECT_EQ(list.remarks, "no GPU: no driver");
}

TEST(ParseDeviceList, FactsOfALaterVersionAreSkipped) {
  ASSERT_OK_AND_ASSIGN(const DeviceList list,
                       ParseDeviceList(R"({"name":"cpu","kind":"cpu","colour":{"red":1}})"));
  EXPECT_THAT(list.devices, ElementsAre(kCpu));
}

TEST(ParseDeviceList, WhatIsNoDeviceIsRefused) {
  for (const char* line : {"{", "{}", R"({"name":"cpu"})", R"({"name":7,"kind":[]})"}) {
    EXPECT_THAT(ParseDeviceList(line),
                StatusIs(Code::kInvalidArgument, HasSubstr("want a device")));
  }
}

TEST(SelectDevices, AutoIsEveryGpuOrTheCpu) {
  EXPECT_THAT(*SelectDevices("auto", kTwoGpus), ElementsAre(kFirst, kSecond));
  EXPECT_THAT(*SelectDevices("auto", kNoGpu), ElementsAre(kCpu));
  EXPECT_THAT(*SelectDevices("auto", {}), ElementsAre(kCpu));
}

TEST(SelectDevices, ByNameByUuidByKindInTheOrderGiven) {
  EXPECT_THAT(*SelectDevices("cpu,cuda:1", kTwoGpus), ElementsAre(kCpu, kSecond));
  EXPECT_THAT(*SelectDevices("GPU-bb", kTwoGpus), ElementsAre(kSecond));
  EXPECT_THAT(*SelectDevices("cuda,cpu", kTwoGpus), ElementsAre(kFirst, kSecond, kCpu));
  EXPECT_THAT(*SelectDevices("cpu", {}), ElementsAre(kCpu));
}

TEST(SelectDevices, AMigInstanceNeedNotBeListed) {
  EXPECT_THAT(*SelectDevices("MIG-1,MIG-2", kTwoGpus),
              ElementsAre(ListedDevice{"cuda:2", "cuda", "MIG-1", ""},
                          ListedDevice{"cuda:3", "cuda", "MIG-2", ""}));
}

TEST(SelectDevices, WhatIsNotHereIsRefusedWithWhatThereIs) {
  EXPECT_THAT(SelectDevices("cuda:7", kTwoGpus),
              StatusIs(Code::kFailedPrecondition,
                       AllOf(HasSubstr("'cuda:7'"), HasSubstr("cuda:1 (GPU-bb), cpu"))));
  EXPECT_THAT(SelectDevices("cuda", kNoGpu),
              StatusIs(Code::kFailedPrecondition, HasSubstr("no driver")));
  EXPECT_THAT(SelectDevices("MIG-1", kNoGpu), StatusIs(Code::kFailedPrecondition, _));
  EXPECT_THAT(SelectDevices("cuda:0,GPU-aa", kTwoGpus),
              StatusIs(Code::kInvalidArgument, HasSubstr("once")));
  EXPECT_THAT(SelectDevices(",", kTwoGpus), StatusIs(Code::kInvalidArgument, _));
}

class ListDevicesTest : public ::testing::Test {
 protected:
  absl::StatusOr<DeviceList> Run(const std::string& script, absl::Duration limit) {
    const auto path =
        std::filesystem::path(testing::TempDir()) / absl::StrCat("list_devices_", getpid());
    std::ofstream(path) << "#!/bin/sh\n" << script;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    auto list = ListDevices(path, {}, limit);
    std::filesystem::remove(path);
    return list;
  }
};

TEST_F(ListDevicesTest, RunsTheProgram) {
  ASSERT_OK_AND_ASSIGN(const DeviceList list, Run("test \"$1\" = --list-devices && echo why >&2\n"
                                                  "echo '{\"name\":\"cpu\",\"kind\":\"cpu\"}'\n",
                                                  absl::Seconds(30)));
  EXPECT_THAT(list.devices, ElementsAre(kCpu));
  EXPECT_EQ(list.remarks, "why");
}

TEST_F(ListDevicesTest, OneThatHangsFailsOrTalksWithoutEndIsAnError) {
  EXPECT_THAT(Run("exec sleep 100\n", absl::Milliseconds(200)),
              StatusIs(Code::kDeadlineExceeded, _));
  EXPECT_THAT(Run("exec sleep 100 >&- 2>&-\n", absl::Milliseconds(200)),
              StatusIs(Code::kDeadlineExceeded, _));
  EXPECT_THAT(Run("echo broken; exit 3\n", absl::Seconds(30)),
              StatusIs(Code::kInternal, AllOf(HasSubstr("exit code 3"), HasSubstr("broken"))));
  EXPECT_THAT(Run("while :; do echo more and more and more; done\n", absl::Seconds(30)),
              StatusIs(Code::kResourceExhausted, _));
}

}  // namespace
}  // namespace gridclock
