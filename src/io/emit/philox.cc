#include "io/emit/philox.h"

#include "io/emit/tensor_ops.h"

#include <array>
#include <optional>
#include <utility>

namespace shardprop::emit {
namespace {

constexpr std::int64_t kMask = 0xFFFFFFFF;
constexpr std::int64_t kMultiplier0 = 0xD2511F53;
constexpr std::int64_t kMultiplier1 = 0xCD9E8D57;
constexpr std::int64_t kWeyl0 = 0x9E3779B9;
constexpr std::int64_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

// A 32-bit value: one number for all elements, or a tensor with a number per
// element.
struct Word {
  std::int64_t number = 0;
  TorchId tensor;  // invalid: a number
  bool is_number() const { return !tensor.valid(); }
};

class Philox {
 public:
  explicit Philox(TorchGraph& graph) : graph_(graph) {}

  std::array<Word, 4> run(std::array<Word, 4> counter,
                          std::array<Word, 2> key) {
    for (int round = 0; round < kRounds; ++round) {
      const auto [low0, high0] = product(counter[0], kMultiplier0);
      const auto [low1, high1] = product(counter[2], kMultiplier1);
      counter = {exclusive_or(exclusive_or(high1, counter[1]), key[0]), low1,
                 exclusive_or(exclusive_or(high0, counter[3]), key[1]), low0};
      if (round + 1 == kRounds) break;
      key = {sum(key[0], kWeyl0), sum(key[1], kWeyl1)};
    }
    return counter;
  }

  TorchId op(const char* name, TorchId self, std::int64_t other) {
    return graph_.op(name, {{"self", self}, {"other", integer(other)}},
                     dense(graph_.shape(self), DType::kI64));
  }
  TorchId masked(TorchId x, std::int64_t mask) {
    return op("aten.bitwise_and.Scalar", x, mask);
  }
  TorchId shifted_right(TorchId x, std::int64_t by) {
    return op("aten.bitwise_right_shift.Tensor_Scalar", x, by);
  }

 private:
  // Returns the halves of a product. The partial products fit in 63 bits.
  std::pair<Word, Word> product(const Word& x, std::int64_t by) {
    if (x.is_number()) {
      const auto all =
          static_cast<std::uint64_t>(x.number) * static_cast<std::uint64_t>(by);
      return {{static_cast<std::int64_t>(all & kMask), {}},
              {static_cast<std::int64_t>(all >> 32), {}}};
    }
    const TorchId low =
        op("aten.mul.Scalar", masked(x.tensor, 0xFFFF), by);  // < 2^48
    const TorchId high = op("aten.mul.Scalar", shifted_right(x.tensor, 16), by);
    const TorchId upper = add(high, shifted_right(low, 16));  // bits 16 and up
    const TorchId lower = add(
        op("aten.bitwise_left_shift.Tensor_Scalar", masked(upper, 0xFFFF), 16),
        masked(low, 0xFFFF));
    return {{0, lower}, {0, shifted_right(upper, 16)}};
  }

  TorchId add(TorchId a, TorchId b) {
    return graph_.op("aten.add.Tensor", {{"self", a}, {"other", b}},
                     dense(graph_.shape(a), DType::kI64));
  }

  Word exclusive_or(const Word& a, const Word& b) {
    if (a.is_number() && b.is_number()) return {a.number ^ b.number, {}};
    if (a.is_number()) return exclusive_or(b, a);
    if (b.is_number()) {
      if (b.number == 0) return a;
      return {0, op("aten.bitwise_xor.Scalar", a.tensor, b.number)};
    }
    // A key is a tensor without dims.
    const bool a_is_larger =
        graph_.shape(a.tensor).size() >= graph_.shape(b.tensor).size();
    const Dims& shape = graph_.shape(a_is_larger ? a.tensor : b.tensor);
    return {0, graph_.op("aten.bitwise_xor.Tensor",
                         {{"self", a.tensor}, {"other", b.tensor}},
                         dense(shape, DType::kI64))};
  }

  Word sum(const Word& a, std::int64_t b) {
    if (a.is_number()) return {(a.number + b) & kMask, {}};
    return {0, masked(op("aten.add.Scalar", a.tensor, b), kMask)};
  }

  TorchGraph& graph_;
};

// Returns the row-major numbers that the elements of `region` have in the full
// tensor.
TorchId element_numbers(TorchGraph& graph, const LocalRegion& region,
                        const Dims& whole, const Argument& device) {
  const Dims shape = region.shape();
  const Dims strides = contiguous_strides(whole);
  std::optional<TorchId> sum;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<TorchId> runs;
    for (const Interval& run : region.dims()[d]) {
      const std::int64_t step = std::max<std::int64_t>(strides[d], 1);
      runs.push_back(graph.op("aten.arange.start_step",
                              {{"start", integer(run.begin * step)},
                               {"end", integer(run.end * step)},
                               {"step", integer(step)},
                               {"dtype", Argument(DType::kI64)},
                               {"device", device}},
                              dense(Dims{run.size()}, DType::kI64)));
    }
    if (runs.empty()) return filled(graph, shape, DType::kI64, 0, device);
    TorchId along = runs.size() == 1 ? runs[0] : cat(graph, std::move(runs), 0);
    Dims wide(shape.size(), 1);
    wide[d] = shape[d];
    along = reshape(graph, along, std::move(wide));
    if (!sum) {
      sum = along;
      continue;
    }
    Dims broadcast = graph.shape(*sum);
    broadcast[d] = shape[d];
    sum = graph.op("aten.add.Tensor", {{"self", *sum}, {"other", along}},
                   dense(std::move(broadcast), DType::kI64));
  }
  return sum ? *sum : filled(graph, shape, DType::kI64, 0, device);
}

}  // namespace

std::vector<TorchId> philox_words(TorchGraph& graph, TorchId seed,
                                  std::int64_t node, std::int64_t block,
                                  const LocalRegion& region, const Dims& whole,
                                  const Argument& device) {
  Philox draw(graph);
  const TorchId element = element_numbers(graph, region, whole, device);
  std::int64_t elements = 1;
  for (const std::int64_t size : whole) elements *= size;
  Word low{0, element};
  Word high;
  if (elements > kMask + 1) {
    low.tensor = draw.masked(element, kMask);
    high.tensor = draw.masked(draw.shifted_right(element, 32), kMask);
  }
  const std::array<Word, 4> words =
      draw.run({low, high, Word{node, {}}, Word{block, {}}},
               {Word{0, draw.masked(seed, kMask)},
                Word{0, draw.masked(draw.shifted_right(seed, 32), kMask)}});
  std::vector<TorchId> out;
  for (const Word& word : words) out.push_back(word.tensor);
  return out;
}

}  // namespace shardprop::emit
