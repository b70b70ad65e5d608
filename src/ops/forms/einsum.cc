// This file parses sharding rules in factor notation and applies them to calls.
// A rule has one term per tensor operand and a letter per factor.

#include "ops/forms/forms.h"

#include "base/quantities.h"
#include "ops/contraction_order.h"
#include "ops/forms/shared_form.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

namespace shardprop {
namespace {

constexpr std::string_view kLeading = "...";

struct Term {
  std::vector<std::string> dims;  // letters of each dim; "..." for leading dims
  bool is_added = false;
};

struct Notation {
  std::vector<Term> inputs;
  std::vector<Term> outputs;
  std::string blocked;
};

[[noreturn]] void bad_notation(std::string_view text) {
  throw InternalError("not factor notation: " + std::string(text));
}

Term parse_term(std::string_view text, std::string& blocked) {
  Term term;
  bool grouped = false;
  bool bracketed = false;
  std::string group;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '+' && i == 0) {
      term.is_added = true;
    } else if (c == '(' && !grouped) {
      grouped = true;
      group.clear();
    } else if (c == ')' && grouped) {
      grouped = false;
      term.dims.push_back(group);
    } else if (c == '[' && !bracketed) {
      bracketed = true;
    } else if (c == ']' && bracketed) {
      bracketed = false;
    } else if (text.substr(i, 3) == kLeading && !grouped) {
      term.dims.emplace_back(kLeading);
      i += 2;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      if (bracketed) blocked += c;
      if (grouped) {
        group += c;
      } else {
        term.dims.emplace_back(1, c);
      }
    } else {
      bad_notation(text);
    }
  }
  if (grouped || bracketed) bad_notation(text);
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
  if (arrow == std::string_view::npos) bad_notation(text);
  Notation notation;
  notation.inputs = parse_terms(text.substr(0, arrow), notation.blocked);
  notation.outputs = parse_terms(text.substr(arrow + 2), notation.blocked);
  return notation;
}

// `Binder` binds letters and leading dims to factors while it reads the
// operands.
class Binder {
 public:
  Binder(SpaceBuilder& builder, std::string_view blocked)
      : b_(builder), blocked_(blocked) {}

  Operand input(const Term& term, const TensorMeta& meta) {
    const auto rank = static_cast<std::size_t>(meta.rank());
    const bool has_leading =
        std::count(term.dims.begin(), term.dims.end(), kLeading) > 0;
    // An added term broadcasts, so it may lack its leading dims.
    const std::size_t dropped =
        term.is_added && rank < term.dims.size() ? term.dims.size() - rank : 0;
    const auto named =
        static_cast<int>(term.dims.size() - dropped) - (has_leading ? 1 : 0);
    const int leading = meta.rank() - named;
    if (leading < 0 || (leading > 0 && !has_leading)) {
      call_error(to_string(meta) + " does not have " +
                 (has_leading ? std::to_string(named) + " or more dims"
                              : counted(std::int64_t{named}, "dim")));
    }
    Operand operand;
    int dim = 0;
    for (std::size_t at = dropped; at < term.dims.size(); ++at) {
      const std::string& letters = term.dims[at];
      if (letters == kLeading) {
        for (int i = 0; i < leading; ++i) {
          operand.dims.push_back(
              bind_leading(leading - i, size_of(meta, dim++)));
        }
      } else {
        operand.dims.push_back(
            bind_dim(letters, size_of(meta, dim++), term.is_added));
      }
    }
    require(dim == meta.rank(), "a term has another rank than its operand");
    return operand;
  }

  // Precondition: every letter is bound.
  Operand output(const Term& term) const {
    Operand operand;
    for (const std::string& letters : term.dims) {
      if (letters == kLeading) {
        for (auto it = leading_.rbegin(); it != leading_.rend(); ++it) {
          operand.dims.push_back(it->second);
        }
        continue;
      }
      DimFactors factors;
      for (const char letter : letters) append(factors, letter);
      operand.dims.push_back(std::move(factors));
    }
    return operand;
  }

 private:
  static std::int64_t size_of(const TensorMeta& meta, int dim) {
    require(dim < meta.rank(), "a term has another rank than its operand");
    return meta.size(dim);
  }

  void append(DimFactors& factors, char letter) const {
    const auto found = letters_.find(letter);
    if (found == letters_.end()) call_error("a size of the result is unknown");
    for (const FactorId id : found->second) factors.push_back(id);
  }

  // Leading dims are aligned on the right, as in broadcasting.
  DimFactors bind_leading(int from_right, std::int64_t size) {
    DimFactors& known = leading_[from_right];
    if (size == 1) return {};
    if (known.empty()) known = b_.dim(size, '.');
    require(b_.space.size(known) == size, "leading dims do not broadcast");
    return known;
  }

  DimFactors bind_dim(const std::string& letters, std::int64_t size,
                      bool may_broadcast) {
    // At most one letter of a dim of several letters may still be unbound.
    std::int64_t known = 1;
    char unknown = 0;
    for (const char letter : letters) {
      const auto it = letters_.find(letter);
      if (it != letters_.end()) {
        known = multiply_sizes(known, b_.space.size(it->second));
      } else if (unknown == 0) {
        unknown = letter;
      } else {
        call_error(std::string("the sizes of `") + unknown + "` and `" +
                   letter + "`, which make one dim, are unknown");
      }
    }
    if (unknown != 0) {
      const std::int64_t rest = known == 0 ? 0 : size / known;
      DimFactors factors = b_.dim(rest, unknown);
      if (blocked_.find(unknown) != std::string_view::npos) {
        b_.block(factors, "the operator runs over it");
      }
      letters_[unknown] = factors;
      known *= rest;
    }
    if (known != size) {
      if (may_broadcast && size == 1) return {};
      call_error("a dim of size " + std::to_string(size) +
                 " does not match the " + std::to_string(known) +
                 " that other operands have");
    }
    DimFactors factors;
    for (const char letter : letters) append(factors, letter);
    return factors;
  }

  SpaceBuilder& b_;
  std::string_view blocked_;
  std::map<char, DimFactors> letters_;
  std::map<int, DimFactors> leading_;  // by index from the right
};

// Single letters are bound first, so that dims of several letters find their
// sizes. Added terms are bound last, because their dim of 1 does not determine
// its letter.
int binding_place(const Term& term) {
  if (term.is_added) return 2;
  return std::all_of(term.dims.begin(), term.dims.end(),
                     [](const std::string& dim) {
                       return dim.size() == 1 || dim == kLeading;
                     })
             ? 0
             : 1;
}

// Returns the terms of the tensor arguments that are given, by operand.
std::vector<const Term*> terms_of(const Notation& notation,
                                  const OpSchema& op) {
  std::vector<const Term*> terms;
  std::size_t declared = 0;
  const auto& arguments = op.function->arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].type != ArgumentType::kTensor) continue;
    if (declared == notation.inputs.size()) break;
    const Term& term = notation.inputs[declared++];
    if (const auto* list = std::get_if<std::vector<TensorArg>>(&op.args[i])) {
      // The other elements have terms of their own.
      for (std::size_t e = 0; e < list->size(); ++e) {
        require(declared + e <= notation.inputs.size(),
                "there are more operands than terms");
        terms.push_back(&notation.inputs[declared - 1 + e]);
      }
      declared += list->empty() ? 0 : list->size() - 1;
      continue;
    }
    const auto* tensor = std::get_if<TensorArg>(&op.args[i]);
    if (tensor == nullptr || tensor->operand == TensorArg::kNone) continue;
    terms.push_back(&term);
  }
  require(terms.size() == op.inputs.size(),
          "a tensor stands where a number should");
  return terms;
}

// Three or more operands are multiplied two at a time. This takes fewer points
// than the product of all factor sizes.
void share_out_products(IndexSpace& space) {
  std::vector<double> sizes;
  double points = 1;
  for (const Factor& factor : space.factors) {
    sizes.push_back(static_cast<double>(factor.size));
    points *= sizes.back();
  }
  if (summed_inputs(space, space.outputs[0]).size() <= 2 || points == 0) return;
  space.flops_per_point *= least_products(space, sizes) / points;
}

BoundForm bind(const Notation& notation, const OpCall& call) {
  const OpSchema& op = call.op();
  SpaceBuilder b;
  Binder binder(b, notation.blocked);
  const std::vector<const Term*> terms = terms_of(notation, op);
  b.space.inputs.resize(terms.size());
  std::vector<std::size_t> order(terms.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t i, std::size_t j) {
                     return binding_place(*terms[i]) < binding_place(*terms[j]);
                   });
  for (const std::size_t i : order) {
    b.space.inputs[i] =
        at_operand(i, [&] { return binder.input(*terms[i], op.inputs[i]); });
  }
  for (const Term& term : notation.outputs) b.output(binder.output(term));

  IndexSpace& space = b.space;
  space.seal();
  const Without sum = Without::partial(ReduceOp::kSum);
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    bool summed = true;
    for (std::size_t o = 0; o < space.outputs.size(); ++o) {
      if (space.outputs[o].holds(static_cast<int>(f))) {
        summed = false;
      } else {
        space.outputs_without[o][f] = sum;
      }
    }
    // An added term must not be counted once per rank.
    for (std::size_t i = 0; summed && i < space.inputs.size(); ++i) {
      if (terms[i]->is_added && !space.inputs[i].holds(static_cast<int>(f))) {
        space.inputs_without[i][f] = sum;
      }
    }
  }
  space.product = ProductKind::kPlain;
  space.flops_per_point = 2;
  share_out_products(space);
  return b.bound();
}

// A product is linear in each operand. A partial sum requires added terms that
// are partial sums too. A partial average allows added terms that are partial
// averages or replicated.
void product_linearities(const Notation& notation, const OpCall& call,
                         IndexSpace& space) {
  const std::vector<const Term*> terms = terms_of(notation, call.op());
  const bool any_added =
      std::any_of(terms.begin(), terms.end(),
                  [](const Term* term) { return term->is_added; });
  const auto add = [&](std::size_t factor, ReduceOp kind, bool with_added) {
    std::vector<std::optional<ReduceOp>> inputs(space.inputs.size());
    inputs[factor] = kind;
    for (std::size_t j = 0; with_added && j < inputs.size(); ++j) {
      if (terms[j]->is_added) inputs[j] = kind;
    }
    add_linearity(
        call, space, std::move(inputs),
        std::vector<std::optional<ReduceOp>>(space.outputs.size(), kind));
  };
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (!terms[i]->is_added) add(i, ReduceOp::kSum, true);
  }
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (terms[i]->is_added) continue;
    add(i, ReduceOp::kAvg, false);
    if (any_added) add(i, ReduceOp::kAvg, true);
  }
}

}  // namespace

OpDefinition einsum(std::string_view text) {
  const auto notation = std::make_shared<const Notation>(parse_notation(text));
  return shared_form(
             std::string(text),
             [notation](const OpCall& call) { return bind(*notation, call); })
      .refine("", [notation](const OpCall& call, IndexSpace& space) {
        product_linearities(*notation, call, space);
      });
}

OpDefinition einsum(std::string name,
                    std::function<std::string(const OpCall&)> notation) {
  return shared_form(std::move(name),
                     [notation](const OpCall& call) {
                       return bind(parse_notation(notation(call)), call);
                     })
      .refine("", [notation](const OpCall& call, IndexSpace& space) {
        product_linearities(parse_notation(notation(call)), call, space);
      });
}

}  // namespace shardprop
