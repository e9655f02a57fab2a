// What submitted code costs. Prints JSON.
// usage: bench-modules direct ARCH COMPILES | compile ADDRESS ARCH COMPILES |
//        cached ADDRESS ARCH CALLS | square ADDRESS DEVICE CALLS
//   direct   a small kernel to a cubin by NVRTC in this process
//   compile  the same kernel by a server, which has none of these sources
//   cached   the same source again and again, with calls of `empty` between
//   square   x^2 of 1,000,000 floats by a module and by the catalogue, there and back by StreamRun,
//            then made by the server and left there
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/client.h"
#include "kernels/compiler/nvrtc.h"
#include "kernels/compiler/toolkit.h"
#include "tests/bench/rpc/measure.h"

namespace {

using namespace gridclock;  // NOLINT(google-build-using-namespace): a program's own namespace.
using namespace gridclock::bench;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kElements = 1'000'000;
constexpr char kOfTheServer[] = "";  // The architecture of its first GPU.
constexpr char kWords[] =
    "mine x: f32[N] -> y: f32[N] grid (ceil_div(N, 256)) block (256) params x, y, n: int = N";
constexpr char kKernel[] =
    "extern \"C\" __global__ void mine(const float* x, float* y, int n) {\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) y[i] = x[i] * x[i];\n"
    "}\n";

[[noreturn]] void Quit(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

// Each is a source that nobody has compiled before.
std::string NewSource() {
  static const std::int64_t first = NowNs();
  static int count = 0;
  return absl::StrCat("// ", first, " ", ++count, "\n", kKernel);
}

std::int64_t TimeOf(const std::function<void()>& work) {
  const std::int64_t start = NowNs();
  work();
  return NowNs() - start;
}

double P50Ms(const std::vector<std::int64_t>& times) {
  return Quantile(times, 0.5) / 1e6;
}

std::unique_ptr<Client> MustConnect(const std::string& address) {
  ClientOptions options;
  options.server = address;
  auto client = Client::Connect(options);
  if (!client.ok()) Quit(client.status().ToString());
  return *std::move(client);
}

v1::Module MustCompile(const Client& client, const std::string& arch, const std::string& source) {
  v1::CompileRequest request;
  request.mutable_source()->set_name("mine.cu");
  request.mutable_source()->set_text(source);
  request.mutable_options()->set_arch(arch);
  const auto module = client.Compile(request);
  if (!module.ok()) Quit(module.status().ToString());
  return *module;
}

RunResult MustRun(const Client& client, const RunCall& call) {
  absl::StatusOr<RunResult> result = client.Run(call);
  if (!result.ok()) Quit(result.status().ToString());
  return *std::move(result);
}

// ---- Compiles. ----

void Direct(const std::string& arch, int compiles) {
  const auto nvrtc = Nvrtc::Open(FindToolkit("").nvrtc);
  if (!nvrtc.ok()) {
    std::printf("{\"missing\": \"NVRTC\"}\n");
    return;
  }
  // Where there is a driver NVRTC finds what it compiled before, of a source that differs in
  // comments too, in that one's cache, and compiles nothing.
  const auto compile = [&] {
    const NvrtcOutput output =
        (*nvrtc)->Compile({.name = "mine.cu",
                           .source = NewSource(),
                           .headers = {},
                           .options = {"--gpu-architecture=" + arch, "--std=c++17", "--no-cache"},
                           .name_expressions = {}});
    if (!output.ok || output.cubin.empty()) Quit("NVRTC: " + output.log + output.fault);
  };
  compile();
  std::vector<std::int64_t> times(static_cast<std::size_t>(compiles));
  for (std::int64_t& time : times) time = TimeOf(compile);
  std::printf("{\"p50_ms\": %.4f}\n", P50Ms(times));
}

void Compile(const Client& client, const std::string& arch, int compiles) {
  MustCompile(client, arch, NewSource());
  std::vector<std::int64_t> times(static_cast<std::size_t>(compiles));
  for (std::int64_t& time : times) {
    const std::string source = NewSource();
    time = TimeOf([&] {
      const v1::Module module = MustCompile(client, arch, source);
      if (module.origin() != v1::Module::COMPILED) Quit("it was not compiled for this call");
    });
  }
  std::printf("{\"p50_ms\": %.4f}\n", P50Ms(times));
}

void Cached(const Client& client, const std::string& arch, int calls) {
  const std::string source = NewSource();
  MustCompile(client, arch, source);
  RunCall empty;
  empty.kernel = "empty";
  std::vector<std::int64_t> cached, plain;
  for (int i = 0; i < calls + calls / 10; ++i) {
    const std::int64_t took = TimeOf([&] {
      const v1::Module module = MustCompile(client, arch, source);
      if (module.origin() != v1::Module::MEMORY) Quit("it was compiled again");
    });
    const std::int64_t base = TimeOf([&] { MustRun(client, empty); });
    if (i < calls / 10) continue;  // Warms up.
    cached.push_back(took);
    plain.push_back(base);
  }
  std::printf("{\"cached_p50_ms\": %.5f, \"empty_p50_ms\": %.5f}\n", P50Ms(cached), P50Ms(plain));
}

// ---- Runs. ----

class Squares {
 public:
  Squares(const Client& client, std::string device)
      : client_(client), device_(std::move(device)), x_(kElements), want_(kElements) {
    for (std::size_t i = 0; i < kElements; ++i) {
      x_[i] = static_cast<float>(i % 2048) - 1024;
      want_[i] = x_[i] * x_[i];
    }
    program_.set_words(kWords);
    v1::Program::Launch* launch = program_.add_launches();
    launch->set_module(MustCompile(client, kOfTheServer, NewSource()).id());
    launch->set_entry("mine");
  }

  std::int64_t ThereAndBack(bool module) const {
    RunCall call = CallOf(module);
    call.way = Way::kStream;
    call.inputs[0].bytes = {std::as_bytes(std::span(x_))};
    RunResult result;
    const std::int64_t took = TimeOf([&] { result = MustRun(client_, call); });
    const std::span<const std::byte> got = result.outputs.at(0).bytes;
    if (got.size() != kElements * sizeof(float) ||
        std::memcmp(got.data(), want_.data(), got.size()) != 0) {
      Quit("other values came back");
    }
    return took;
  }

  std::int64_t LeftThere(bool module) const {
    RunCall call = CallOf(module);
    call.inputs[0].generator = Generator{.kind = GeneratorKind::kRandn, .seed = 7};
    call.outputs.push_back({.name = "y", .sink = Sink::kDiscard});
    return TimeOf([&] { MustRun(client_, call); });
  }

 private:
  RunCall CallOf(bool module) const {
    RunCall call;
    call.device = device_;
    if (module) call.program = program_;
    if (!module) call.kernel = "square";
    OperandValue value;
    value.tensors.push_back({.dtype = DType::kF32, .shape = {kElements}});
    call.inputs.push_back({.name = "x", .value = value, .bytes = {}, .generator = {}});
    return call;
  }

  const Client& client_;
  const std::string device_;
  std::vector<float> x_, want_;
  v1::Program program_;
};

// By turns of a few calls each: a device's two lanes take turns too.
std::pair<double, double> Beside(const std::function<std::int64_t(bool module)>& call, int calls) {
  constexpr int kTurn = 10;
  std::vector<std::int64_t> times[2];
  for (int done = -kTurn; done < calls; done += kTurn) {  // The first turns warm up.
    for (const bool module : {false, true}) {
      for (int i = 0; i < kTurn; ++i) {
        const std::int64_t took = call(module);
        if (done >= 0) times[module ? 1 : 0].push_back(took);
      }
    }
  }
  return {P50Ms(times[0]), P50Ms(times[1])};
}

void Square(const Squares& squares, int calls) {
  const auto [catalog, module] =
      Beside([&](bool mine) { return squares.ThereAndBack(mine); }, calls);
  const auto [catalog_left, module_left] =
      Beside([&](bool mine) { return squares.LeftThere(mine); }, calls);
  std::printf(
      "{\"catalog_p50_ms\": %.5f, \"module_p50_ms\": %.5f, \"catalog_left_p50_ms\": %.5f, "
      "\"module_left_p50_ms\": %.5f}\n",
      catalog, module, catalog_left, module_left);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  const std::string what = args.empty() ? "" : args[0];
  const int calls = args.empty() ? 0 : std::atoi(args.back().c_str());
  if (what == "direct" && args.size() == 3) {
    Direct(args[1], calls);
  } else if (what == "compile" && args.size() == 4) {
    Compile(*MustConnect(args[1]), args[2], calls);
  } else if (what == "cached" && args.size() == 4) {
    Cached(*MustConnect(args[1]), args[2], calls);
  } else if (what == "square" && args.size() == 4) {
    const auto client = MustConnect(args[1]);
    Square(Squares(*client, args[2]), calls);
  } else {
    Quit(
        "usage: bench-modules direct ARCH N | compile ADDRESS ARCH N | cached ADDRESS ARCH N | "
        "square ADDRESS DEVICE N");
  }
  return 0;
}
