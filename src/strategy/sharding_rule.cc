#include <shardprop/strategy/sharding_rule.h>

#include "base/try.h"
#include "strategy/rule_forms.h"

#include <iterator>
#include <utility>

namespace shardprop {
namespace {

std::size_t outputs_of(const FactorMap& map) { return map.outputs.size(); }

// Adds the carry if every placement in it makes sense for its tensor.
void add_carry(const OpSchema& op, FactorMap& map,
               std::vector<Placement> inputs, std::vector<Placement> outputs) {
  const auto fits = [](Placement placement, const TensorMeta& meta) {
    return !placement.is_partial() ||
           is_defined(placement.reduce_op(), meta.dtype());
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!fits(inputs[i], op.inputs[i])) return;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!fits(outputs[i], op.outputs[i])) return;
  }
  map.carries.push_back({std::move(inputs), std::move(outputs)});
}

// One argument partial, the others replicated.
void add_single_carry(const OpSchema& op, FactorMap& map, std::size_t input,
                      ReduceOp in, ReduceOp out) {
  std::vector<Placement> inputs(map.inputs.size());
  inputs[input] = Placement::partial(in);
  add_carry(op, map, std::move(inputs),
            std::vector<Placement>(outputs_of(map), Placement::partial(out)));
}

// What self and other add up to: factor * tensor by operand, plus a constant
// where one of them is a number.
struct SignedSum {
  std::vector<double> factors;
  bool has_constant = false;
};

SignedSum signed_sum(const OpSchema& op, const std::vector<int>& signs) {
  SignedSum sum;
  sum.factors.assign(op.inputs.size(), 1);
  const double alpha =
      op.has_arg("alpha") ? op.float_arg("alpha").value_or(0) : 1;
  const std::string_view terms[] = {"self", "other"};
  for (std::size_t i = 0; i < std::size(terms); ++i) {
    if (!op.has_arg(terms[i])) continue;
    const double factor =
        (i < signs.size() ? signs[i] : 1) * (i == 0 ? 1 : alpha);
    if (const auto operand = op.tensor_arg(terms[i])) {
      sum.factors[*operand] = factor;
    } else if (op.float_arg(terms[i]).value_or(1) != 0) {
      sum.has_constant = true;
    }
  }
  return sum;
}

std::string sign_text(const std::vector<int>& signs) {
  std::string text;
  for (const int sign : signs) {
    if (!text.empty()) text += ',';
    text += sign < 0 ? '-' : '+';
  }
  return text;
}

}  // namespace

ShardingRule::ShardingRule(std::string text, Instantiate instantiate)
    : text_(std::move(text)), instantiate_(std::move(instantiate)) {}

Result<FactorMap> ShardingRule::instantiate(const OpSchema& op) const {
  SP_ASSIGN(FactorMap map, instantiate_(op));
  map.seal();
  for (const Refine& refine : refinements_) refine(op, map);
  return map;
}

ShardingRule ShardingRule::refine(std::string name, Refine refine) && {
  if (!name.empty()) text_ += "." + std::move(name);
  refinements_.push_back(std::move(refine));
  return std::move(*this);
}

ShardingRule ShardingRule::additive(std::vector<int> signs) && {
  const std::string name = "additive(" + sign_text(signs) + ")";
  return std::move(*this).refine(name, [signs = std::move(signs)](
                                           const OpSchema& op, FactorMap& map) {
    const std::size_t n = map.inputs.size();
    if (n == 0) return;
    const SignedSum sum = signed_sum(op, signs);
    if (!sum.has_constant) {
      add_carry(op, map,
                std::vector<Placement>(n, Placement::partial(ReduceOp::kSum)),
                std::vector<Placement>(outputs_of(map),
                                       Placement::partial(ReduceOp::kSum)));
    }
    if (n > 1) {
      add_carry(op, map,
                std::vector<Placement>(n, Placement::partial(ReduceOp::kAvg)),
                std::vector<Placement>(outputs_of(map),
                                       Placement::partial(ReduceOp::kAvg)));
    }
    for (std::size_t i = 0; i < n; ++i) {
      add_single_carry(op, map, i, ReduceOp::kAvg, ReduceOp::kAvg);
      const double factor = sum.factors[i];
      if (factor == 0) continue;
      for (const ReduceOp kept : {ReduceOp::kMax, ReduceOp::kMin}) {
        const ReduceOp swapped =
            kept == ReduceOp::kMax ? ReduceOp::kMin : ReduceOp::kMax;
        add_single_carry(op, map, i, kept, factor > 0 ? kept : swapped);
      }
    }
  });
}

ShardingRule ShardingRule::linear_in(std::string_view argument) && {
  const std::string name(argument);
  return std::move(*this).refine(
      "linear_in(" + name + ")", [name](const OpSchema& op, FactorMap& map) {
        const auto input = op.tensor_arg(name);
        if (!input) return;
        for (const ReduceOp kind : {ReduceOp::kSum, ReduceOp::kAvg}) {
          add_single_carry(op, map, *input, kind, kind);
        }
      });
}

ShardingRule ShardingRule::multilinear() && {
  return std::move(*this).refine(
      "multilinear()", [](const OpSchema& op, FactorMap& map) {
        for (std::size_t i = 0; i < map.inputs.size(); ++i) {
          for (const ReduceOp kind : {ReduceOp::kSum, ReduceOp::kAvg}) {
            add_single_carry(op, map, i, kind, kind);
          }
        }
      });
}

ShardingRule ShardingRule::nondecreasing() && {
  return std::move(*this).refine(
      "nondecreasing()", [](const OpSchema& op, FactorMap& map) {
        if (map.inputs.empty()) return;
        add_single_carry(op, map, 0, ReduceOp::kMax, ReduceOp::kMax);
        add_single_carry(op, map, 0, ReduceOp::kMin, ReduceOp::kMin);
      });
}

ShardingRule ShardingRule::nonincreasing() && {
  return std::move(*this).refine(
      "nonincreasing()", [](const OpSchema& op, FactorMap& map) {
        if (map.inputs.empty()) return;
        add_single_carry(op, map, 0, ReduceOp::kMax, ReduceOp::kMin);
        add_single_carry(op, map, 0, ReduceOp::kMin, ReduceOp::kMax);
      });
}

ShardingRule ShardingRule::lattice(ReduceOp own) && {
  return std::move(*this).refine(
      "lattice(" + std::string(to_string(own)) + ")",
      [own](const OpSchema& op, FactorMap& map) {
        const std::size_t n = map.inputs.size();
        for (const ReduceOp kind : {ReduceOp::kMax, ReduceOp::kMin}) {
          for (std::size_t i = 0; i < n; ++i) {
            add_single_carry(op, map, i, kind, kind);
          }
        }
        add_carry(
            op, map, std::vector<Placement>(n, Placement::partial(own)),
            std::vector<Placement>(outputs_of(map), Placement::partial(own)));
      });
}

ShardingRule ShardingRule::passes(std::vector<std::string> arguments) && {
  std::string name = "passes(";
  for (const std::string& argument : arguments) {
    name += (name.back() == '(' ? "" : ",") + argument;
  }
  return std::move(*this).refine(
      name + ")",
      [arguments = std::move(arguments)](const OpSchema& op, FactorMap& map) {
        std::vector<bool> takes(map.inputs.size(), arguments.empty());
        for (const std::string& argument : arguments) {
          if (const auto input = op.tensor_arg(argument)) takes[*input] = true;
          // A number where a tensor could stand does not pass through: every
          // rank would add its copy.
          else if (!op.tensor_list_arg(argument).empty()) {
            for (const std::size_t i : op.tensor_list_arg(argument)) {
              takes[i] = true;
            }
          } else {
            return;
          }
        }
        for (const ReduceOp kind : kAllReduceOps) {
          const Placement partial = Placement::partial(kind);
          std::vector<Placement> inputs(map.inputs.size());
          for (std::size_t i = 0; i < inputs.size(); ++i) {
            if (takes[i]) inputs[i] = partial;
          }
          add_carry(op, map, std::move(inputs),
                    std::vector<Placement>(outputs_of(map), partial));
        }
      });
}

ShardingRule ShardingRule::ignores_values() && {
  return std::move(*this).refine(
      "ignores_values()", [](const OpSchema& op, FactorMap& map) {
        for (const ReduceOp kind : kAllReduceOps) {
          add_carry(op, map,
                    std::vector<Placement>(map.inputs.size(),
                                           Placement::partial(kind)),
                    std::vector<Placement>(outputs_of(map)));
        }
      });
}

ShardingRule ShardingRule::blocked(std::string_view dim_argument) && {
  const std::string name(dim_argument);
  return std::move(*this).refine(
      "blocked(" + name + ")", [name](const OpSchema& op, FactorMap& map) {
        if (map.inputs.empty()) return;
        for (const int dim : wrapped_dims(op, name, op.inputs[0].rank())) {
          block_dim(map, map.inputs[0], dim,
                    "`" + name + "` of " + op.name() + " runs over it");
        }
      });
}

ShardingRule ShardingRule::random() && {
  return std::move(*this).refine(
      "random()",
      [](const OpSchema&, FactorMap& map) { map.is_random = true; });
}

ShardingRule ShardingRule::free() && {
  return std::move(*this).refine(
      "", [](const OpSchema&, FactorMap& map) { map.is_free = true; });
}

ShardingRule ShardingRule::local_shape(std::string_view argument,
                                       int output) && {
  const std::string name(argument);
  return std::move(*this).refine(
      "", [name, output](const OpSchema& op, FactorMap& map) {
        LocalArgument local{name, true, {}};
        const int rank = op.outputs[static_cast<std::size_t>(output)].rank();
        for (int dim = 0; dim < rank; ++dim) {
          local.values.push_back(RankScalar::output_size(output, dim));
        }
        map.local_arguments.push_back(std::move(local));
      });
}

ShardingRule custom(std::string name, ShardingRule::Instantiate instantiate) {
  return ShardingRule(std::move(name), std::move(instantiate));
}

std::vector<int> wrapped_dims(const OpSchema& op, std::string_view argument,
                              int rank) {
  std::vector<int> dims;
  const auto given =
      op.has_arg(argument) ? op.ints_arg(argument) : std::nullopt;
  if (!given || given->empty()) {
    for (int dim = 0; dim < rank; ++dim) dims.push_back(dim);
    return dims;
  }
  for (const std::int64_t dim : *given) {
    dims.push_back(static_cast<int>(dim < 0 ? dim + rank : dim));
  }
  return dims;
}

void block_dim(FactorMap& map, const Operand& operand, int dim,
               const std::string& reason) {
  if (dim < 0 || static_cast<std::size_t>(dim) >= operand.dims.size()) return;
  for (const std::int8_t factor : operand.dims[static_cast<std::size_t>(dim)]) {
    map.factors[static_cast<std::size_t>(factor)].blocked = reason;
  }
}

}  // namespace shardprop
