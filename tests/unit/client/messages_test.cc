#include "client/cpp/messages.h"

#include <cstring>

#include <grpcpp/impl/codegen/proto_utils.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kBig = 100'000;  // Large enough to be lent.

template <typename Message>
Message Parse(grpc::ByteBuffer buffer) {
  Message message;
  EXPECT_TRUE(grpc::SerializationTraits<Message>::Deserialize(&buffer, &message).ok());
  return message;
}

template <typename Message>
grpc::ByteBuffer Serialize(const Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

OperandValue Tensor(DType dtype, Shape shape) {
  return {.is_list = false, .tensors = {{.dtype = dtype, .shape = std::move(shape)}}};
}

TEST(EncodeTest, AUnaryRequestIsOrdinaryProtobuf) {
  const std::string small = "12345678", big(kBig, 'x');
  RunCall call;
  call.kernel = "k";
  call.attributes = {{"axis", std::int64_t{-1}}};
  call.verify = true;
  call.inputs = {{.name = "a",
                  .value = Tensor(DType::kF32, {2}),
                  .bytes = {std::as_bytes(std::span<const char>(small))},
                  .generator = {}},
                 {.name = "b",
                  .value = Tensor(DType::kU8, {static_cast<std::int64_t>(kBig)}),
                  .bytes = {std::as_bytes(std::span<const char>(big))},
                  .generator = {}},
                 {.name = "c",
                  .value = Tensor(DType::kF32, {5}),
                  .bytes = {},
                  .generator = Generator{.kind = GeneratorKind::kOnes}}};
  bool returned = false;
  auto* loan = new Loan([&] { returned = true; });
  const auto request = Parse<v1::RunRequest>(EncodeUnary(call, "id", *loan));
  loan->End();
  EXPECT_EQ(request.kernel(), "k");
  EXPECT_EQ(request.request_id(), "id");
  EXPECT_EQ(request.attributes().at("axis").i64(), -1);
  EXPECT_TRUE(request.verify());
  ASSERT_EQ(request.inputs_size(), 3);
  EXPECT_EQ(request.inputs(0).data(), small);
  EXPECT_EQ(request.inputs(1).data(), big);
  EXPECT_EQ(request.inputs(1).name(), "b");
  EXPECT_EQ(request.inputs(2).generate().kind(), v1::Generator::ONES);
}

TEST(EncodeTest, AChunkIsOrdinaryProtobuf) {
  const std::string data(kBig, 'y');
  auto* loan = new Loan([] {});
  const auto message = Parse<v1::StreamRunRequest>(
      EncodeChunk("x", 1 << 20, std::as_bytes(std::span<const char>(data)), *loan));
  loan->End();
  EXPECT_EQ(message.chunk().name(), "x");
  EXPECT_EQ(message.chunk().offset(), 1U << 20);
  EXPECT_EQ(message.chunk().data(), data);
}

TEST(EncodeTest, ALongHeaderComesInPieces) {
  RunCall call;
  call.kernel = "k";
  for (int i = 0; i < 3; ++i) {
    CallInput input{.name = std::string(1, static_cast<char>('a' + i)),
                    .value = {.is_list = true, .tensors = {}},
                    .bytes = {},
                    .generator = Generator{}};
    for (int t = 0; t < 60'000; ++t) input.value.tensors.push_back({.shape = {t}});
    call.inputs.push_back(std::move(input));
  }
  v1::RunRequest whole;
  const auto pieces = EncodeHeader(call, "", kHeaderPiece);
  EXPECT_GT(pieces.size(), 1U);
  for (const auto& piece : pieces) whole.MergeFrom(Parse<v1::StreamRunRequest>(piece).header());
  ASSERT_EQ(whole.inputs_size(), 3);
  EXPECT_EQ(whole.inputs(2).name(), "c");
  EXPECT_EQ(whole.inputs(2).spec().dims_size(), 60'000);
}

TEST(StatusTest, GrpcsOwnRefusalOfAMessageSaysWhatToDo) {
  const absl::Status status =
      ToStatus(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                            "Received message larger than max (5242880 vs. 4259840)"));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               HasSubstr("(5242880 vs. 4259840); send tensors by StreamRun")));
  EXPECT_THAT(status, ReasonIs("TOO_LARGE"));
  EXPECT_EQ(DetailsOf(status).metadata.at("limit"), "message_bytes");
  const absl::Status other = ToStatus(
      grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "received initial metadata size exceeds"));
  EXPECT_EQ(other.message(), "received initial metadata size exceeds");
  EXPECT_THAT(other, ReasonIs(""));
}

absl::Status TooLarge(std::map<std::string, std::string> metadata) {
  return WithDetails(absl::ResourceExhaustedError("too large"),
                     {.reason = "TOO_LARGE", .field = "", .retry_after = {}, .metadata = metadata});
}

TEST(ShorterChunkTest, IsWhatTheServerSaysOrTheHalf) {
  EXPECT_EQ(ShorterChunk(TooLarge({{"limit", "chunk_bytes"}, {"value", "65536"}}), 1 << 20), 65536);
  EXPECT_EQ(ShorterChunk(TooLarge({{"limit", "message_bytes"}}), 1 << 20), 1 << 19);
  EXPECT_EQ(ShorterChunk(TooLarge({{"limit", "control_bytes"}, {"value", "4096"}}), 8192), 4096);
}

TEST(ShorterChunkTest, ThereIsNoneForOtherFailuresOrBelowTheLeast) {
  EXPECT_EQ(ShorterChunk(TooLarge({{"limit", "arena_bytes"}, {"value", "65536"}}), 1 << 20),
            std::nullopt);
  EXPECT_EQ(ShorterChunk(TooLarge({}), 1 << 20), std::nullopt);
  EXPECT_EQ(ShorterChunk(TooLarge({{"limit", "message_bytes"}}), 4096), std::nullopt);
  EXPECT_EQ(ShorterChunk(TooLarge({{"limit", "chunk_bytes"}, {"value", "0"}}), 4096), std::nullopt);
  EXPECT_EQ(ShorterChunk(TooLarge({{"limit", "chunk_bytes"}, {"value", "4096"}}), 4096),
            std::nullopt);
  EXPECT_EQ(ShorterChunk(absl::UnavailableError("away"), 1 << 20), std::nullopt);
}

TEST(CheckTest, BytesMustFitTheSpec) {
  const std::string data = "1234567";
  RunCall call;
  call.inputs = {{.name = "x",
                  .value = Tensor(DType::kF32, {2}),
                  .bytes = {std::as_bytes(std::span<const char>(data))},
                  .generator = {}}};
  EXPECT_THAT(CheckInputs(call),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("f32[2] has 8 bytes, got 7")));
}

TEST(IncomingTest, AChunkIsCopiedIntoPlace) {
  v1::StreamRunResponse message;
  message.mutable_chunk()->set_name("y");
  message.mutable_chunk()->set_offset(7);
  message.mutable_chunk()->set_data("abc");
  grpc::ByteBuffer buffer = Serialize(message);
  ASSERT_OK_AND_ASSIGN(const IncomingMessage in, IncomingMessage::Read(buffer));
  ASSERT_TRUE(in.is_chunk());
  EXPECT_EQ(in.chunk().name, "y");
  EXPECT_EQ(in.chunk().offset, 7U);
  std::string got(3, ' ');
  in.CopyChunk(reinterpret_cast<std::byte*>(got.data()), Reuse::kSoon);
  EXPECT_EQ(got, "abc");
}

TEST(IncomingTest, OtherMessagesAreParsed) {
  v1::StreamRunResponse message;
  message.mutable_accepted()->set_queue_position(3);
  grpc::ByteBuffer buffer = Serialize(message);
  ASSERT_OK_AND_ASSIGN(const IncomingMessage in, IncomingMessage::Read(buffer));
  EXPECT_FALSE(in.is_chunk());
  EXPECT_EQ(in.message().accepted().queue_position(), 3U);
}

TEST(IncomingTest, GarbageIsTheServersFault) {
  for (const std::string text : {"\xff\xff\xff\xff", "\x2a\x05\x0a", "\x2a\x02\x7a\x7f"}) {
    const grpc::Slice slice(text);
    grpc::ByteBuffer buffer(&slice, 1);
    EXPECT_THAT(IncomingMessage::Read(buffer),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("broke the protocol")));
  }
}

TEST(UnaryAnswerTest, AnOutputOfTheWrongSizeIsRefused) {
  v1::RunResponse response;
  auto* output = response.add_outputs();
  output->set_name("y");
  output->mutable_spec()->set_dtype(v1::F32);
  output->mutable_spec()->add_dims(2);
  output->set_data("1234");
  grpc::ByteBuffer buffer = Serialize(response);
  EXPECT_THAT(DecodeUnary({}, {}, buffer),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("of 8 bytes came with 4")));
}

}  // namespace
}  // namespace gridclock
