// Tests that each result has the memory order of its own argument.

#include "ops/applied_op.h"

#include <shardprop/ops/rule_text.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace shardprop;           // NOLINT(google-build-using-namespace)
using namespace shardprop::testing;  // NOLINT(google-build-using-namespace)

namespace {

// Returns the results of a call with these tensors, and these other arguments.
std::string results_of(
    std::string_view name,
    const std::vector<std::pair<std::string, std::string_view>>& tensors,
    std::vector<GivenArgument> given) {
  std::vector<std::string_view> metas;
  for (const auto& [argument, meta] : tensors) {
    given.push_back(
        {argument, TensorArg{static_cast<std::int32_t>(metas.size())}});
    metas.push_back(meta);
  }
  std::string text;
  for (const TensorMeta& result :
       applied_to(name, std::move(given), metas).outputs) {
    text += (text.empty() ? "" : " ") + to_string(result);
  }
  return text;
}

// A tensor [2,3,4,8] as it is, and with dims 1 and 2 swapped in memory.
constexpr std::string_view kPlain = "f32[2,3,4,8]";
constexpr std::string_view kTurned = "f32[2,3,4,8]{96,8,24,1}";

std::string gradients(std::string_view kernel, std::string_view query,
                      std::string_view key, std::string_view value) {
  const std::string name = "aten._" + std::string(kernel) + "_backward.default";
  std::vector<std::pair<std::string, std::string_view>> tensors = {
      {"grad_out", kPlain}, {"query", query}, {"key", key},
      {"value", value},     {"out", kPlain},
  };
  std::vector<GivenArgument> given = {{"dropout_p", 0.0}, {"is_causal", false}};
  const auto take_lengths = [&] {
    tensors.emplace_back("cum_seq_q", "i32[0]");
    tensors.emplace_back("cum_seq_k", "i32[0]");
    given.push_back({"max_q", std::int64_t{4}});
    given.push_back({"max_k", std::int64_t{4}});
  };
  if (kernel == "flash_attention") {  // [batch, length, heads, width]
    tensors.emplace_back("logsumexp", "f32[2,4,3]");
    tensors.emplace_back("rng_state", "u64[2]");
    tensors.emplace_back("unused", "u64[]");
    take_lengths();
    return results_of(name, tensors, given);
  }
  if (kernel.ends_with("cudnn_attention")) {
    tensors.emplace_back("logsumexp", "f32[2,3,4,1]");
    tensors.emplace_back("attn_bias", "f32[2,3,4,4]");
  } else {
    tensors.emplace_back("logsumexp", "f32[2,3,4]");
  }
  if (!kernel.ends_with("for_cpu")) {
    tensors.emplace_back("philox_seed", "i64[]");
    tensors.emplace_back("philox_offset", "i64[]");
    take_lengths();
  }
  return results_of(name, tensors, given);
}

}  // namespace

TEST_CASE("gradients of attention have the memory orders of their operands") {
  for (const char* kernel :
       {"flash_attention", "scaled_dot_product_flash_attention",
        "scaled_dot_product_cudnn_attention"}) {
    CAPTURE(kernel);
    for (const auto& [query, key, value] : {std::tuple(kPlain, kPlain, kTurned),
                                            {kPlain, kTurned, kPlain},
                                            {kTurned, kPlain, kPlain},
                                            {kTurned, kTurned, kPlain}}) {
      CHECK(gradients(kernel, query, key, value) == std::string(query) + ' ' +
                                                        std::string(key) + ' ' +
                                                        std::string(value));
    }
  }
}

TEST_CASE("the kernel of CPUs writes gradients by length") {
  CHECK(gradients("scaled_dot_product_flash_attention_for_cpu", kPlain, kPlain,
                  kTurned) == std::string(kTurned) + ' ' +
                                  std::string(kTurned) + ' ' +
                                  std::string(kTurned));
}

TEST_CASE("the output of attention has the memory order of the query") {
  for (const char* kernel :
       {"flash_attention", "cudnn_attention", "flash_attention_for_cpu"}) {
    CAPTURE(kernel);
    const std::string name =
        "aten._scaled_dot_product_" + std::string(kernel) + ".default";
    std::vector<GivenArgument> given;
    if (name.find("cudnn") != std::string::npos) {
      given = {{"attn_bias", NoneArg{}}, {"compute_log_sumexp", true}};
    }
    for (const std::string_view query : {kPlain, kTurned}) {
      CHECK(results_of(name,
                       {{"query", query}, {"key", kTurned}, {"value", kPlain}},
                       given)
                .starts_with(std::string(query) + ' '));
    }
  }
}

TEST_CASE("`like` names no more arguments than the operator has results") {
  const auto mine = library().with(
      {.declaration = "mylib::f(Tensor x, Tensor y) -> Tensor",
       .definition = value_of(parse_rule("[k],[k]->[k].like(x,y)"))});
  REQUIRE_FALSE(mine.has_value());
  CHECK(mine.error().message ==
        "expected at most 1 result, because `mylib.f` declares 1 result, found "
        "2");
}
