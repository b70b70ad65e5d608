#include "ops/forms/mapped.h"

#include "ops/forms/shared_form.h"
#include "ops/forms/space_builder.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

struct TermDim {
  char letter;  // '.' for leading dims
  bool whole;
};
struct MappedTerm {
  std::vector<TermDim> dims;
  bool any = false;        // `*`
  bool always = false;     // `!`
  bool by_column = false;  // `^`
  bool exchanged = false;  // `~`
  bool absent = false;     // `-`
};

std::vector<MappedTerm> terms_in(std::string_view text) {
  std::vector<MappedTerm> terms(1);
  bool whole = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    MappedTerm& term = terms.back();
    const char c = text[i];
    if (c == ',') {
      terms.emplace_back();
    } else if (c == '[' || c == ']') {
      whole = c == '[';
    } else if (c == '*') {
      term.any = true;
    } else if (c == '!') {
      term.always = true;
    } else if (c == '^') {
      term.by_column = true;
    } else if (c == '~') {
      term.exchanged = true;
    } else if (c == '-') {
      term.absent = true;
    } else if (text.substr(i, 3) == "...") {
      term.dims.push_back({'.', false});
      i += 2;
    } else if (c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      term.dims.push_back({c, whole || c == '_'});
    } else {
      throw InternalError("not a notation: " + std::string(text));
    }
  }
  return terms;
}

class Mapping {
 public:
  Mapping(const OpCall& call, const SizeOf& size) : call_(call), size_(size) {}

  BoundForm run(std::string_view notation) {
    const std::size_t arrow = notation.find("->");
    if (arrow == std::string_view::npos) {
      throw InternalError("not a notation: " + std::string(notation));
    }
    const auto inputs = terms_in(notation.substr(0, arrow));
    const auto given = operands(inputs);
    for (std::size_t i = 0; i < given.size(); ++i) {
      const auto& [term, meta] = given[i];
      b_.input(at_operand(
          i, [&, &term = term, &meta = meta] { return input(*term, *meta); }));
    }
    const auto& declared = call_.op().function->returns();
    const auto terms = terms_in(notation.substr(arrow + 2));
    const std::vector<bool> wanted =
        call_.has("output_mask") ? call_.mask("output_mask", declared.size())
                                 : std::vector<bool>(declared.size(), true);
    for (std::size_t i = 0; i < terms.size() && i < declared.size(); ++i) {
      if (!terms[i].absent && (wanted[i] || terms[i].always)) {
        output(terms[i]);
      } else {
        b_.not_produced();
      }
    }
    for (const std::size_t output : empty_) b_.has_nothing(output);
    return b_.bound();
  }

 private:
  std::vector<std::pair<const MappedTerm*, const TensorMeta*>> operands(
      const std::vector<MappedTerm>& terms) const {
    std::vector<std::pair<const MappedTerm*, const TensorMeta*>> out;
    const OpSchema& op = call_.op();
    const auto& declared = op.function->arguments();
    std::size_t next = 0;
    for (std::size_t i = 0; i < declared.size(); ++i) {
      if (declared[i].type != ArgumentType::kTensor) continue;
      if (next == terms.size()) break;
      const MappedTerm* term = &terms[next++];
      const auto add = [&](const TensorArg& tensor) {
        if (tensor.operand == TensorArg::kNone) return;
        out.emplace_back(term, &op.inputs[index(tensor.operand)]);
      };
      if (const auto* lone = std::get_if<TensorArg>(&op.args[i])) add(*lone);
      if (const auto* list = std::get_if<std::vector<TensorArg>>(&op.args[i])) {
        for (const TensorArg& tensor : *list) add(tensor);
      }
    }
    require(out.size() == op.inputs.size(),
            "a tensor stands where a number should");
    return out;
  }

  Operand input(const MappedTerm& term, const TensorMeta& meta) {
    if (term.any) return SpaceBuilder::whole(meta.rank());
    int leading = meta.rank() - static_cast<int>(term.dims.size());
    bool has_leading = false;
    for (const TermDim& dim : term.dims) has_leading |= dim.letter == '.';
    leading += has_leading ? 1 : 0;
    require(leading >= 0 && (has_leading || leading == 0),
            "an operand has another rank");
    Operand out;
    int at = 0;
    for (const TermDim& dim : term.dims) {
      if (dim.letter == '.') {
        for (int i = leading; i > 0; --i) {
          out.dims.push_back(leading_dim(i, size_of(meta, at++)));
        }
      } else {
        out.dims.push_back(lettered(dim, size_of(meta, at++)));
      }
    }
    require(at == meta.rank(), "an operand has another rank");
    return out;
  }

  static std::int64_t size_of(const TensorMeta& meta, int dim) {
    require(dim < meta.rank(), "an operand has another rank");
    return meta.size(dim);
  }

  DimFactors leading_dim(int from_right, std::int64_t size) {
    auto& [known, factors] =
        leading_.try_emplace(from_right, 1, DimFactors{}).first->second;
    if (size == 1) return {};
    if (known == 1) {
      known = size;
      factors = b_.dim(size, '.');
    }
    require(known == size, "leading dims do not broadcast");
    return factors;
  }

  DimFactors lettered(const TermDim& dim, std::int64_t size) {
    if (dim.letter == '_') return {};
    const auto [found, added] =
        letters_.try_emplace(dim.letter, size, DimFactors{});
    require(found->second.first == size, "dims of two operands differ in size");
    if (added && !dim.whole) found->second.second = b_.dim(size, dim.letter);
    return dim.whole ? DimFactors{} : found->second.second;
  }

  void output(const MappedTerm& term) {
    Operand operand;
    Dims shape;
    const auto add = [&](std::int64_t size, DimFactors factors) {
      shape.push_back(size);
      operand.dims.push_back(std::move(factors));
    };
    for (const TermDim& dim : term.dims) {
      if (dim.letter == '.') {
        for (auto it = leading_.rbegin(); it != leading_.rend(); ++it) {
          add(it->second.first, it->second.second);
        }
        continue;
      }
      const auto known = letters_.find(dim.letter);
      if (known == letters_.end()) {
        require(size_ != nullptr, "a size of the result is unknown");
        const std::int64_t size = size_(call_, dim.letter);
        require(size >= 0, "a size of the result is negative");
        if (size == 0) empty_.insert(b_.space.outputs.size());
        add(size, {});
      } else {
        add(known->second.first,
            dim.whole ? DimFactors{} : known->second.second);
      }
    }
    BoundResult result{.shape = shape};
    if (term.by_column) result.strides = by_column(shape);
    if (term.exchanged) result.strides = exchanged(std::move(shape));
    b_.output(std::move(operand), std::move(result));
  }

  static Dims by_column(const Dims& shape) {
    Dims strides = make_meta(shape, DType::kF32).strides();
    const std::size_t rank = shape.size();
    if (rank < 2) return strides;
    strides[rank - 2] = 1;
    strides[rank - 1] = std::max<std::int64_t>(shape[rank - 2], 1);
    return strides;
  }

  static Dims exchanged(Dims shape) {
    require(shape.size() >= 2, "a result of exchanged dims has fewer than two");
    std::swap(shape[0], shape[1]);
    Dims strides = make_meta(shape, DType::kF32).strides();
    std::swap(strides[0], strides[1]);
    return strides;
  }

  const OpCall& call_;
  const SizeOf& size_;
  SpaceBuilder b_;
  std::set<std::size_t> empty_;  // outputs without elements
  std::map<char, std::pair<std::int64_t, DimFactors>> letters_;
  std::map<int, std::pair<std::int64_t, DimFactors>>
      leading_;  // by index from the right
};

bool names(const std::vector<int>& dims, int dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

}  // namespace

char dim_letter(int dim, char last) {
  if (dim > last - 'a') {
    call_not_stated("a tensor has more dims than there are letters");
  }
  return static_cast<char>('a' + dim);
}

std::string letters_from(int first, int rank) {
  std::string term;
  for (int d = 0; d < rank; ++d) term += dim_letter(first + d);
  return term;
}

std::string dims_notation(int rank, const std::vector<int>& whole) {
  std::string text;
  for (int dim = 0; dim < rank; ++dim) {
    const char letter = dim_letter(dim);
    text += names(whole, dim) ? std::string{'[', letter, ']'}
                              : std::string(1, letter);
  }
  return text;
}

std::vector<std::string> broadcast_terms(
    const std::vector<const TensorMeta*>& operands,
    const std::vector<int>& whole) {
  Dims shape;
  for (const TensorMeta* operand : operands) {
    shape = broadcast(shape, operand->shape());
  }
  const int rank = static_cast<int>(shape.size());
  std::vector<std::string> terms;
  for (const TensorMeta* operand : operands) {
    std::string term;
    for (int dim = rank - operand->rank(); dim < rank; ++dim) {
      const bool repeats =
          operand->size(dim - rank + operand->rank()) != shape[index(dim)];
      if (repeats) {
        term += '_';
      } else if (names(whole, dim)) {
        term += std::string{'[', dim_letter(dim), ']'};
      } else {
        term += dim_letter(dim);
      }
    }
    terms.push_back(std::move(term));
  }
  return terms;
}

OpDefinition mapped(std::string_view notation, SizeOf size) {
  return shared_form(
      std::string(notation),
      [text = std::string(notation), size = std::move(size)](
          const OpCall& call) { return Mapping(call, size).run(text); });
}

OpDefinition mapped(std::string name,
                    std::function<std::string(const OpCall&)> notation,
                    SizeOf size) {
  return shared_form(std::move(name),
                     [notation = std::move(notation),
                      size = std::move(size)](const OpCall& call) {
                       return Mapping(call, size).run(notation(call));
                     });
}

void adds_up(IndexSpace& space, ReduceOp op) {
  space.seal();
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    for (std::size_t o = 0; o < space.outputs.size(); ++o) {
      if (space.outputs[o].holds(static_cast<int>(f))) continue;
      space.outputs_without[o][f] = Without::partial(op);
      space.factors[f].least = 1;
    }
  }
}

std::function<void(const OpCall&, IndexSpace&)> alike_but_along(char letter) {
  return [letter](const OpCall&, IndexSpace& space) {
    space.seal();
    for (std::size_t f = 0; f < space.factors.size(); ++f) {
      if (space.factors[f].letter != letter) continue;
      for (auto& without : space.outputs_without) without[f] = Without::same();
    }
  };
}

}  // namespace shardprop
