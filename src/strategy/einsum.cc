// Factor notation: one term per tensor operand, a letter per factor.

#include "base/try.h"
#include "strategy/rule_forms.h"

#include <shardprop/strategy/sharding_rule.h>

#include <algorithm>
#include <map>
#include <memory>

namespace shardprop {
namespace {

struct Term {
  std::vector<std::string> dims;  // letters of each dim; "..." for leading dims
  bool is_added = false;
};

struct Notation {
  std::vector<Term> inputs;
  std::vector<Term> outputs;
  std::string blocked;
};

Term parse_term(std::string_view text, std::string& blocked) {
  Term term;
  bool grouped = false;
  bool bracketed = false;
  std::string group;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '+') {
      term.is_added = true;
    } else if (c == '(') {
      grouped = true;
      group.clear();
    } else if (c == ')') {
      grouped = false;
      term.dims.push_back(group);
    } else if (c == '[') {
      bracketed = true;
    } else if (c == ']') {
      bracketed = false;
    } else if (c == '.') {
      term.dims.emplace_back("...");
      i += 2;
    } else {
      if (bracketed) blocked += c;
      if (grouped) {
        group += c;
      } else {
        term.dims.emplace_back(1, c);
      }
    }
  }
  return term;
}

std::vector<Term> parse_terms(std::string_view text, std::string& blocked) {
  std::vector<Term> terms;
  while (true) {
    const std::size_t comma = text.find(',');
    terms.push_back(parse_term(text.substr(0, comma), blocked));
    if (comma == std::string_view::npos) return terms;
    text = text.substr(comma + 1);
  }
}

Notation parse_notation(std::string_view text) {
  const std::size_t arrow = text.find("->");
  if (arrow == std::string_view::npos) {
    throw InternalError("factor notation without ->: " + std::string(text));
  }
  Notation notation;
  notation.inputs = parse_terms(text.substr(0, arrow), notation.blocked);
  notation.outputs = parse_terms(text.substr(arrow + 2), notation.blocked);
  return notation;
}

// Letters and leading dims bound to factors while operands are read.
class Binder {
 public:
  explicit Binder(FactorMap& map, std::string_view blocked)
      : map_(map), blocked_(blocked) {}

  Result<Operand> bind(const Term& term, const TensorMeta& meta) {
    const auto rank = static_cast<std::size_t>(meta.rank());
    const bool has_leading =
        std::count(term.dims.begin(), term.dims.end(), "...") > 0;
    // An added term broadcasts: it may lack its leading dims.
    const std::size_t dropped =
        term.is_added && rank < term.dims.size() ? term.dims.size() - rank : 0;
    const auto named =
        static_cast<int>(term.dims.size() - dropped) - (has_leading ? 1 : 0);
    const int leading = meta.rank() - named;
    if (leading < 0 || (leading > 0 && !has_leading)) {
      return fail(ErrorCode::kNoStrategy,
                  to_string(meta) +
                      " does not have the rank that the rule of "
                      "its operator states");
    }
    Operand operand;
    int dim = 0;
    for (std::size_t at = dropped; at < term.dims.size(); ++at) {
      const std::string& letters = term.dims[at];
      if (letters == "...") {
        for (int i = 0; i < leading; ++i) {
          operand.dims.push_back(bind_leading(leading - i, meta.size(dim++)));
        }
      } else {
        SP_ASSIGN(DimFactors factors, bind_dim(letters, meta.size(dim)));
        operand.dims.push_back(std::move(factors));
        ++dim;
      }
    }
    return operand;
  }

 private:
  // Leading dims are aligned on the right, as in broadcasting.
  DimFactors bind_leading(int from_right, std::int64_t size) {
    if (size == 1) return {};
    const auto [it, added] = leading_.try_emplace(from_right, 0);
    if (added) it->second = map_.add_factor(size, '.');
    return {static_cast<std::int8_t>(it->second)};
  }

  Result<DimFactors> bind_dim(const std::string& letters, std::int64_t size) {
    // Of a dim of several letters, at most one may be unknown so far.
    std::int64_t known = 1;
    char unknown = 0;
    for (const char letter : letters) {
      const auto it = letters_.find(letter);
      if (it != letters_.end()) {
        known *= sizes_[letter];
      } else {
        unknown = letter;
      }
    }
    if (unknown != 0) {
      const std::int64_t rest = known == 0 ? 0 : size / known;
      sizes_[unknown] = rest;
      letters_[unknown] = -1;
      if (rest != 1) {
        const int factor = map_.add_factor(rest, unknown);
        letters_[unknown] = factor;
        if (blocked_.find(unknown) != std::string_view::npos) {
          map_.factors[static_cast<std::size_t>(factor)].blocked =
              "the operator runs over it";
        }
      }
      known *= rest;
    }
    DimFactors factors;
    if (known != size) {
      // Broadcast along it, or not what the notation says.
      if (size == 1) return factors;
      return fail(ErrorCode::kNoStrategy,
                  "a dim of size " + std::to_string(size) +
                      " does not match the " + std::to_string(known) +
                      " that other operands of the operator have");
    }
    for (const char letter : letters) {
      if (letters_[letter] >= 0) {
        factors.push_back(static_cast<std::int8_t>(letters_[letter]));
      }
    }
    return factors;
  }

  FactorMap& map_;
  std::string_view blocked_;
  std::map<char, int> letters_;
  std::map<char, std::int64_t> sizes_;
  std::map<int, int> leading_;
};

int binding_place(const Term& term) {
  if (term.is_added) return 2;
  return std::all_of(term.dims.begin(), term.dims.end(),
                     [](const std::string& dim) {
                       return dim.size() == 1 || dim == "...";
                     })
             ? 0
             : 1;
}

Result<FactorMap> instantiate(const Notation& notation, const OpSchema& op) {
  FactorMap map;
  Binder binder(map, notation.blocked);
  std::vector<bool> added;

  std::vector<const Term*> terms;
  std::size_t declared = 0;
  const auto& arguments = op.function->arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].is_tensor()) continue;
    if (declared == notation.inputs.size()) break;
    const Term& term = notation.inputs[declared++];
    const auto* tensor = std::get_if<TensorArg>(&op.args[i]);
    if (tensor == nullptr || tensor->operand == TensorArg::kNone) continue;
    terms.push_back(&term);
    added.push_back(term.is_added);
  }
  if (terms.size() != op.inputs.size() ||
      notation.outputs.size() < op.outputs.size()) {
    return fail(ErrorCode::kNoStrategy,
                op.name() + " has other operands than its rule states");
  }
  map.inputs.resize(terms.size());
  std::vector<std::size_t> order(terms.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  // Single letters first, so that dims of several letters find their sizes;
  // added terms last, since a dim of 1 in them says nothing of its letter.
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) {
                     return binding_place(*terms[a]) < binding_place(*terms[b]);
                   });
  for (const std::size_t i : order) {
    SP_ASSIGN(map.inputs[i], binder.bind(*terms[i], op.inputs[i]));
  }
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    SP_ASSIGN(Operand output, binder.bind(notation.outputs[i], op.outputs[i]));
    map.outputs.push_back(std::move(output));
  }

  map.seal();
  const Placement sum = Placement::partial(ReduceOp::kSum);
  for (std::size_t f = 0; f < map.factors.size(); ++f) {
    bool summed = true;
    for (std::size_t o = 0; o < map.outputs.size(); ++o) {
      if (map.outputs[o].holds(static_cast<int>(f))) {
        summed = false;
      } else {
        map.outputs_without[o][f] = sum;
      }
    }
    // A term beside the product must not be counted once per rank.
    for (std::size_t i = 0; summed && i < map.inputs.size(); ++i) {
      if (added[i] && !map.inputs[i].holds(static_cast<int>(f))) {
        map.inputs_without[i][f] = sum;
      }
    }
  }

  for (const ReduceOp kind : {ReduceOp::kSum, ReduceOp::kAvg}) {
    for (std::size_t i = 0; i < map.inputs.size(); ++i) {
      if (added[i]) continue;
      Carry carry;
      carry.inputs.resize(map.inputs.size());
      carry.inputs[i] = Placement::partial(kind);
      for (std::size_t j = 0; j < map.inputs.size(); ++j) {
        if (added[j] && kind == ReduceOp::kSum) carry.inputs[j] = sum;
      }
      carry.outputs.assign(map.outputs.size(), Placement::partial(kind));
      bool defined = true;
      for (const TensorMeta& meta : op.outputs) {
        defined = defined && is_defined(kind, meta.dtype());
      }
      if (defined) map.carries.push_back(std::move(carry));
    }
  }
  map.flops_per_point = 2;
  return map;
}

}  // namespace

ShardingRule einsum(std::string_view text) {
  auto notation = std::make_shared<const Notation>(parse_notation(text));
  return ShardingRule(std::string(text), [notation](const OpSchema& op) {
    return instantiate(*notation, op);
  });
}

}  // namespace shardprop
