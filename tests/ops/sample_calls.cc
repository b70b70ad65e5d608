#include "ops/sample_calls.h"

#include "base/try.h"
#include "ops/call_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace shardprop::testing {
namespace {

using Shape = std::vector<std::int64_t>;

// Draws the arguments of one call.
class Drawer {
 public:
  Drawer(const OpLibrary& library, const FunctionSchema& function,
         std::uint64_t seed)
      : library_(library), function_(function), random_(seed) {}

  // One call; an error where its row refuses it.
  Result<OpSchema> draw() {
    tensors_.clear();
    style_ = pick({kAlike, kAlike, kFewSizes, kBroadcast});
    rank_ = pick<std::int64_t>({2, 2, 3, 3, 1, 4, 5});
    dtype_ = pick(
        {DType::kF32, DType::kF32, DType::kF32, DType::kI64, DType::kBool});
    std::vector<GivenArgument> given;
    for (const ArgumentSchema& declared : function_.arguments()) {
      const bool written = declared.alias && declared.alias->writes;
      if (declared.has_default && !is_wanted(declared)) continue;
      if (declared.is_optional && !written && below(3) == 0) {
        given.push_back({declared.name, NoneArg{}});
        continue;
      }
      given.push_back({declared.name, value_of(declared)});
    }
    SP_ASSIGN(OpSchema op, make_op_schema(library_.find(function_.name()),
                                          std::move(given), tensors_));
    SP_CHECK(fill_outputs(op, library_));
    return op;
  }

 private:
  enum Style { kAlike, kFewSizes, kBroadcast };

  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }
  template <class T>
  T pick(std::initializer_list<T> from) {
    return from.begin()[below(static_cast<std::int64_t>(from.size()))];
  }

  // Optional tensors tell more of an operator; other defaults are left.
  bool is_wanted(const ArgumentSchema& declared) {
    return (declared.is_tensor() || declared.name == "size" ||
            declared.name.starts_with("output_size")) &&
           below(2) == 0;
  }

  Shape shape() {
    static constexpr std::array<std::int64_t, 5> kSizes = {4, 6, 2, 8, 3};
    Shape out;
    const std::int64_t rank = style_ == kFewSizes ? below(5) : rank_;
    for (std::int64_t d = 0; d < rank; ++d) {
      const std::size_t at = style_ == kFewSizes
                                 ? static_cast<std::size_t>(below(3))
                                 : static_cast<std::size_t>(d);
      out.push_back(style_ == kBroadcast && below(3) == 0 ? 1 : kSizes[at]);
    }
    return out;
  }

  TensorArg tensor(const ArgumentSchema& declared) {
    const std::string& name = declared.name;
    const auto has = [&](std::string_view part) {
      return name.find(part) != std::string::npos;
    };
    DType dtype = dtype_;
    if (has("ind") || has("target") || has("offsets")) {
      dtype = pick({DType::kI64, dtype});
    } else if (has("mask") || has("cond")) {
      dtype = pick({DType::kBool, dtype});
    }
    std::string text = std::string(to_string(dtype)) + "[";
    for (const std::int64_t size : shape()) {
      text += (text.back() == '[' ? "" : ",") + std::to_string(size);
    }
    tensors_.push_back(TensorMeta::parse(text + "]").value());
    return {static_cast<std::int32_t>(tensors_.size() - 1)};
  }

  std::int64_t integer(const ArgumentSchema& declared) {
    if (declared.name.starts_with("dim")) return pick<std::int64_t>({1, 0, -1});
    return pick<std::int64_t>({2, 1, 4, 0, 6});
  }

  Argument integers(const ArgumentSchema& declared) {
    const std::string& name = declared.name;
    if (name == "size" || name == "shape" || name.ends_with("_shape") ||
        name == "sizes") {
      return shape();
    }
    const std::int64_t count = declared.list_size.value_or(below(3) + 1);
    Shape out;
    for (std::int64_t i = 0; i < count; ++i) {
      out.push_back(name.starts_with("dim") ? i : integer(declared));
    }
    return out;
  }

  Argument value_of(const ArgumentSchema& declared) {
    switch (declared.type) {
      case ArgumentType::kTensor:
        if (!declared.is_list) return tensor(declared);
        return std::vector<TensorArg>{tensor(declared), tensor(declared)};
      case ArgumentType::kInt:
        if (declared.is_list) return integers(declared);
        return integer(declared);
      case ArgumentType::kFloat:
        if (declared.is_list) return std::vector<double>{0.5, 0.5};
        return pick({0.5, 2.0, 0.0});
      case ArgumentType::kBool:
        if (declared.is_list) {
          return std::vector<bool>(
              static_cast<std::size_t>(
                  declared.list_size.value_or(below(3) + 2)),
              true);
        }
        return below(4) == 0;
      case ArgumentType::kScalar:
        if (declared.is_list) return std::vector<double>{0.5, 0.5};
        return std::int64_t{2};
      case ArgumentType::kString:
        return pick({std::string("floor"), std::string("sum"),
                     std::string("mean"), std::string("none"),
                     std::string("sum")});
      case ArgumentType::kDType:
        return pick({DType::kF32, DType::kF64, DType::kI64});
      case ArgumentType::kLayout:
      case ArgumentType::kMemoryFormat:
      case ArgumentType::kDevice:
      case ArgumentType::kGenerator:
      case ArgumentType::kOther:
        return NoneArg{};
    }
    return NoneArg{};
  }

  const OpLibrary& library_;
  const FunctionSchema& function_;
  std::mt19937_64 random_;
  Style style_ = kAlike;
  std::int64_t rank_ = 1;
  DType dtype_ = DType::kF32;
  std::vector<TensorMeta> tensors_;
};

// `Worth` ranks a sample: first by its shardable factors, last by how short its
// text is.
struct Worth {
  int shardable = -1;  // three are enough
  int operands = 0;
  int sizes = 0;  // different ones
  int is_f32 = 0;
  int shortness = 0;
  friend auto operator<=>(const Worth&, const Worth&) = default;
};

Worth worth_of(const OpSchema& op, const IndexSpace& space) {
  Worth worth;
  std::set<std::int64_t> sizes;
  int shardable = 0;
  for (const Factor& factor : space.factors) {
    sizes.insert(factor.size);
    shardable += factor.shardable() ? 1 : 0;
  }
  worth.shardable = std::min(shardable, 3);
  worth.sizes = std::min(static_cast<int>(sizes.size()), 3);
  worth.operands = static_cast<int>(op.inputs.size());
  worth.is_f32 = static_cast<int>(std::count_if(
      op.inputs.begin(), op.inputs.end(),
      [](const TensorMeta& meta) { return meta.dtype() == DType::kF32; }));
  worth.shortness = -static_cast<int>(to_text(op).size());
  return worth;
}

std::uint64_t seed_of(std::string_view name) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  }
  return hash;
}

// Returns the functional overload's sample with the written argument added.
std::optional<OpSchema> derived_sample(const OpLibrary& library,
                                       const FunctionSchema& function) {
  const auto form = library.form(function);
  if (form == nullptr) return std::nullopt;
  const auto functional = sample_call(library, form->functional->name());
  if (!functional) return std::nullopt;
  std::vector<TensorMeta> tensors = functional->inputs;
  std::vector<GivenArgument> given;
  for (std::size_t i = 0; i < functional->args.size(); ++i) {
    const std::string& name = form->functional->arguments()[i].name;
    if (function.argument_index(name)) {
      given.push_back({name, functional->args[i]});
    }
  }
  for (const OverloadForm::Write& write : form->writes) {
    const ArgumentSchema& written = function.arguments()[write.argument];
    if (!written.keyword_only) continue;
    if (write.result >= functional->outputs.size()) return std::nullopt;
    tensors.push_back(functional->outputs[write.result]);
    given.push_back({written.name,
                     TensorArg{static_cast<std::int32_t>(tensors.size() - 1)}});
  }
  auto op = make_op_schema(library.find(function.name()), std::move(given),
                           std::move(tensors));
  if (!op || !fill_outputs(*op, library) || !library.index_space(*op)) {
    return std::nullopt;
  }
  return *std::move(op);
}

}  // namespace

Result<void> fill_outputs(OpSchema& op, const OpLibrary& library) {
  const OpRow* row = library.row(*op.function);
  const bool by_tag = row != nullptr && row->name.empty() &&
                      !op.function->is_mutating() && !op.inputs.empty();
  if (by_tag) {
    set_results(op, {op.inputs.front()});
    return {};
  }
  SP_ASSIGN(auto results, library.infer_results(op));
  set_results(op, std::move(results));
  return {};
}

std::optional<OpSchema> sample_call(const OpLibrary& library,
                                    std::string_view name) {
  constexpr int kMostTries = 6000;
  constexpr int kEnough = 150;
  const auto function = library.find(name);
  if (auto derived = derived_sample(library, *function)) return derived;
  Drawer drawer(library, *function, seed_of(name));
  std::optional<OpSchema> best;
  Worth worth;
  int found = 0;
  for (int i = 0; i < kMostTries && found < kEnough; ++i) {
    auto op = drawer.draw();
    if (!op) continue;
    const auto space = library.index_space(*op);
    if (!space) continue;
    ++found;
    const Worth own = worth_of(*op, *space);
    if (!best || own > worth) {
      best = *std::move(op);
      worth = own;
    }
  }
  return best;
}

}  // namespace shardprop::testing
