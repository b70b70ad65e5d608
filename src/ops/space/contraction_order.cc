#include "ops/space/contraction_order.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace shardprop {
namespace {

using Factors = std::uint64_t;
constexpr std::size_t kMostFactors = 64;
constexpr std::size_t kMostOrdered = 10;

Factors held_by(const Operand& operand) {
  Factors held = 0;
  for (const DimFactors& dim : operand.dims) {
    for (const FactorId id : dim) held |= Factors{1} << id;
  }
  return held;
}

class Contraction {
 public:
  Contraction(const IndexSpace& space, const std::vector<double>& sizes)
      : sizes_(sizes) {
    for (const Operand& input : space.inputs) held_.push_back(held_by(input));
    for (const Operand& output : space.outputs) kept_ |= held_by(output);
  }

  // Dynamic programming over subsets of the inputs: each subset is the product
  // of two smaller subsets.
  double in_best_order() const {
    const std::size_t all = (std::size_t{1} << held_.size()) - 1;
    std::vector<double> least(all + 1, 0);
    for (std::size_t set = 1; set <= all; ++set) {
      if ((set & (set - 1)) == 0) continue;
      least[set] = std::numeric_limits<double>::infinity();
      for (std::size_t one = (set - 1) & set; one > 0; one = (one - 1) & set) {
        const std::size_t other = set ^ one;
        if (one < other) continue;
        least[set] =
            std::min(least[set], least[one] + least[other] +
                                     points(left_of(one) | left_of(other)));
      }
    }
    return least[all];
  }

  double in_given_order() const {
    double products = 0;
    Factors made = held_.empty() ? 0 : held_[0];
    for (std::size_t i = 1; i < held_.size(); ++i) {
      products += points(made | held_[i]);
      Factors needed = kept_;
      for (std::size_t j = i + 1; j < held_.size(); ++j) needed |= held_[j];
      made = (made | held_[i]) & needed;
    }
    return products;
  }

 private:
  double points(Factors factors) const {
    double product = 1;
    for (std::size_t f = 0; f < sizes_.size(); ++f) {
      if ((factors >> f & 1) != 0) product *= sizes_[f];
    }
    return product;
  }

  // Returns the dims of the product of some inputs: the factors of these inputs
  // that the result or the other inputs need.
  Factors left_of(std::size_t set) const {
    Factors own = 0;
    Factors needed = kept_;
    for (std::size_t i = 0; i < held_.size(); ++i) {
      ((set >> i & 1) != 0 ? own : needed) |= held_[i];
    }
    return own & needed;
  }

  const std::vector<double>& sizes_;
  std::vector<Factors> held_;  // by input
  Factors kept_ = 0;
};

}  // namespace

std::vector<std::size_t> summed_inputs(const IndexSpace& space,
                                       const Operand& output) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < space.inputs.size(); ++i) {
    for (std::size_t f = 0; f < space.factors.size(); ++f) {
      const auto factor = static_cast<int>(f);
      if (!output.holds(factor) && space.inputs[i].holds(factor)) {
        found.push_back(i);
        break;
      }
    }
  }
  return found;
}

double least_products(const IndexSpace& space,
                      const std::vector<double>& sizes) {
  if (space.factors.size() > kMostFactors) {
    double points = 1;
    for (const double size : sizes) points *= size;
    return points;
  }
  const Contraction contraction(space, sizes);
  return space.inputs.size() <= kMostOrdered ? contraction.in_best_order()
                                             : contraction.in_given_order();
}

}  // namespace shardprop
