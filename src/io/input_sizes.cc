#include "io/input_sizes.h"

#include "base/index.h"
#include "base/try.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace shardprop::pt2 {
namespace {

// `InputDim` is a dim of an input of the program.
struct InputDim {
  std::string input;
  std::size_t dim = 0;
  bool is_users = false;
};

std::string to_string(const InputDim& at) {
  return "dim " + std::to_string(at.dim) + " of " + at.input;
}

// `SeenSize` is a size of the inputs at each export, and the dims that have it.
struct SeenSize {
  std::vector<std::int64_t> seen;
  std::vector<InputDim> users;  // dims of the user's inputs

  bool is_varied() const {
    return std::any_of(seen.begin(), seen.end(),
                       [&](std::int64_t size) { return size != seen[0]; });
  }
  bool has(std::size_t dim) const {
    return std::any_of(users.begin(), users.end(),
                       [&](const InputDim& at) { return at.dim == dim; });
  }
};

const Tensor* tensor_named(const Program& program, std::string_view name) {
  for (const Tensor& tensor : program.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

class InputSizes {
 public:
  explicit InputSizes(const std::vector<const Program*>& exports)
      : exports_(exports) {}

  Result<void> read();
  // Returns the size that the user names; null if it is a symbol.
  Result<const SeenSize*> named(const std::string& name,
                                const std::string& place) const;
  Result<void> check_single(const FreeSize& size) const;
  const std::vector<SeenSize>& sizes() const { return sizes_; }
  std::string name_of(const SeenSize& size) const;

 private:
  std::vector<const SeenSize*> at_dim(std::size_t dim) const;
  Error unknown(const std::string& name, const std::string& place) const;
  bool is_symbol(const std::string& name) const;

  const std::vector<const Program*>& exports_;
  std::vector<SeenSize> sizes_;  // of the user's inputs, above 1
  std::vector<InputDim> ones_;   // dims of the user's inputs below 2
  // The dims of the other inputs, which belong to the model.
  std::vector<std::pair<InputDim, std::int64_t>> of_model_;
};

Result<void> InputSizes::read() {
  const Program& first = *exports_[0];
  for (std::size_t i = 0; i < first.input_specs.size(); ++i) {
    const InputSpec& spec = first.input_specs[i];
    if (spec.value.empty()) continue;
    std::vector<const Tensor*> tensors;
    for (const Program* program : exports_) {
      const bool has_it = i < program->input_specs.size() &&
                          program->input_specs[i].value == spec.value;
      tensors.push_back(has_it ? tensor_named(*program, spec.value) : nullptr);
      if (tensors.back() == nullptr ||
          tensors.back()->sizes.size() != tensors[0]->sizes.size()) {
        return fail(Error{ErrorCode::kInvalidArgument,
                          "the exports have different inputs",
                          "input " + std::string(spec.value),
                          {},
                          "export one model twice, at two sizes"});
      }
    }
    const bool is_users = spec.role == InputKind::kUser;
    for (std::size_t d = 0; d < tensors[0]->sizes.size(); ++d) {
      std::vector<std::int64_t> seen;
      for (const Tensor* tensor : tensors) {
        seen.push_back(tensor->sizes[d].value.value_or(0));
      }
      const InputDim at{
          std::string(is_users || spec.target.empty() ? spec.value
                                                      : spec.target),
          d, is_users};
      if (!is_users) {
        of_model_.emplace_back(at, seen[0]);
        continue;
      }
      if (*std::min_element(seen.begin(), seen.end()) < 2) {
        ones_.push_back(at);
        continue;
      }
      const auto same =
          std::find_if(sizes_.begin(), sizes_.end(),
                       [&](const SeenSize& size) { return size.seen == seen; });
      SeenSize& size = same != sizes_.end()
                           ? *same
                           : sizes_.emplace_back(SeenSize{seen, {}});
      size.users.push_back(at);
    }
  }
  return {};
}

// Positions have the sequence as their dim 0. They do not name the batch if another
// input does.
std::vector<const SeenSize*> InputSizes::at_dim(std::size_t dim) const {
  std::vector<const SeenSize*> all;
  for (const SeenSize& size : sizes_) {
    if (size.has(dim)) all.push_back(&size);
  }
  if (all.size() < 2) return all;
  std::vector<const SeenSize*> alone;
  for (const SeenSize* size : all) {
    if (std::all_of(size->users.begin(), size->users.end(),
                    [&](const InputDim& at) { return at.dim == dim; })) {
      alone.push_back(size);
    }
  }
  if (alone.size() != 1 && exports_.size() > 1) {
    // Sizes that no export varies are no sizes of the program.
    std::vector<const SeenSize*> varied;
    for (const SeenSize* size : all) {
      if (size->is_varied()) varied.push_back(size);
    }
    if (varied.size() == 1) return varied;
  }
  return alone.size() == 1 ? alone : all;
}

std::string InputSizes::name_of(const SeenSize& size) const {
  for (std::size_t dim = 0; dim < 2; ++dim) {
    const auto all = at_dim(dim);
    if (all.size() == 1 && all[0] == &size) return dim == 0 ? "batch" : "seq";
  }
  return size.users[0].input + '.' + std::to_string(size.users[0].dim);
}

bool InputSizes::is_symbol(const std::string& name) const {
  const std::string text = "Symbol('" + name + "'";
  const auto mentions = [&](const SymValue& value) {
    return value.is_symbolic() &&
           (value.expression == name ||
            value.expression.find(text) != std::string_view::npos);
  };
  const Program& program = *exports_[0];
  return std::any_of(program.scalars.begin(), program.scalars.end(),
                     [&](const NamedSym& s) { return mentions(s.value); }) ||
         std::any_of(program.tensors.begin(), program.tensors.end(),
                     [&](const Tensor& tensor) {
                       return std::any_of(tensor.sizes.begin(),
                                          tensor.sizes.end(), mentions);
                     });
}

Error InputSizes::unknown(const std::string& name,
                          const std::string& place) const {
  for (const InputDim& at : ones_) {
    const bool is_named =
        name == (at.dim == 0   ? "batch"
                 : at.dim == 1 ? "seq"
                               : at.input + '.' + std::to_string(at.dim));
    if (!is_named) continue;
    return {ErrorCode::kInvalidArgument,
            '`' + name + "` is 1 in an export, so no number follows it",
            place,
            {},
            "export the program with " + to_string(at) + " of at least 2"};
  }
  std::string known;
  for (const SeenSize& size : sizes_) {
    if (exports_.size() > 1 && !size.is_varied()) continue;
    known += (known.empty() ? "" : ", ") + name_of(size) + " (" +
             to_string(size.users[0]) + ')';
  }
  return {ErrorCode::kInvalidArgument,
          '`' + name.substr(0, 80) + "` is not a size of this program",
          place,
          {},
          known.empty() ? "its inputs have no dim above 1: leave it out"
                        : "sizes to set: " + known};
}

Result<const SeenSize*> InputSizes::named(const std::string& name,
                                          const std::string& place) const {
  const auto dim = name == "batch" ? std::optional<std::size_t>(0)
                   : name == "seq" ? std::optional<std::size_t>(1)
                                   : std::nullopt;
  const SeenSize* found = nullptr;
  if (dim) {
    const auto all = at_dim(*dim);
    if (all.empty()) return fail(unknown(name, place));
    if (all.size() > 1) {
      Error error = unknown(name, place);
      error.message = '`' + name +
                      "` is not one size: " + to_string(all[0]->users[0]) +
                      " is " + std::to_string(all[0]->seen[0]) + ", " +
                      to_string(all[1]->users[0]) + " is " +
                      std::to_string(all[1]->seen[0]);
      return fail(std::move(error));
    }
    found = all[0];
  } else {
    for (const SeenSize& size : sizes_) {
      for (const InputDim& at : size.users) {
        if (at.input + '.' + std::to_string(at.dim) == name) found = &size;
      }
    }
    if (found == nullptr && is_symbol(name)) return nullptr;
    if (found == nullptr) return fail(unknown(name, place));
  }
  if (exports_.size() > 1 && !found->is_varied()) {
    return fail(Error{ErrorCode::kInvalidArgument,
                      '`' + name + "` is " + std::to_string(found->seen[0]) +
                          " in all exports",
                      place,
                      {},
                      "export the program at another " + name +
                          " too, and give it as --other-size"});
  }
  // One input that has the size twice does not say which of its dims follows it.
  for (const InputDim& at : found->users) {
    for (const InputDim& other : found->users) {
      if (at.input != other.input || at.dim == other.dim || at.dim > 0)
        continue;
      return fail(Error{
          ErrorCode::kInvalidArgument,
          to_string(at) + " and dim " + std::to_string(other.dim) +
              " are equal" + (exports_.size() > 1 ? " in all exports" : ""),
          place,
          {"both are " + std::to_string(found->seen[0])},
          "export the program at sizes that differ from each other, and give "
          "that one too: --other-size GRAPH2"});
    }
  }
  return found;
}

// With one export, a number that a size divides is taken to follow the size. This
// holds only if the size divides no number of the model.
Result<void> InputSizes::check_single(const FreeSize& size) const {
  const auto divided = [&](const std::string& what, std::int64_t number) {
    return fail(Error{
        ErrorCode::kInvalidArgument,
        "one export does not tell which numbers follow `" + size.name + '`',
        "size " + size.name + "=" + std::to_string(size.wanted),
        {size.name + " is " + std::to_string(size.seen[0]) +
         " in the export, which divides " + what + " (" +
         std::to_string(number) + ')'},
        "export the program at other sizes too, and give both: --size " +
            size.name + "=" + std::to_string(size.wanted) +
            " --other-size GRAPH2"});
  };
  for (const auto& [at, number] : of_model_) {
    if (number > 0 && number % size.seen[0] == 0) {
      return divided(to_string(at), number);
    }
  }
  for (const SeenSize& other : sizes_) {
    if (other.seen != size.seen && std::gcd(other.seen[0], size.seen[0]) != 1) {
      return divided(to_string(other.users[0]) + " in part", other.seen[0]);
    }
  }
  return {};
}

// Returns whether the size is the product of two others at all exports, as the
// tokens of an input [batch*seq].
bool is_product(const SeenSize& size, const std::vector<SeenSize>& all) {
  const auto fits = [&](const SeenSize& a, const SeenSize& b) {
    for (std::size_t e = 0; e < size.seen.size(); ++e) {
      if (WideInt{a.seen[e]} * b.seen[e] != size.seen[e]) return false;
    }
    return true;
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i; j < all.size(); ++j) {
      if (all[i].is_varied() && all[j].is_varied() && fits(all[i], all[j])) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

Result<std::vector<FreeSize>> free_sizes(
    const std::vector<const Program*>& exports,
    std::map<std::string, std::int64_t>& sizes) {
  InputSizes inputs(exports);
  SP_CHECK(inputs.read());
  std::map<const SeenSize*, std::pair<std::string, std::int64_t>> wanted;
  for (auto given = sizes.begin(); given != sizes.end();) {
    const auto& [name, value] = *given;
    const std::string place = "size " + name + "=" + std::to_string(value);
    SP_ASSIGN(const SeenSize* found, inputs.named(name, place));
    if (found == nullptr) {
      ++given;
      continue;
    }
    const auto [same, is_new] = wanted.emplace(found, std::pair(name, value));
    if (!is_new) {
      return fail(
          Error{ErrorCode::kInvalidArgument,
                '`' + same->second.first + "` and `" + name + "` are one size",
                place,
                {},
                "give it once"});
    }
    if (value < 1) {
      return fail(Error{ErrorCode::kInvalidArgument,
                        '`' + name + "` cannot be " + std::to_string(value),
                        place,
                        {},
                        "give a size of at least 1"});
    }
    given = sizes.erase(given);
  }
  std::vector<FreeSize> out;
  for (const SeenSize& size : inputs.sizes()) {
    const auto found = wanted.find(&size);
    const bool is_given = found != wanted.end();
    if (!is_given && (exports.size() == 1 || !size.is_varied() ||
                      is_product(size, inputs.sizes()))) {
      continue;
    }
    out.push_back({is_given ? found->second.first : inputs.name_of(size),
                   size.seen, is_given ? found->second.second : size.seen[0]});
    if (exports.size() == 1) SP_CHECK(inputs.check_single(out.back()));
  }
  return out;
}

}  // namespace shardprop::pt2
