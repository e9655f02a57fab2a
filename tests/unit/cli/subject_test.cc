// run and bench of a file: what is sent, against a server that the test plays.
#include "client/cli/subject.h"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "client/cli/app.h"
#include "gridclock/v1/kernels.grpc.pb.h"
#include "gridclock/v1/modules.grpc.pb.h"

namespace gridclock::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Answers every compile with a module of `square(const float* in, float* out, int n)` and
// `fill<float>`, and every run with an empty result.
class Submitted final : public v1::ModuleService::Service, public v1::KernelService::Service {
 public:
  Submitted() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(static_cast<v1::ModuleService::Service*>(this));
    builder.RegisterService(static_cast<v1::KernelService::Service*>(this));
    server_ = builder.BuildAndStart();
  }
  ~Submitted() override { server_->Shutdown(); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  v1::CompileRequest compiled;
  v1::RunRequest run;

 private:
  grpc::Status Compile(grpc::ServerContext*, const v1::CompileRequest* request,
                       v1::Module* response) override {
    compiled = *request;
    response->set_id("00112233445566778899aabbccddeeff");
    response->set_kind(v1::Module::CUDA);
    v1::Entry* entry = response->add_entries();
    entry->set_name("_Z6squarePKfPfi");
    entry->set_display("square");
    for (const auto& [type, name] :
         {std::pair("float const*", "in"), std::pair("float*", "out"), std::pair("int", "n")}) {
      v1::Parameter* parameter = entry->add_parameters();
      parameter->set_type(type);
      parameter->set_name(name);
    }
    entry = response->add_entries();
    entry->set_name("_Z4fillIfEvPT_");
    entry->set_display("fill<float>");
    for (const char* name : {"_Z4twicPf", "_Z4twicPi"}) {
      entry = response->add_entries();
      entry->set_name(name);
      entry->set_display("twic");
    }
    return grpc::Status::OK;
  }
  grpc::Status Run(grpc::ServerContext*, const v1::RunRequest* request,
                   v1::RunResponse* response) override {
    run = *request;
    response->mutable_summary()->set_kernel("square");
    response->mutable_summary()->set_device("cuda:0");
    response->mutable_summary()->set_printed("thread 0\n");
    return grpc::Status::OK;
  }
  grpc::Status StreamRun(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::StreamRunResponse, v1::StreamRunRequest>* stream) override {
    v1::StreamRunRequest request;
    stream->Read(&request);
    run = request.header();
    v1::StreamRunResponse response;
    response.mutable_summary()->set_kernel("square");
    stream->Write(response);
    return grpc::Status::OK;
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class SubjectTest : public ::testing::Test {
 protected:
  ~SubjectTest() override {
    for (const std::string& path : files_) unlink(path.c_str());
  }
  std::string File(const std::string& name, const std::string& text) {
    const std::string path = absl::StrCat(::testing::TempDir(), "/", getpid(), "_", name);
    std::ofstream(path) << text;
    files_.push_back(path);
    return path;
  }
  int Call(std::vector<std::string> args) {
    std::ostringstream out, err;
    Console console{out, err, {}};
    args.insert(args.end(), {"--server", server_.address()});
    const int code = Main(args, console);
    out_ = out.str();
    err_ = err.str();
    return code;
  }

  Submitted server_;
  std::string out_, err_;
  std::vector<std::string> files_;  // Removed when the test ends.
};

TEST_F(SubjectTest, AFileIsCompiledAndRunByTheWordsOfItsComments) {
  const std::string file = File("words.cu",
                                "// gridclock: square x: f32[N] -> y: f32[N]\n"
                                "// gridclock:   grid(N) block(1) params x, y, n: int = N\n");
  EXPECT_EQ(Call({"run", file + ":square", "x=arange:f32[3]", "--block", "32, 2", "-D", "A=1",
                  "--shared", "16", "--cooperative"}),
            kOk)
      << err_;
  EXPECT_EQ(server_.compiled.options().defines().at("A"), "1");
  const v1::Program& program = server_.run.program();
  EXPECT_EQ(server_.run.kernel(), "");
  EXPECT_EQ(server_.run.variant(), "");
  EXPECT_EQ(program.words(),
            "square x: f32[N] -> y: f32[N] grid(N) block(1) params x, y, n: int = N");
  ASSERT_EQ(program.launches_size(), 1);
  EXPECT_EQ(program.launches(0).module(), "00112233445566778899aabbccddeeff");
  EXPECT_EQ(program.launches(0).entry(), "_Z6squarePKfPfi");
  EXPECT_EQ(program.launches(0).words(), "block(32, 2) shared 16");
  EXPECT_TRUE(program.launches(0).cooperative());
  EXPECT_THAT(out_, HasSubstr("square on cuda:0"));
  EXPECT_THAT(out_, HasSubstr("printed:\nthread 0\n"));
  EXPECT_EQ(Call({"bench", file, "N=8", "--samples", "3"}), kOk) << err_;
  EXPECT_EQ(server_.run.inputs(0).spec().dims(0), 8);
  EXPECT_EQ(server_.run.program().launches(0).words(), "");
}

TEST_F(SubjectTest, WordsOfTheFlagsGoBeforeThoseOfTheFile) {
  const std::string file =
      File("flags.cu", "// gridclock: square wrong\n\n// gridclock: f x: f32[N]\n");
  const std::vector<std::string> call = {"run",    file + ":square", "x=arange:f32[3]",
                                         "--grid", "(1, 2)",         "--block",
                                         "1",      "--global",       "factor=x"};
  std::vector<std::string> args = call;
  args.insert(args.end(), {"--words", "x: f32[N] -> y: f32[N] params x, y, n: int = N"});
  EXPECT_EQ(Call(args), kOk) << err_;
  EXPECT_EQ(server_.run.program().words(), "square x: f32[N] -> y: f32[N] params x, y, n: int = N");
  EXPECT_EQ(server_.run.program().launches(0).words(), "grid (1, 2) block(1)");
  EXPECT_EQ(server_.run.program().globals(0).name(), "factor");
  args.back() = "cooperative square x: f32[N] -> y: f32[N] params x, y, n: int = N";
  EXPECT_EQ(Call(args), kOk) << err_;
  EXPECT_TRUE(server_.run.program().launches(0).cooperative());
  EXPECT_EQ(Call(call), kUsage);
  EXPECT_THAT(err_, HasSubstr("flags.cu:1: at "));
}

TEST_F(SubjectTest, WordsThatNobodySaysAreInferredAndShown) {
  const std::string file = File("plain.cu", "");
  EXPECT_EQ(Call({"run", file + ":square", "in=arange:f32[3]", "--grid", "1", "--block", "32"}),
            kOk)
      << err_;
  EXPECT_EQ(
      err_,
      "words inferred: square in_: f32[*] -> out: f32[*] params in_, out, n: int = numel(in_)\n");
  EXPECT_EQ(server_.run.inputs(0).name(), "in_");
  EXPECT_EQ(Call({"run", file + ":square", "in=arange:f32[3]"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("--grid 'ceil_div(numel(in_), 256)', and --block"));
  EXPECT_EQ(Call({"run", file + ":square", "in=arange:f32[3]", "k=2"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("complete: square in_: f32[?] -> out: f32[?] grid(?) block(?)"));
  EXPECT_EQ(Call({"run", file, "in=arange:f32[3]"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("which kernel? Say FILE:ENTRY with one of square, fill<float>"));
  EXPECT_EQ(Call({"bench", file + ":square", "in=f32[3]", "--variant", "all", "--grid", "1",
                  "--block", "1"}),
            kUsage);
}

TEST_F(SubjectTest, AnAttributeOrAFileThatIsNamedTwiceIsRefused) {
  const std::string file = File("twice.cu",
                                "// gridclock: square x: f32[N] -> y: f32[N]; k: i64 = 1\n"
                                "// gridclock:   grid(N) block(1) params x, y, n: int = N\n");
  EXPECT_EQ(Call({"run", file + ":square", "x=ones:f32[3]", "k=1", "k=2"}), kUsage);
  EXPECT_THAT(err_, HasSubstr("'k' is there twice"));
  EXPECT_EQ(Call({"run", file + ":square", "x=ones:f32[3]", "-o", "y=a.npz", "-o", "a.npz"}),
            kUsage);
  EXPECT_THAT(err_, HasSubstr("-o: 'a.npz' is there twice"));
}

TEST_F(SubjectTest, F18_OverloadsAreToldApartByTheirLinkersNames) {
  const std::string file =
      File("twic.cu", "// gridclock: twic -> y: f32[1] grid(1) block(1) params y\n");
  EXPECT_EQ(Call({"run", file + ":twic"}), kUsage);
  EXPECT_THAT(err_,
              HasSubstr("'twic' is 2 kernels in this file: name one of '_Z4twicPf', '_Z4twicPi'"));
}

TEST_F(SubjectTest, TemplatesAreInstantiatedByName) {
  const std::string file =
      File("fill.cu",
           "// gridclock: all x: f32[N] -> y: f32[N]\n"
           "// gridclock: launch fill<float> grid(N) block(1) params y\n"
           "// gridclock: launch square grid(N) block(1) params x, y, n: int = N\n");
  EXPECT_EQ(Call({"run", file + ":all", "x=arange:f32[3]"}), kOk) << err_;
  EXPECT_THAT(server_.compiled.name_expressions(), ElementsAre("fill<float>"));
  ASSERT_EQ(server_.run.program().launches_size(), 2);
  EXPECT_EQ(server_.run.program().launches(0).entry(), "_Z4fillIfEvPT_");
  EXPECT_EQ(server_.run.program().launches(1).words(), "grid(N) block(1) params x, y, n: int = N");
  EXPECT_EQ(Call({"run", file + ":all", "x=arange:f32[3]", "--grid", "1"}), kUsage);
  EXPECT_EQ(Call({"run", file + ":fill<float>", "x=f32[3]", "--grid", "1", "--block", "1"}),
            kUsage);
  EXPECT_THAT(server_.compiled.name_expressions(), ElementsAre("fill<float>"));
}

TEST(CodeTarget, AFileAndItsEntry) {
  const auto read = [](absl::string_view text) {
    const auto target = ParseCodeTarget(text);
    return target ? absl::StrCat(target->file, "|", target->entry) : "";
  };
  EXPECT_EQ(read("k.cu"), "k.cu|");
  EXPECT_EQ(read("a.cu/k.cu:ns::f<a, b>"), "a.cu/k.cu|ns::f<a, b>");
  EXPECT_EQ(read("k.ptx:f"), "k.ptx|f");
  EXPECT_EQ(read("k.cubin:f"), "k.cubin|f");
  EXPECT_EQ(read("gelu.cuda"), "");
  EXPECT_EQ(read("softmax"), "");
}

}  // namespace
}  // namespace gridclock::cli
