#include "ops/forms/bound_notation.h"

#include "base/quantities.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace shardprop {
namespace {

using DimKind = TermDim::Kind;

// Returns the strides of a result whose dims `a` and `b` are swapped in memory.
Dims swapped_strides(const Dims& shape, std::size_t a, std::size_t b) {
  Dims swapped = shape;
  std::swap(swapped[a], swapped[b]);
  Dims strides = make_meta(std::move(swapped), DType::kF32).strides();
  std::swap(strides[a], strides[b]);
  return strides;
}

// LAPACK's matrices: elements of a column are adjacent.
Dims column_major_strides(const Dims& shape) {
  Dims strides = make_meta(shape, DType::kF32).strides();
  const std::size_t rank = shape.size();
  if (rank < 2) return strides;
  strides[rank - 2] = 1;
  strides[rank - 1] = std::max<std::int64_t>(shape[rank - 2], 1);
  return strides;
}

// `NotationBinder` binds names and leading dims to factors while it reads the
// operands.
class NotationBinder {
 public:
  NotationBinder(const Notation& notation, const OpCall& call,
                 const SizeOf& size)
      : notation_(notation), call_(call), size_(size) {
    for (const auto* terms : {&notation.inputs, &notation.outputs}) {
      for (const Term& term : *terms) {
        for (const TermDim& dim : term.dims) {
          for (const NamedFactor& factor : dim.factors) {
            if (factor.use == DimUse::kBlocked) blocked_.push_back(factor.name);
          }
        }
      }
    }
  }

  BoundForm run() {
    const OpSchema& op = call_.op();
    const std::vector<const Term*> terms = operand_terms(notation_, op);
    require(terms.size() == op.inputs.size(),
            "a tensor stands where a number should");
    b_.space.inputs.resize(terms.size());
    // Terms of one factor per dim are bound first, so that dims of several
    // factors find their sizes. Added terms are bound last, because their dim
    // of 1 does not determine its factor.
    for (const int turn : {0, 1, 2}) {
      for (std::size_t i = 0; i < terms.size(); ++i) {
        if (turn_of(*terms[i]) != turn) continue;
        b_.space.inputs[i] =
            at_operand(i, [&] { return input(*terms[i], op.inputs[i]); });
      }
    }
    outputs();
    for (const std::size_t output : empty_) b_.has_nothing(output);
    return b_.bound();
  }

 private:
  struct Known {
    FactorName name;
    std::int64_t size;
    // The factors; nullopt if the name is only a size so far.
    std::optional<DimFactors> factors;
  };
  struct Leading {
    std::uint8_t group;
    int from_right;
    std::int64_t size;
    DimFactors factors;
  };

  static int turn_of(const Term& term) {
    if (term.is_added) return 2;
    return std::any_of(
        term.dims.begin(), term.dims.end(),
        [](const TermDim& dim) { return dim.factors.size() > 1; });
  }

  Operand input(const Term& term, const TensorMeta& meta) {
    if (term.is_replicated) return SpaceBuilder::whole(meta.rank());
    const auto rank = static_cast<std::size_t>(meta.rank());
    const TermRank own = rank_of(term);
    if (!has_rank(term, meta.rank())) {
      call_error(to_string(meta) + " does not have " +
                 (own.has_leading ? std::to_string(own.least) + " or more dims"
                                  : counted(std::int64_t{own.least}, "dim")));
    }
    const std::size_t dropped =
        term.is_added && rank < term.dims.size() ? term.dims.size() - rank : 0;
    const int leading = meta.rank() - (own.least - static_cast<int>(dropped));
    Operand operand;
    operand.dims.reserve(rank);
    int dim = 0;
    for (std::size_t at = dropped; at < term.dims.size(); ++at) {
      const TermDim& made = term.dims[at];
      if (made.kind == DimKind::kLeading) {
        for (int i = leading; i > 0; --i) {
          operand.dims.push_back(
              bind_leading(made.group, i, size_of(meta, dim++)));
        }
        continue;
      }
      operand.dims.push_back(
          bind_dim(made, size_of(meta, dim++), term.is_added));
    }
    require(dim == meta.rank(), "a term has another rank than its operand");
    return operand;
  }

  static std::int64_t size_of(const TensorMeta& meta, int dim) {
    require(dim < meta.rank(), "a term has another rank than its operand");
    return meta.size(dim);
  }

  DimFactors bind_leading(std::uint8_t group, int from_right,
                          std::int64_t size) {
    auto known =
        std::find_if(leading_.begin(), leading_.end(), [&](const Leading& dim) {
          return dim.group == group && dim.from_right == from_right;
        });
    if (known == leading_.end()) {
      leading_.push_back(Leading{group, from_right, 1, {}});
      known = leading_.end() - 1;
    }
    if (size == 1) return {};
    if (known->size == 1) {
      known->size = size;
      known->factors = b_.dim(size, '.');
    }
    require(known->size == size, "leading dims do not broadcast");
    return known->factors;
  }

  Known* find(const FactorName& name) {
    for (Known& known : known_) {
      if (known.name == name) return &known;
    }
    return nullptr;
  }

  bool is_blocked(const FactorName& name) const {
    return std::find(blocked_.begin(), blocked_.end(), name) != blocked_.end();
  }

  // Adds the factors of a name, with the size that the notation may state.
  Known& learn(const FactorName& name, std::int64_t size, bool is_full) {
    for (const StatedSize& stated : notation_.sizes) {
      if (stated.name != name || !is_of_call(stated)) continue;
      check_size(size, stated_size(stated, call_));
    }
    Known& known = known_.emplace_back(Known{name, size, std::nullopt});
    if (!is_full) make_factors(known);
    return known;
  }

  void make_factors(Known& known) {
    known.factors = b_.dim(known.size, known.name.letter());
    if (is_blocked(known.name)) {
      b_.block(*known.factors, "the operator runs over it");
    }
  }

  static void check_size(std::int64_t size, std::int64_t known) {
    if (size == known) return;
    call_error("a dim of size " + std::to_string(size) +
               " does not match the " + std::to_string(known) +
               " that other operands have");
  }

  DimFactors bind_dim(const TermDim& dim, std::int64_t size,
                      bool may_broadcast) {
    if (dim.kind == DimKind::kAny) return {};
    if (dim.factors.size() > 1) return bind_compound(dim, size, may_broadcast);
    const auto& [name, use] = dim.factors[0];
    const bool is_full = use == DimUse::kFull;
    Known* known = find(name);
    if (known == nullptr) known = &learn(name, size, is_full);
    if (known->size != size) {
      if (may_broadcast && size == 1) return {};
      check_size(size, known->size);
    }
    if (is_full) return {};
    if (!known->factors) make_factors(*known);
    return *known->factors;
  }

  // At most one factor of the dim may still have an unknown size.
  DimFactors bind_compound(const TermDim& dim, std::int64_t size,
                           bool may_broadcast) {
    std::int64_t product = 1;
    const NamedFactor* unknown = nullptr;
    for (const NamedFactor& factor : dim.factors) {
      if (const auto known = size_of_part(factor.name)) {
        product = multiply_sizes(product, *known);
      } else if (unknown == nullptr) {
        unknown = &factor;
      } else {
        call_error("the sizes of `" + std::string(unknown->name.text()) +
                   "` and `" + std::string(factor.name.text()) +
                   "`, which make one dim, are unknown");
      }
    }
    if (unknown != nullptr) {
      const std::int64_t rest = product == 0 ? 0 : size / product;
      learn(unknown->name, rest, false);
      product *= rest;
    }
    if (product != size) {
      if (may_broadcast && size == 1) return {};
      check_size(size, product);
    }
    DimFactors factors;
    for (const NamedFactor& factor : dim.factors) append(factors, factor.name);
    return factors;
  }

  // Returns the size of a factor of a compound; nullopt if it is unknown yet.
  std::optional<std::int64_t> size_of_part(const FactorName& name) {
    if (Known* known = find(name)) {
      if (!known->factors) make_factors(*known);
      return known->size;
    }
    for (const StatedSize& stated : notation_.sizes) {
      if (stated.name == name && is_of_call(stated)) {
        return learn(name, stated_size(stated, call_), false).size;
      }
    }
    return std::nullopt;
  }

  void append(DimFactors& factors, const FactorName& name) {
    const Known* known = find(name);
    if (known == nullptr || !known->factors) {
      call_error("a size of the result is unknown");
    }
    for (const FactorId id : *known->factors) factors.push_back(id);
  }

  void outputs() {
    const OpSchema& op = call_.op();
    const auto& declared = op.function->returns();
    const bool has_list =
        std::any_of(declared.begin(), declared.end(),
                    [](const ArgumentSchema& one) { return one.is_list; });
    const std::vector<bool> wanted =
        call_.has("output_mask") ? call_.mask("output_mask", declared.size())
                                 : std::vector<bool>();
    for (std::size_t i = 0; i < notation_.outputs.size(); ++i) {
      if (i >= declared.size() && !has_list) return;
      const Term& term = notation_.outputs[i];
      const bool is_wanted = i >= wanted.size() || wanted[i];
      if (term.is_absent || !(is_wanted || term.is_always)) {
        b_.not_produced();
      } else {
        output(term, i);
      }
    }
  }

  void output(const Term& term, std::size_t result) {
    Operand operand;
    operand.dims.reserve(term.dims.size());
    Dims shape;
    const auto add = [&](std::int64_t size, DimFactors factors) {
      shape.push_back(size);
      operand.dims.push_back(std::move(factors));
    };
    for (const TermDim& dim : term.dims) {
      if (dim.kind == DimKind::kLeading) {
        output_leading(dim.group, add);
      } else if (dim.kind == DimKind::kAny) {
        add(1, {});
      } else if (is_full(dim)) {
        add(full_size(dim.factors[0].name, result, shape.size()), {});
      } else {
        DimFactors factors;
        for (const NamedFactor& factor : dim.factors) {
          append(factors, factor.name);
        }
        std::int64_t size = 1;
        for (const FactorId id : factors) {
          size = multiply_sizes(size, b_.space.factor(id).size);
        }
        add(size, std::move(factors));
      }
    }
    BoundResult bound{.shape = shape};
    if (term.order == ResultOrder::kColumnMajor) {
      bound.strides = column_major_strides(shape);
    } else if (term.order == ResultOrder::kSwapped) {
      require(shape.size() >= 2, "a result of swapped dims has fewer than two");
      bound.strides = swapped_strides(shape, 0, 1);
    }
    b_.output(std::move(operand), std::move(bound));
  }

  // Adds the leading dims, from the left.
  template <class Add>
  void output_leading(std::uint8_t group, const Add& add) const {
    int most = 0;
    for (const Leading& dim : leading_) {
      if (dim.group == group) most = std::max(most, dim.from_right);
    }
    for (int i = most; i > 0; --i) {
      for (const Leading& dim : leading_) {
        if (dim.group == group && dim.from_right == i) {
          add(dim.size, dim.factors);
        }
      }
    }
  }

  // Returns whether the dim has no factor, because its term says so or because
  // every operand has the full dim.
  bool is_full(const TermDim& dim) {
    if (dim.factors.size() != 1) return false;
    const Known* known = find(dim.factors[0].name);
    return dim.factors[0].use == DimUse::kFull ||
           (known != nullptr && !known->factors);
  }

  std::int64_t full_size(const FactorName& name, std::size_t result,
                         std::size_t dim) {
    if (const Known* known = find(name)) return known->size;
    const std::int64_t size = result_size(name, result, dim);
    require(size >= 0, "a size of the result is negative");
    if (size == 0) empty_.push_back(b_.space.outputs.size());
    return size;
  }

  std::int64_t result_size(const FactorName& name, std::size_t result,
                           std::size_t dim) {
    for (const StatedSize& stated : notation_.sizes) {
      if (stated.name != name) continue;
      if (stated.kind == StatedSize::Kind::kSmaller) {
        return std::min(known_size(stated.first), known_size(stated.second));
      }
      return stated.kind == StatedSize::Kind::kData
                 ? size_in_data(result, dim)
                 : stated_size(stated, call_);
    }
    require(size_ != nullptr, "a size of the result is unknown");
    return size_(call_, name);
  }

  std::int64_t known_size(const FactorName& name) {
    const Known* known = find(name);
    require(known != nullptr, "a size of the result is unknown");
    return known->size;
  }

  // Returns the size that the call states.
  std::int64_t size_in_data(std::size_t result, std::size_t dim) const {
    const OpSchema& op = call_.op();
    const bool is_stated =
        result < op.output_slots.size() &&
        op.output_slots[result] != OpSchema::kNotProduced &&
        std::cmp_less(
            dim, op.outputs[index(op.output_slots[result])].shape().size());
    if (!is_stated) {
      call_not_stated("the size of the result depends on the data");
    }
    return op.outputs[index(op.output_slots[result])].shape()[dim];
  }

  const Notation& notation_;
  const OpCall& call_;
  const SizeOf& size_;
  SpaceBuilder b_;
  std::vector<FactorName> blocked_;
  std::vector<Known> known_;
  std::vector<Leading> leading_;
  std::vector<std::size_t> empty_;  // outputs without elements
};

}  // namespace

BoundForm bind_notation(const Notation& notation, const OpCall& call,
                        const SizeOf& size) {
  return NotationBinder(notation, call, size).run();
}

}  // namespace shardprop
