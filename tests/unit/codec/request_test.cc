#include "proto/codec/request.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/status.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;

// A message in pieces of `size` bytes, as a transport may deliver it.
struct Pieces {
  Pieces(std::string bytes, std::size_t size) : text(std::move(bytes)) {
    const auto all = std::as_bytes(std::span(text));
    for (std::size_t at = 0; at < all.size(); at += size) {
      spans.push_back(all.subspan(at, std::min(size, all.size() - at)));
    }
  }
  std::string text;
  std::vector<std::span<const std::byte>> spans;
};

v1::RunRequest Request() {
  v1::RunRequest request;
  request.set_kernel("matmul");
  request.set_request_id("r1");
  (*request.mutable_attributes())["ta"].set_flag(true);
  (*request.mutable_attributes())["tb"].set_flag(false);
  for (const char* name : {"a", "b"}) {
    v1::Input* input = request.add_inputs();
    input->set_name(name);
    input->mutable_spec()->set_dtype(v1::F32);
    input->mutable_spec()->add_dims(2);
    input->mutable_inline_();
    input->set_data(std::string("bytes of ") + name);
  }
  return request;
}

absl::StatusOr<DecodedRun> Decode(const std::string& bytes, const RequestLimits& limits = {}) {
  const Pieces pieces(bytes, 4096);
  return DecodeRunRequest(pieces.spans, limits);
}

TEST(DecodeRunRequest, FindsTheDataWhateverThePiecesAre) {
  for (const std::size_t size : {1u, 2u, 3u, 7u, 64u, 4096u}) {
    const Pieces pieces(Request().SerializeAsString(), size);
    ASSERT_OK_AND_ASSIGN(const DecodedRun run, DecodeRunRequest(pieces.spans, {}));
    EXPECT_EQ(run.request.kernel, "matmul");
    ASSERT_EQ(run.request.inputs.size(), 2u);
    EXPECT_EQ(run.request.inputs[1].operand.name, "b");
    EXPECT_EQ(run.request.inputs[1].inline_bytes, 10u);
    EXPECT_EQ(ToString(pieces.spans, run.data[0]), "bytes of a");
    EXPECT_EQ(ToString(pieces.spans, run.data[1]), "bytes of b");
  }
}

TEST(DecodeRunRequest, AKernelTimeLimitIsAMillisecondOrMoreOrTheServers) {
  v1::RunRequest request = Request();
  for (const double seconds : {0.0, 0.001, 600.0, 1e9, 1e300, HUGE_VAL}) {
    request.set_kernel_time_limit_seconds(seconds);
    ASSERT_OK_AND_ASSIGN(const DecodedRun run, Decode(request.SerializeAsString()));
    EXPECT_EQ(run.request.kernel_time_limit, absl::Seconds(seconds));
  }
  for (const double seconds : {1e-9, 0.0009, -1.0, std::nan("")}) {
    request.set_kernel_time_limit_seconds(seconds);
    EXPECT_THAT(Decode(request.SerializeAsString()),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat(
                             "want 0.001 or more, or 0 for the server's default, got ", seconds))));
  }
}

TEST(DecodeRunRequest, OfManyBadAttributesTheFirstByNameIsNamed) {
  v1::RunRequest request = Request();
  for (char name = 'z'; name >= 'c'; --name) {
    (*request.mutable_attributes())[std::string(1, name)];  // Without a value.
  }
  EXPECT_THAT(Decode(request.SerializeAsString()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("attributes.c: ")));
}

TEST(DecodeRunRequest, TheOrderOfFieldsIsFree) {
  // data (15) before name (1) in the input, inputs (11) before kernel (1).
  const std::string input = std::string("\x7a\x02xy\x0a\x01q\x12\x04\x08\x02\x10\x02", 13);
  const std::string bytes = "\x5a\x0d" + input + std::string("\x0a\x01k", 3);
  const Pieces pieces(bytes, 5);
  ASSERT_OK_AND_ASSIGN(const DecodedRun run, DecodeRunRequest(pieces.spans, {}));
  EXPECT_EQ(run.request.kernel, "k");
  EXPECT_EQ(run.request.inputs[0].operand.name, "q");
  EXPECT_EQ(ToString(pieces.spans, run.data[0]), "xy");
}

TEST(DecodeRunRequest, OfDataThatComesTwiceTheLastCounts) {
  const std::string input = std::string("\x7a\x02xy\x0a\x01q\x12\x04\x08\x02\x10\x02\x7a\x01z", 16);
  const Pieces pieces("\x0a\x01k\x5a\x10" + input, 4096);
  ASSERT_OK_AND_ASSIGN(const DecodedRun run, DecodeRunRequest(pieces.spans, {}));
  EXPECT_EQ(ToString(pieces.spans, run.data[0]), "z");
}

TEST(DecodeRunRequest, ContentIsTheSameForTheSameRequestAlone) {
  v1::RunRequest other = Request();
  other.mutable_inputs(1)->set_data("bytes of c");
  ASSERT_OK_AND_ASSIGN(const DecodedRun a, Decode(Request().SerializeAsString()));
  ASSERT_OK_AND_ASSIGN(const DecodedRun b, Decode(Request().SerializeAsString()));
  ASSERT_OK_AND_ASSIGN(const DecodedRun c, Decode(other.SerializeAsString()));
  EXPECT_EQ(a.content, b.content);
  EXPECT_NE(a.content, c.content);
}

TEST(DecodeRunRequest, BytesThatAreNoMessageAreSaidToBe) {
  const std::pair<std::string, std::string> cases[] = {
      {"\xff", "ends inside a number"},
      {std::string(1, '\x48') + std::string(10, '\xff') + '\x01', "more than 10 bytes"},
      {std::string("\x0a\x80\x80\x80\x80\x08", 6), "beyond the end"},
      {std::string("\x5a\x80\x80\x80\x80\x08", 6), "beyond the end"},
      {std::string("\x00\x00", 2), "number that cannot be"},
      {std::string("\x0f\x00", 2), "type that does not exist"},
      {std::string("\x0c", 1), "did not begin"},
      {std::string("\x0a\x02\xc3\x28", 4), "UTF-8"},
  };
  for (const auto& [bytes, why] : cases) {
    EXPECT_THAT(Decode(bytes),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("cannot parse gridclock.v1.RunRequest"), HasSubstr(why))));
  }
}

TEST(DecodeRunRequest, TheFieldThatMakesItUnparsableIsNamed) {
  const std::string bad = "a\xc3(";
  v1::RunRequest request = Request();
  const auto refused = [](const std::string& bytes) {
    const absl::Status status = Decode(bytes).status();
    EXPECT_EQ(DetailsOf(status).reason, "UNPARSABLE") << status;
    return std::pair(DetailsOf(status).field, std::string(status.message()));
  };
  request.mutable_inputs(1)->set_name(bad);
  EXPECT_EQ(refused(request.SerializePartialAsString()),
            std::pair(std::string("inputs[1].name"),
                      std::string("cannot parse gridclock.v1.RunRequest: inputs[1].name: want "
                                  "UTF-8, got 'a\\303('")));
  request = Request();
  request.mutable_program()->add_launches();
  request.mutable_program()->add_launches()->set_entry(bad);
  EXPECT_EQ(refused(request.SerializePartialAsString()).first, "program.launches[1].entry");
  const std::string cut("\x5a\x03\x0a\x05q", 5);  // A name of 5 bytes in an input of 3.
  EXPECT_EQ(refused(cut).first, "inputs[0].name");
  std::string groups;
  for (int i = 0; i < 101; ++i) groups += "\xe3\x07";
  EXPECT_THAT(refused(groups).second, HasSubstr("field 124: it nests deeper than 100 levels"));
}

TEST(DecodeRunRequest, ControlPartIsBoundedAndDataIsNotCounted) {
  v1::RunRequest request = Request();
  request.mutable_inputs(0)->set_data(std::string(500'000, 'x'));
  EXPECT_THAT(Decode(request.SerializeAsString()), IsOk());
  request.set_variant(std::string(300'000, 'v'));
  const auto refused = Decode(request.SerializeAsString());
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("StreamRun")));
  EXPECT_THAT(refused, ReasonIs("TOO_LARGE"));
}

TEST(DecodeRunRequest, AnInputHasOneSource) {
  v1::RunRequest request = Request();
  request.mutable_inputs(1)->mutable_generate()->set_kind(v1::Generator::ONES);
  EXPECT_THAT(Decode(request.SerializeAsString()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("inputs[1].data")));
  request.mutable_inputs(1)->clear_data();
  EXPECT_THAT(Decode(request.SerializeAsString()), IsOk());
  request.mutable_inputs(1)->mutable_stream();
  EXPECT_THAT(Decode(request.SerializeAsString()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("StreamRun")));
  request.mutable_inputs(1)->clear_source();
  EXPECT_THAT(Decode(request.SerializeAsString()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("inputs[1].source")));
}

// The walker drops what it does not know: a field that is added to the contract must be added
// there.
TEST(DecodeRunRequest, KnowsEveryFieldOfTheContract) {
  EXPECT_EQ(v1::RunRequest::descriptor()->field_count(), 13);
  EXPECT_EQ(v1::RunRequest::kReferenceFieldNumber, 13);
  EXPECT_EQ(v1::Input::descriptor()->field_count(), 6);
}

TEST(StreamRunDecoder, AHeaderInPartsAppendsItsInputs) {
  v1::StreamRunRequest first, second;
  *first.mutable_header() = Request();
  second.mutable_header()->add_inputs()->set_name("c");
  second.mutable_header()->mutable_inputs(0)->mutable_spec()->set_dtype(v1::I8);
  second.mutable_header()->mutable_inputs(0)->mutable_stream();
  StreamRunDecoder decoder({});
  for (const auto& message : {first, second}) {
    EXPECT_THAT(decoder.Decode(Pieces(message.SerializeAsString(), 9).spans), IsOk());
  }
  ASSERT_OK_AND_ASSIGN(const DecodedRun run, decoder.header().Finish());
  ASSERT_EQ(run.request.inputs.size(), 3u);
  EXPECT_EQ(run.request.inputs[2].source, SourceKind::kStream);
  EXPECT_EQ(ToString(decoder.header().data(), run.data[1]), "bytes of b");
}

TEST(StreamRunDecoder, AHeaderIsBoundedOverItsParts) {
  v1::StreamRunRequest part;
  part.mutable_header()->add_in_place(std::string(600, 'x'));
  StreamRunDecoder decoder({.header_bytes = 1000});
  EXPECT_THAT(decoder.Decode(Pieces(part.SerializeAsString(), 4096).spans), IsOk());
  EXPECT_THAT(decoder.Decode(Pieces(part.SerializeAsString(), 4096).spans), ReasonIs("TOO_LARGE"));
}

TEST(StreamRunDecoder, AChunkFromFrameAndBytesIsOne) {
  const std::string bytes = EncodeUploadChunkFrame("x", 4096, 3) + "abc";
  const Pieces pieces(bytes, 4);
  StreamRunDecoder decoder({});
  ASSERT_OK_AND_ASSIGN(const auto part, decoder.Decode(pieces.spans));
  const auto& chunk = std::get<StreamChunk>(part);
  EXPECT_EQ(chunk.name, "x");
  EXPECT_EQ(chunk.offset, 4096u);
  EXPECT_EQ(ToString(pieces.spans, chunk.data), "abc");
  v1::StreamRunRequest parsed;
  ASSERT_TRUE(parsed.ParseFromString(bytes));
  EXPECT_EQ(parsed.chunk().data(), "abc");
}

TEST(StreamRunDecoder, AChunkOverItsLimitIsRefused) {
  StreamRunDecoder decoder({.chunk_bytes = 2});
  const std::string bytes = EncodeUploadChunkFrame("x", 0, 3) + "abc";
  EXPECT_THAT(decoder.Decode(Pieces(bytes, 4).spans), ReasonIs("TOO_LARGE"));
}

TEST(Frames, GeneratedCodeReadsThem) {
  JobOutput output;
  output.name = "y";
  output.value.tensors = {{DType::kU8, {5}}};
  v1::RunSummary summary;
  summary.set_kernel("square");
  v1::RunResponse response;
  ASSERT_TRUE(response.ParseFromString(EncodeSummaryField(summary) +
                                       EncodeOutputFrame({&output, 7, 5}) + "hello" +
                                       EncodeOutputFrame({&output, std::nullopt, 0})));
  EXPECT_EQ(response.summary().kernel(), "square");
  ASSERT_EQ(response.outputs_size(), 2);
  EXPECT_EQ(response.outputs(0).data(), "hello");
  EXPECT_EQ(response.outputs(0).checksum(), 7u);
  EXPECT_EQ(response.outputs(1).spec().dims(0), 5);
  v1::StreamRunResponse chunk;
  ASSERT_TRUE(chunk.ParseFromString(EncodeStreamChunkFrame("y", 2, 3) + "llo"));
  EXPECT_EQ(chunk.chunk().offset(), 2u);
  EXPECT_EQ(chunk.chunk().data(), "llo");
}

}  // namespace
}  // namespace gridclock
