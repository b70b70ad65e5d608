// These tests draw operators whose rules use the words, and calls of them.
#include "ops/rules/word_needs.h"

#include "ops/schema/argument_check.h"

#include "ops/word_calls.h"

#include "support/result_checks.h"
#include "support/standard_library.h"

#include <doctest/doctest.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/ops/rule_text.h>

#include <cstdint>
#include <exception>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

constexpr int kDraws = 40;  // for each word

// `Drawn` draws operators that declare the needs of a word and more: other numbers of
// tensors and results, lists of any length, and optional tensors that are absent.
class Drawn {
 public:
  explicit Drawn(unsigned seed) : random_(seed) {}

  Foreign foreign(const WordNeeds& needs) {
    out_ = {};
    declared_.clear();
    places_ = 0;
    same_shape_ = below(2) == 0;
    shape_ = below(std::size(kMetas));
    for (const NeededArgument& needed : needs.arguments) {
      const ArgumentSchema& argument = needed.argument;
      const bool has_tensors =
          argument.is_tensor() || argument.is_tensor_list();
      if (has_tensors && needed.place != NeededArgument::kAnyPlace) {
        while (places_ < needed.place) add_tensor("Tensor");
      }
      declare(describe_type(argument), argument.name);
      if (has_tensors) {
        give_tensors(argument);
      } else {
        out_.given.push_back({argument.name, value(argument)});
      }
    }
    while (places_ < needs.tensors) add_tensor("Tensor");
    for (std::size_t more = below(6); more-- > 0;) {
      add_tensor(below(4) == 0 ? "Tensor?" : "Tensor");
    }
    const std::size_t results = needs.results + (below(3) == 0 ? below(3) : 0);
    std::string returned;
    for (std::size_t i = 0; i < results; ++i) {
      returned += i == 0 ? "Tensor" : ", Tensor";
    }
    out_.declaration = "mylib::f(" + declared_ + ") -> (" + returned + ")";
    out_.rule = rule(needs, results);
    return out_;
  }

 private:
  std::size_t below(std::size_t count) { return random_() % count; }

  void declare(const std::string& type, const std::string& name) {
    declared_ += (declared_.empty() ? "" : ", ") + type + " " + name;
  }

  TensorArg tensor() {
    const TensorArg last{static_cast<std::int32_t>(out_.tensors.size())};
    const std::size_t at = same_shape_ ? shape_ : below(std::size(kMetas));
    out_.tensors.push_back(value_of(TensorMeta::parse(kMetas[at])));
    return last;
  }

  void add_tensor(const std::string& type) {
    const std::string name = "more" + std::to_string(places_);
    declare(type, name);
    ++places_;
    const bool is_absent = type == "Tensor?" && below(2) == 0;
    out_.given.push_back(
        {name, is_absent ? Argument(NoneArg{}) : Argument(tensor())});
  }

  void give_tensors(const ArgumentSchema& argument) {
    ++places_;
    if (argument.is_list) {
      std::vector<TensorArg> list;
      for (std::size_t length = below(4); length-- > 0;) {
        list.push_back(tensor());
      }
      out_.given.push_back({argument.name, Argument(std::move(list))});
    } else if (argument.is_optional && below(2) == 0) {
      out_.given.push_back({argument.name, Argument(NoneArg{})});
    } else {
      out_.given.push_back({argument.name, Argument(tensor())});
    }
  }

  Argument value(const ArgumentSchema& argument) {
    if (argument.is_optional && below(4) == 0) return Argument(NoneArg{});
    const bool is_int = argument.type == ArgumentType::kInt ||
                        argument.type == ArgumentType::kScalar;
    if (!is_int) return value_for(argument);
    const auto number = [&] { return static_cast<std::int64_t>(below(7)) - 2; };
    if (!argument.is_list) return Argument(number());
    std::vector<std::int64_t> list(below(7));
    for (std::int64_t& one : list) one = number();
    return Argument(std::move(list));
  }

  // Returns a rule with the word. A word that is not a form gets a drawn form.
  std::string rule(const WordNeeds& needs, std::size_t results) {
    if (needs.kind == "form" || needs.kind == "size") {
      return rule_with(needs, out_.tensors.size());
    }
    const std::string usual = rule_with(needs, out_.tensors.size());
    const std::string after = usual.substr(usual.find(").") + 1);
    std::vector<const WordNeeds*> forms;
    for (const WordNeeds& one : word_needs()) {
      if (one.kind == "form") forms.push_back(&one);
    }
    switch (below(4)) {
      case 0:
        return forms[below(forms.size())]->word + after;
      case 1:
        return "pointwise(" + std::to_string(results) + ")" + after;
      case 2:
        return notation("...", results) + after;
      default:
        return notation("*", results) + after;
    }
  }

  // Returns `*,*->{x:3},{x:3}`, or the like.
  std::string notation(const std::string& term, std::size_t results) {
    std::string text;
    for (std::size_t i = 0; i < out_.tensors.size(); ++i) {
      text += (i == 0 ? "" : ",") + term;
    }
    text += "->";
    for (std::size_t i = 0; i < results; ++i) {
      text += std::string(i == 0 ? "" : ",") + (term == "*" ? "" : term);
    }
    return text;
  }

  std::mt19937 random_;
  Foreign out_;
  std::string declared_;
  std::size_t places_ = 0;
  bool same_shape_ = false;
  std::size_t shape_ = 0;
};

// Returns a list of the space whose size is wrong; empty if all sizes are right.
std::string fault(const OpSchema& op, const IndexSpace& space) {
  if (space.inputs.size() != op.inputs.size()) return "operands";
  if (space.outputs.size() != op.outputs.size()) return "results";
  for (const Linearity& linearity : space.linearities) {
    if (linearity.inputs.size() != op.inputs.size()) return "linear operands";
    if (linearity.outputs.size() != op.outputs.size()) return "linear results";
  }
  for (std::size_t o = 0; o < space.outputs.size(); ++o) {
    if (space.outputs[o].dims.size() != op.outputs[o].shape().size()) {
      return "dims of results";
    }
    if (space.outputs_without[o].size() != space.factors.size()) {
      return "factors of results";
    }
  }
  for (std::size_t i = 0; i < space.inputs.size(); ++i) {
    if (space.inputs[i].dims.size() != op.inputs[i].shape().size()) {
      return "dims of operands";
    }
  }
  return {};
}

TEST_CASE("every word answers or refuses operators that declare more") {
  Drawn drawn(7);
  int made = 0;
  int answered = 0;
  for (const WordNeeds& needs : word_needs()) {
    for (int i = 0; i < kDraws; ++i) {
      const Foreign one = drawn.foreign(needs);
      CAPTURE(one.declaration);
      CAPTURE(one.rule);
      auto rule = parse_definition(one.rule);
      if (!rule) continue;
      const auto library = testing::standard_library().with(
          {.declaration = one.declaration, .definition = *std::move(rule)});
      if (!library) continue;
      auto op = make_op_schema((*library)->find("mylib.f.default"), one.given,
                               one.tensors);
      if (!op) continue;
      ++made;
      try {
        auto results = (*library)->infer_results(*op);
        if (!results) continue;
        set_results(*op, *std::move(results));
        const auto space = (*library)->index_space(*op);
        if (!space) continue;
        ++answered;
        CHECK(fault(*op, *space) == "");
      } catch (const std::exception& error) {
        FAIL_CHECK(error.what());
      }
    }
  }
  MESSAGE(made, " calls, ", answered, " with a space");
  CHECK(made > 1000);
  CHECK(answered > 200);
}

}  // namespace
}  // namespace shardprop
