// Sampled programs in the texts of rules. Each rule claims nothing: it blocks all
// dims. Each program is refused with a reason, or all strategies that it leads to give
// the values of the program on full tensors.
//
// SHARDPROP_SAMPLED_PROGRAMS is the number of programs (default 60), and
// SHARDPROP_SAMPLED_FROM the first seed (default 0).

#include "verify/user_operators.h"

#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using namespace testing;

// V is a value, D a dim.
constexpr std::string_view kSteps[] = {
    "exp(V)",
    "V + V",
    "V - V",
    "V * V",
    "V * 2 + 1",
    "sum(V, [D], True)",
    "sum(V, [D])",
    "amax(V, [D], True)",
    "amin(V, [D], True)",
    "mean(V, [D], True)",
    "var(V, [D], keepdim=True)",
    "prod(V, D, True)",
    "logsumexp(V, [D], True)",
    "softmax(V, D)",
    "log_softmax(V, D)",
    "layer_norm(V, [size(x, 1)])",
    "cumsum(V, D)",
    "flip(V, [D])",
    "roll(V, [1], [D])",
    "result(sort(V, D), 0)",
    "result(max(V, D, True), 0)",
    "cast(argmax(V, D, True), dtype(x))",
    "transpose(V, 0, 1)",
    "unsqueeze(V, D)",
    "squeeze(V, D)",
    "select(V, D, 1)",
    "slice(V, D, 1, 3)",
    "narrow(V, D, 0, 2)",
    "cat([V, V], D)",
    "stack([V, V], D)",
    "mm(V, transpose(V, 0, 1))",
    "mm(mm(V, transpose(V, 0, 1)), V)",
    "view(V, [size(x, 1), size(x, 0)])",
    "view(V, [size(x, 0), size(x, 1)])",
    "reshape(V, [-1])",
    "view(V, [size(x, 0), 2, 3])",
    "view(V, [2, 2, size(x, 1)])",
    "expand(V, [size(x, 0), size(x, 1)])",
    "full([size(x, 0), size(x, 1)], 2.0, dtype=dtype(x))",
    "cast(arange(size(x, 1)), dtype(x))",
    "cast(places(x, 1), dtype(x))",
    "cast(places(x, 0), dtype(x))",
    "cast(places(out, 1), dtype(x))",
    "triu(V)",
    "tril(V, 1)",
    "diagonal(V)",
    "clamp(V, -1, 1)",
    "where(V < V, V, V)",
    "repeat(V, [2, 1])",
    "constant_pad_nd(V, [1, 0])",
    "norm(V, 2, [D], True)",
    "zeros_like(V)",
    "ones_like(V) * V",
    "cast(V, dtype(x))",
    "unfold(V, D, 2, 2)",
    "flatten(V)",
    "permute(V, [1, 0])",
    "gather(V, D, zeros_like(argmax(V, D, True)))",
    "index_select(V, D, arange(2))",
    "trailing(V, 1)",
    "whole(V)",
    "atan2(V, V)",
    "chunk(V, 2, D)",
    "addmm(V, V, mm(transpose(V, 0, 1), V))"};

// Further steps of programs that each rank runs.
constexpr std::string_view kRankSteps[] = {
    "itself()",
    "itself(x=V)",
    "all_reduce_sum(V)",
    "all_reduce_max(V)",
    "all_gather(V)",
    "all_gather_unordered(V)",
    "V + offset(x, D)",
    "V * local_size(x, D)",
    "V + offset(out, D)",
    "V + quotient(offset(x, D), 2)",
    "V * quotient_up(local_size(x, D), 2)",
    "narrow(V, D, offset(x, D), local_size(x, D))",
    "narrow(V, D, offset(out, D), local_size(out, D))",
    "if_cut(x, D, V, V)",
    "if_joined(x, D, V, V)",
    "if_unaligned(x, D, V, V)",
    "V * by_program(x, D)",
    "sum(V, [cut_dim(x)], True)",
    "index_select(V, D, places(x, D))",
    "V + places_along(x, [0, 1])",
    "masked_fill(V, outside(x, local_indices(x, [argmax(V, 1)])), 0)",
    "full([local_size(x, 0), local_size(x, 1)], 2.0)",
    "arange(local_size(x, D))",
    "unkept(sum(V, [D], True), [D], False)"};

class ProgramSampler {
 public:
  explicit ProgramSampler(std::uint64_t seed, bool per_rank = false)
      : random_(seed), per_rank_(per_rank) {}

  std::string program() {
    std::string text;
    std::vector<std::string> values = {"x", "y", "x"};
    const std::size_t count = 1 + below(4);
    for (std::size_t s = 0; s < count; ++s) {
      const std::string name = "t" + std::to_string(s);
      const bool is_of_rank = per_rank_ && below(3) > 0;
      text += name + " = " +
              filled(is_of_rank ? kRankSteps[below(std::size(kRankSteps))]
                                : kSteps[below(std::size(kSteps))],
                     values) +
              "; ";
      values.insert(values.end(), {name, name});
    }
    return text + (per_rank_ ? "return " : "return x + ") + values.back();
  }

 private:
  std::size_t below(std::size_t most) { return random_() % most; }

  std::string filled(std::string_view step,
                     const std::vector<std::string>& values) {
    std::string text;
    for (const char c : step) {
      if (c == 'V') {
        text += values[below(values.size())];
      } else if (c == 'D') {
        text += std::to_string(below(2));
      } else {
        text += c;
      }
    }
    return text;
  }

  std::mt19937_64 random_;
  const bool per_rank_;
};

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST_CASE("sampled programs: refused, or right with every strategy") {
  const std::uint64_t first = number_of("SHARDPROP_SAMPLED_FROM", 0);
  const std::uint64_t count = number_of("SHARDPROP_SAMPLED_PROGRAMS", 60);
  int refused = 0;
  std::size_t sharded = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    CAPTURE(seed);
    const bool is_vector = seed % 3 == 0;
    const UserOperator one{
        "mylib::f(Tensor x, Tensor y) -> Tensor",
        std::string(is_vector ? "mapped([a][b],[b]->[a][b])"
                              : "mapped([a][b],[a][b]->[a][b])") +
            ".decomposed(\"" + ProgramSampler(seed).program() + "\")",
        {"f32[4,6]", is_vector ? "f32[6]" : "f32[4,6]"}};
    CAPTURE(one.rule);
    const auto call = try_declared(one);
    if (!call || !call->library->index_space(call->op)) {
      ++refused;
      continue;
    }
    for (const char* mesh : {"2", "3", "2,2"}) {
      CAPTURE(std::string(mesh));
      sharded += verified(one, mesh).size();
    }
  }
  const std::uint64_t run = count - static_cast<std::uint64_t>(refused);
  MESSAGE(run, " programs run, ", refused, " are refused; ", sharded,
          " sharded strategies");
  CHECK((sharded > 0 || count < 10));
}

// The test does not know whether these programs are right. They must not lead to an
// internal error.
TEST_CASE(
    "sampled programs of ranks: refused, or lowered with every strategy") {
  const std::uint64_t first = number_of("SHARDPROP_SAMPLED_FROM", 0);
  const std::uint64_t count = number_of("SHARDPROP_SAMPLED_PROGRAMS", 60);
  int refused = 0;
  std::size_t lowered_strategies = 0;
  constexpr const char* kForms[] = {"mapped([a][b],[a][b]->[a][b])",
                                    "mapped(a[b],a[b]->a[b])",
                                    "mapped((ab)[c],(ab)[c]->(ab)[c])",
                                    "mapped([a]b,[a]b->b[a])",
                                    "pointwise()",
                                    "along(dim)",
                                    "scanned(dim)"};
  constexpr const char* kKinds[] = {"parallel", "blocked",   "windowed",
                                    "indexed",  "segmented", "scanned"};
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const UserOperator one{"mylib::f(Tensor x, Tensor y, int dim=1) -> Tensor",
                           std::string(kForms[seed % std::size(kForms)]) +
                               ".per_rank(\"" +
                               ProgramSampler(seed, true).program() + "\"," +
                               kKinds[seed / 7 % std::size(kKinds)] + ")",
                           {"f32[4,6]", "f32[4,6]"}};
    CAPTURE(one.rule);
    const auto call = try_declared(one);
    if (!call || !call->library->index_space(call->op)) {
      ++refused;
      continue;
    }
    for (const char* mesh : {"2", "3", "2,2"}) {
      CAPTURE(std::string(mesh));
      for (const OneStrategy& strategy : strategies_of(*call, mesh)) {
        CAPTURE(strategy.text);
        CHECK(lowered(*call, strategy, mesh).has_value());
        ++lowered_strategies;
      }
    }
  }
  MESSAGE(refused, " programs are refused; ", lowered_strategies,
          " strategies are lowered");
  CHECK((lowered_strategies > 0 || count < 10));
}

}  // namespace
}  // namespace shardprop
