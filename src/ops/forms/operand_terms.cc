// Pairs the operands of a call with the terms of a notation, and chooses among
// alternatives.

#include "ops/forms/bound_notation.h"
#include "ops/rules/conditions.h"
#include "ops/rules/rule_words.h"

#include <utility>
#include <variant>

namespace shardprop {
namespace {

using OperandDimKind = TermDim::Kind;

bool is_applicable(const Notation& notation, const OpCall& call) {
  const OpSchema& op = call.op();
  if (!hold(notation.conditions, op)) return false;
  const std::vector<const Term*> terms = operand_terms(notation, op);
  if (terms.size() != op.inputs.size()) return false;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (!has_rank(*terms[i], op.inputs[i].rank())) return false;
  }
  return true;
}

}  // namespace

bool is_of_call(const StatedSize& size) {
  return size.kind == StatedSize::Kind::kNumber ||
         size.kind == StatedSize::Kind::kArgument;
}

std::int64_t stated_size(const StatedSize& size, const OpCall& call) {
  if (size.kind == StatedSize::Kind::kNumber) return size.number;
  if (size.kind == StatedSize::Kind::kWord) {
    const SizeOf* word = rule_words().find_size(size.argument);
    require(word != nullptr, "a size of the result is unknown");
    return (*word)(call, size.name);
  }
  if (!call.has(size.argument)) {
    call_error("the operator has no argument `" + size.argument + "`");
  }
  std::int64_t stated = 0;
  if (size.element < 0) {
    stated = call.integer(size.argument);
  } else {
    const std::vector<std::int64_t> list = call.integers(size.argument);
    require(std::cmp_less(size.element, list.size()),
            "a list of sizes is shorter than the rule expects");
    stated = list[index(size.element)];
  }
  require(stated >= 0, "a size of the result is negative");
  return stated;
}

TermRank rank_of(const Term& term) {
  TermRank rank{static_cast<int>(term.dims.size()), false};
  for (const TermDim& dim : term.dims) {
    if (dim.kind != OperandDimKind::kLeading) continue;
    rank.has_leading = true;
    --rank.least;
  }
  return rank;
}

bool has_rank(const Term& term, int rank) {
  if (term.is_replicated) return true;
  const TermRank own = rank_of(term);
  // An added term broadcasts, so it may lack its first dims.
  const bool is_enough = rank >= own.least || term.is_added;
  return is_enough && (rank <= own.least || own.has_leading);
}

namespace {

// The arguments of an undeclared operator are those of one call, so that an absent
// tensor looks like any other None: the terms after it could be of the wrong
// operands.
void require_declared_terms(const OpSchema& op, std::size_t tensor) {
  if (!op.function->has_tag("undeclared")) return;
  const auto& arguments = op.function->arguments();
  for (std::size_t i = 0; i < tensor; ++i) {
    if (!std::holds_alternative<NoneArg>(op.args[i])) continue;
    call_error("`" + arguments[i].name +
               "` is None, and may be a tensor that has a term: the rule needs "
               "the declaration of the operator, such as `mylib::f(Tensor x, "
               "Tensor? y, Tensor z) -> Tensor=bd,d,bd->bd`");
  }
}

}  // namespace

std::vector<const Term*> operand_terms(const Notation& notation,
                                       const OpSchema& op) {
  std::vector<const Term*> terms;
  terms.reserve(op.inputs.size());
  std::size_t next = 0;
  const auto& declared = op.function->arguments();
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].type != ArgumentType::kTensor) continue;
    if (next == notation.inputs.size()) break;
    require_declared_terms(op, i);
    const Term* term = &notation.inputs[next++];
    if (const auto* lone = std::get_if<TensorArg>(&op.args[i])) {
      if (lone->operand != TensorArg::kNone) terms.push_back(term);
      continue;
    }
    const auto* list = std::get_if<std::vector<TensorArg>>(&op.args[i]);
    if (list == nullptr) continue;
    for (std::size_t e = 0; e < list->size(); ++e) {
      if (e > 0 && !term->is_each) {
        if (next == notation.inputs.size()) return terms;
        term = &notation.inputs[next++];
      }
      if ((*list)[e].operand != TensorArg::kNone) terms.push_back(term);
    }
  }
  return terms;
}

const Notation& applicable(const std::vector<Notation>& alternatives,
                           const OpCall& call) {
  const Notation* last = nullptr;
  for (const Notation& one : alternatives) {
    if (!hold(one.conditions, call.op())) continue;
    if (is_applicable(one, call)) return one;
    last = &one;
  }
  if (last == nullptr) {
    call_not_stated("the rule has no alternative for these arguments");
  }
  // The error for it names the operand of another rank.
  return *last;
}

}  // namespace shardprop
