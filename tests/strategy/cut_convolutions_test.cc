// Tests the local program of a convolution that is sharded over space.
#include <shardprop/strategy/local_program.h>

#include "strategy/applied.h"
#include "strategy/program_words.h"

#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::applied;
using testing::Messages;
using testing::messages_of;
using testing::steps_of;
using testing::Strategies;

using Ints = std::vector<std::int64_t>;

std::vector<GivenArgument> settings(Ints stride, Ints padding) {
  return {{"stride", std::move(stride)},  {"padding", std::move(padding)},
          {"dilation", Ints{1, 1}},       {"transposed", false},
          {"output_padding", Ints{0, 0}}, {"groups", std::int64_t{1}}};
}

Strategies convolution(const char* image, const char* weight, Ints stride,
                       Ints padding, const char* mesh) {
  std::vector<GivenArgument> rest =
      settings(std::move(stride), std::move(padding));
  rest.push_back({"bias", NoneArg{}});
  return {applied("aten.convolution.default", {image, weight}, rest), mesh};
}

TEST_CASE("a convolution over rows that are cut gathers their edges") {
  const auto messages = [](std::int64_t stride) {
    return messages_of(
        convolution("f32[2,6,16,8]", "f32[8,6,3,3]", {stride, 1}, {1, 1}, "2,4")
            .context("[S(0),S(2)],[R,R]->[S(0),S(2)]"));
  };
  const auto rows = [](int count) {
    return "all_gather of " + std::to_string(4 * 6 * count * 8 * 4) + " bytes";
  };
  // Where four parts begin and end; of one image the last row and the first.
  CHECK(messages(1) == Messages{"all_gather of 64 bytes", rows(2)});
  // Each output row reads two image rows, so that the convolution needs no row
  // from the next rank.
  CHECK(messages(2) == Messages{"all_gather of 64 bytes", rows(1)});
}

TEST_CASE("only the first dim that needs a halo is sharded") {
  const auto same = [](const char* image) {
    return convolution(image, "f32[8,6,3,3]", {1, 1}, {1, 1}, "2");
  };
  const Strategies tall = same("f32[2,6,16,16]");
  CHECK(tall.has("S(2),R->S(2)"));
  CHECK_FALSE(tall.has("S(3),R->S(3)"));
  CHECK(same("f32[2,6,1,16]").has("S(3),R->S(3)"));
}

TEST_CASE(
    "an image with less than two parts as long as a halo stays unsharded") {
  const auto tall_kernel = [](const char* image) {
    return convolution(image, "f32[8,6,7,3]", {1, 1}, {3, 1}, "2");
  };
  CHECK(tall_kernel("f32[2,6,6,8]").has("S(2),R->S(2)"));
  const Strategies small = tall_kernel("f32[2,6,5,8]");
  CHECK_FALSE(small.has("S(2),R->S(2)"));
  CHECK(small.has("S(3),R->S(3)"));
}

TEST_CASE("gradients of a convolution give back what is their neighbours'") {
  std::vector<GivenArgument> rest = settings({1, 1}, {1, 1});
  rest.push_back({"bias_sizes", Ints{8}});
  rest.push_back({"output_mask", std::vector<bool>{true, true, false}});
  const Strategies gradients(
      applied("aten.convolution_backward.default",
              {"f32[2,8,16,8]", "f32[2,6,16,8]", "f32[8,6,3,3]"}, rest),
      "4");
  const std::string edges =
      "all_gather of " + std::to_string(2 * 4 * 6 * 2 * 8 * 4) + " bytes";
  CHECK(messages_of(gradients.context("S(2),S(2),R->S(2),P(sum)")) ==
        Messages{"all_gather of 64 bytes", edges, edges});
  rest.back() = {"output_mask", std::vector<bool>{false, true, false}};
  const Strategies of_weight(
      applied("aten.convolution_backward.default",
              {"f32[2,8,16,8]", "f32[2,6,16,8]", "f32[8,6,3,3]"}, rest),
      "4");
  CHECK(messages_of(of_weight.context("S(2),S(2),R->P(sum)")) ==
        Messages{"all_gather of 64 bytes", edges});
  rest.back() = {"output_mask", std::vector<bool>{false, false, false}};
  const Strategies of_nothing(
      applied("aten.convolution_backward.default",
              {"f32[2,8,16,8]", "f32[2,6,16,8]", "f32[8,6,3,3]"}, rest),
      "4");
  CHECK(steps_of(local_program(of_nothing.context("S(2),S(2),R->"))).empty());
}

TEST_CASE("patches that do not overlap exchange nothing") {
  const Strategies patches =
      convolution("f32[1,3,32,32]", "f32[8,3,4,4]", {4, 4}, {0, 0}, "2,4");
  CHECK(messages_of(patches.context("[S(2),S(3)],[R,R]->[S(2),S(3)]")).empty());
}

}  // namespace
}  // namespace shardprop
