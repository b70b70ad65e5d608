// Views that flatten and split: both shapes are cut into common factors, the
// way digits of a mixed-radix number are.

#include <shardprop/strategy/sharding_rule.h>

#include "strategy/rule_forms.h"

#include <numeric>
#include <string>

namespace shardprop {
namespace {

// Walks both shapes from their major ends. `left` is what is still to be
// covered of the current dim of each side.
class ShapeFactorizer {
 public:
  ShapeFactorizer(FactorMap& map, const Dims& from, const Dims& to)
      : map_(map), from_(from), to_(to) {
    input_.dims.resize(from.size());
    output_.dims.resize(to.size());
  }

  void run() {
    std::size_t i = 0;
    std::size_t o = 0;
    std::int64_t in_left = next(from_, i);
    std::int64_t out_left = next(to_, o);
    while (i < from_.size() && o < to_.size()) {
      const std::int64_t common = std::gcd(in_left, out_left);
      if (common == 1) {
        // Neither divides the other: what is left of this stretch of dims has
        // no common factor, and can only be held whole.
        skip_stretch(i, o, in_left, out_left);
        in_left = next(from_, i);
        out_left = next(to_, o);
        continue;
      }
      const auto factor = static_cast<std::int8_t>(
          map_.add_factor(common, factor_letter(map_.factors.size())));
      input_.dims[i].push_back(factor);
      output_.dims[o].push_back(factor);
      in_left /= common;
      out_left /= common;
      if (in_left == 1) {
        ++i;
        in_left = next(from_, i);
      }
      if (out_left == 1) {
        ++o;
        out_left = next(to_, o);
      }
    }
    map_.inputs.push_back(std::move(input_));
    map_.outputs.push_back(std::move(output_));
  }

 private:
  // Moves to the next dim whose size is not 1.
  static std::int64_t next(const Dims& shape, std::size_t& dim) {
    while (dim < shape.size() && shape[dim] == 1) ++dim;
    return dim < shape.size() ? shape[dim] : 1;
  }

  int add_blocked(std::int64_t size) {
    const int factor =
        map_.add_factor(size, factor_letter(map_.factors.size()));
    map_.factors[static_cast<std::size_t>(factor)].blocked =
        "the view splits it across sizes that do not divide each other";
    return factor;
  }

  void skip_stretch(std::size_t& i, std::size_t& o, std::int64_t in_left,
                    std::int64_t out_left) {
    std::int64_t in_covered = in_left;
    std::int64_t out_covered = out_left;
    input_.dims[i].push_back(static_cast<std::int8_t>(add_blocked(in_left)));
    output_.dims[o].push_back(static_cast<std::int8_t>(add_blocked(out_left)));
    ++i;
    ++o;
    while (in_covered != out_covered) {
      if (in_covered < out_covered) {
        const std::int64_t size = next(from_, i);
        input_.dims[i].push_back(static_cast<std::int8_t>(add_blocked(size)));
        in_covered *= size;
        ++i;
      } else {
        const std::int64_t size = next(to_, o);
        output_.dims[o].push_back(static_cast<std::int8_t>(add_blocked(size)));
        out_covered *= size;
        ++o;
      }
    }
  }

  FactorMap& map_;
  const Dims& from_;
  const Dims& to_;
  Operand input_;
  Operand output_;
};

Result<FactorMap> instantiate_view(const OpSchema& op) {
  FactorMap map;
  const Dims& from = op.inputs[0].shape();
  const Dims& to = op.outputs[0].shape();
  if (op.inputs[0].numel() == 0) {
    // Without elements there is nothing to line up, and nothing to gain.
    map.inputs.emplace_back().dims.resize(from.size());
    map.outputs.emplace_back().dims.resize(to.size());
    return map;
  }
  ShapeFactorizer(map, from, to).run();
  return map;
}

}  // namespace

ShardingRule view(std::string_view shape_argument) {
  ShardingRule rule = ShardingRule("view(" + std::string(shape_argument) + ")",
                                   instantiate_view)
                          .passes()
                          .free();
  if (shape_argument.empty()) return rule;
  return std::move(rule).local_shape(shape_argument);
}

}  // namespace shardprop
