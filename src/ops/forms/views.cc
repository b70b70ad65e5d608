// Views: dims are flattened and split, permuted, repeated.
//
// Two shapes of the same elements are factorized into common factors, like the
// digits of a mixed-radix number.

#include "ops/forms/forms.h"
#include "ops/forms/shared_form.h"
#include "ops/rules/rule_words.h"
#include "ops/space/view_strides.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace shardprop {
namespace {

// `ShapeFactorizer` walks both shapes from their major ends. `in_left` and
// `out_left` are the parts of the current dims that have no factor yet.
class ShapeFactorizer {
 public:
  ShapeFactorizer(SpaceBuilder& builder, const Dims& from, const Dims& to)
      : b_(builder), from_(from), to_(to) {
    input.dims.resize(from.size());
    output.dims.resize(to.size());
  }

  Operand input;
  Operand output;

  void run() {
    std::size_t i = 0;
    std::size_t o = 0;
    std::int64_t in_left = next(from_, i);
    std::int64_t out_left = next(to_, o);
    while (i < from_.size() && o < to_.size()) {
      const std::int64_t common = std::gcd(in_left, out_left);
      if (common == 1) {
        // Neither size is a divisor of the other. The rest of these dims has no
        // common factor, so it is blocked.
        skip_stretch(i, o, in_left, out_left);
        in_left = next(from_, i);
        out_left = next(to_, o);
        continue;
      }
      const FactorId factor = b_.factor(common);
      input.dims[i].push_back(factor);
      output.dims[o].push_back(factor);
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
  }

 private:
  // Moves to the next dim whose size is not 1.
  static std::int64_t next(const Dims& shape, std::size_t& dim) {
    while (dim < shape.size() && shape[dim] == 1) ++dim;
    return dim < shape.size() ? shape[dim] : 1;
  }

  void block(DimFactors& dim, std::int64_t size) {
    const FactorId id = b_.factor(size);
    b_.block({id},
             "the view splits it across sizes that do not divide each other");
    dim.push_back(id);
  }

  void skip_stretch(std::size_t& i, std::size_t& o, std::int64_t in_left,
                    std::int64_t out_left) {
    std::int64_t in_covered = in_left;
    std::int64_t out_covered = out_left;
    block(input.dims[i++], in_left);
    block(output.dims[o++], out_left);
    while (in_covered != out_covered) {
      if (in_covered < out_covered) {
        const std::int64_t size = next(from_, i);
        block(input.dims[i++], size);
        in_covered *= size;
      } else {
        const std::int64_t size = next(to_, o);
        block(output.dims[o++], size);
        out_covered *= size;
      }
    }
  }

  SpaceBuilder& b_;
  const Dims& from_;
  const Dims& to_;
};

BoundForm bind_reshaped(const OpCall& call, const ShapeOf& shape_of) {
  const TensorMeta& self = call.first();
  const Dims to = shape_of(call);
  SpaceBuilder b;
  // Other operands (view_as) have the shape of the result.
  const auto others = [&](const Operand& result) {
    for (std::size_t i = 1; i < call.op().inputs.size(); ++i) {
      b.input(result);
    }
  };
  // Null strides mean a copy, because the strides of self allow no view.
  const auto strides = view_strides(self, to);
  if (self.numel() == 0) {
    // A tensor without elements has no factors to match, and sharding it saves
    // nothing.
    b.input(SpaceBuilder::whole(self.rank()));
    others(SpaceBuilder::whole(static_cast<int>(to.size())));
    b.output(SpaceBuilder::whole(static_cast<int>(to.size())),
             {.shape = to, .strides = strides});
    return b.bound();
  }
  ShapeFactorizer walk(b, self.shape(), to);
  walk.run();
  b.input(std::move(walk.input));
  others(walk.output);
  b.output(std::move(walk.output), {.strides = strides});
  return b.bound();
}

BoundForm bind_permuted(const OpCall& call, const DimsOf& order_of) {
  const TensorMeta& self = call.first();
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  b.input(whole);
  Operand output;
  Dims strides;
  for (const int dim : order_of(call)) {
    output.dims.push_back(whole.dims[index(dim)]);
    strides.push_back(self.strides()[index(dim)]);
  }
  b.output(std::move(output), {.strides = std::move(strides)});
  return b.bound();
}

BoundForm bind_expanded(const OpCall& call, const std::string& argument) {
  const TensorMeta& self = call.first();
  std::vector<std::int64_t> sizes;
  if (argument == "other") {
    const Dims& other = call.tensor(argument).shape();
    sizes.assign(other.begin(), other.end());
  } else {
    sizes = call.integers(argument);
  }
  require(sizes.size() >= self.shape().size(), "fewer sizes than dims");
  const std::size_t added = sizes.size() - self.shape().size();
  Dims strides(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t old = i < added ? 1 : self.shape()[i - added];
    require(sizes[i] >= 0 || (sizes[i] == -1 && i >= added),
            "a new dim needs a size");
    if (sizes[i] == -1) sizes[i] = old;
    require(old == sizes[i] || old == 1, "only a dim of size 1 expands");
    if (i >= added && old == sizes[i]) strides[i] = self.strides()[i - added];
  }
  SpaceBuilder b;
  Operand whole = b.per_dim(dims_of(sizes));
  b.input(b.aligned(whole, self.shape()));
  for (std::size_t i = 1; i < call.op().inputs.size(); ++i) {
    b.input(whole);  // the tensor that gives the shape
  }
  b.output(std::move(whole), {.strides = std::move(strides)});
  return b.bound();
}

BoundForm bind_unsqueeze(const OpCall& call) {
  const TensorMeta& self = call.first();
  const int dim = call.dim("dim", self.rank() + 1);
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  b.input(whole);
  whole.dims.insert(whole.dims.begin() + dim, DimFactors{});
  Dims strides = self.strides();
  strides.insert(strides.begin() + dim,
                 dim < self.rank()
                     ? multiply_sizes(self.size(dim), strides[index(dim)])
                     : 1);
  b.output(std::move(whole), {.strides = std::move(strides)});
  return b.bound();
}

// Returns the dims that a squeeze may remove: the named ones, or all.
std::vector<int> squeezable(const OpCall& call) {
  const int rank = call.first().rank();
  if (call.has("dim")) {
    // An empty list names no dim, unlike in a reduction.
    return call.integers("dim").empty() ? std::vector<int>{}
                                        : call.dims("dim", rank);
  }
  std::vector<int> every(index(rank));
  std::iota(every.begin(), every.end(), 0);
  return every;
}

BoundForm bind_squeeze(const OpCall& call) {
  const TensorMeta& self = call.first();
  const std::vector<int> named = squeezable(call);
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  b.input(whole);
  Operand output;
  Dims strides;
  for (int dim = 0; dim < self.rank(); ++dim) {
    const bool is_named =
        std::find(named.begin(), named.end(), dim) != named.end();
    if (is_named && self.size(dim) == 1) continue;
    // A rank whose shard has size 1 must not squeeze this dim. So the program
    // names the dims to squeeze.
    for (const FactorId id : whole.dims[index(dim)]) {
      if (is_named) b.space.factor(id).program = ProgramUse::kWhenSharded;
    }
    output.dims.push_back(whole.dims[index(dim)]);
    strides.push_back(self.strides()[index(dim)]);
  }
  b.output(std::move(output), {.strides = std::move(strides)});
  return b.bound();
}

}  // namespace

Dims resolve_sizes(const TensorMeta& self,
                   std::span<const std::int64_t> sizes) {
  Dims out;
  std::int64_t known = 1;
  std::optional<std::size_t> open;
  for (const std::int64_t size : sizes) {
    if (size == -1) {
      require(!open, "two sizes are -1");
      open = out.size();
    } else {
      require(size >= 0, "a size is negative");
      known = multiply_sizes(known, size);
    }
    out.push_back(size);
  }
  if (open) {
    require(known > 0 && self.numel() % known == 0,
            "no size fits in the place of -1");
    out[*open] = self.numel() / known;
  } else {
    require(known == self.numel(), "the sizes hold another count of elements");
  }
  return out;
}

OpDefinition reshape_form(std::string text, ShapeOf shape) {
  return shared_form(std::move(text),
                     [shape = std::move(shape)](const OpCall& call) {
                       return bind_reshaped(call, shape);
                     });
}

OpDefinition reshaped(std::string_view word, std::string_view argument) {
  OpDefinition made = form(word).passes({"self"}).free_where_viewed();
  if (argument.empty()) return made;
  return std::move(made).local_shape(argument);
}

OpDefinition permute_form(std::string text, DimsOf order) {
  return shared_form(std::move(text),
                     [order = std::move(order)](const OpCall& call) {
                       return bind_permuted(call, order);
                     });
}

OpDefinition permuted(std::string_view word) {
  return form(word).passes().free();
}

OpDefinition expanded(std::string_view argument) {
  return form("expanded(" + std::string(argument) + ")")
      .passes({"self"})
      .free();
}

OpDefinition unsqueezed() { return form("unsqueeze(dim)").passes().free(); }

OpDefinition squeezed() { return form("squeeze(dim)").passes().free(); }

void words_of_views(RuleWords& words) {
  for (const char* argument : {"size", "other"}) {
    words.form(shared_form("expanded(" + std::string(argument) + ")",
                           [name = std::string(argument)](const OpCall& call) {
                             return bind_expanded(call, name);
                           }));
  }
  words.form(shared_form("unsqueeze(dim)", bind_unsqueeze));
  words.form(shared_form("squeeze(dim)", bind_squeeze));
}

}  // namespace shardprop
