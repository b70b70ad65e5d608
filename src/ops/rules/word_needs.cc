#include "ops/rules/word_needs.h"

#include "ops/rules/rule_reader.h"
#include "ops/rules/rule_words.h"
#include "ops/schema/argument_check.h"

#include "base/quantities.h"

#include <shardprop/ops/op_library.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace shardprop {
namespace {

constexpr std::string_view kForm = "form";
constexpr std::string_view kModifier = "modifier";
constexpr std::string_view kCheck = "check";
constexpr std::string_view kDType = "dtype";
constexpr std::string_view kStrides = "strides";
constexpr std::string_view kSize = "size";

using Word = std::pair<std::string_view, std::string>;  // kind and word

// `WordFinder` finds the words of a rule in its text without programs.
class WordFinder {
 public:
  explicit WordFinder(const OpDefinition& rule) : text_(rule.summary()) {}

  std::set<Word> words() {
    std::size_t at = form();
    while (at < text_.size()) {
      const char before = at == 0 ? '.' : text_[at - 1];
      const bool begins =
          RuleReader::is_letter(text_[at]) && !RuleReader::is_word(before);
      if (!begins) {
        ++at;
        continue;
      }
      std::size_t end = at;
      while (end < text_.size() && RuleReader::is_word(text_[end])) ++end;
      const std::string name = text_.substr(at, end - at);
      if (before == '.') add_modifier(name, at, end);
      const bool is_call = text_.compare(end, 2, "()") == 0;
      if (is_call && before == ':' && known().find_size(name) != nullptr) {
        found_.emplace(kSize, name + "()");
      }
      if (is_call && in_typed(at) && known().find_dtype(name) != nullptr) {
        found_.emplace(kDType, name + "()");
      }
      at = end;
    }
    return std::move(found_);
  }

 private:
  static const RuleWords& known() { return rule_words(); }

  // Notes the form if it is a word; returns where the text after it begins.
  std::size_t form() {
    std::string longest;
    for (const std::string& word : known().forms()) {
      const bool is_whole =
          text_.size() == word.size() ||
          (text_.size() > word.size() && text_[word.size()] == '.');
      if (text_.starts_with(word) && is_whole && word.size() > longest.size()) {
        longest = word;
      }
    }
    if (longest.empty()) return 0;
    found_.emplace(kForm, longest);
    return longest.size();
  }

  // Returns the end of the call that begins at `open`, a parenthesis.
  std::size_t end_of_call(std::size_t open) const {
    int depth = 0;
    for (std::size_t i = open; i < text_.size(); ++i) {
      if (text_[i] == '(') ++depth;
      if (text_[i] == ')' && --depth == 0) return i + 1;
    }
    return text_.size();
  }

  void add_modifier(const std::string& name, std::size_t at, std::size_t end) {
    if (end == text_.size() || text_[end] != '(') return;
    const std::size_t close = end_of_call(end);
    const std::string call = text_.substr(at, close - at);
    const std::string inside = text_.substr(end + 1, close - end - 2);
    if (name == "typed") typed_.emplace_back(end, close);
    if (name == "strided" && known().find_strides(inside) != nullptr) {
      found_.emplace(kStrides, inside);
    }
    if (known().find_modifier(call) != nullptr) found_.emplace(kModifier, call);
    if (known().find_check(call) != nullptr) found_.emplace(kCheck, call);
  }

  bool in_typed(std::size_t at) const {
    return std::any_of(typed_.begin(), typed_.end(), [&](const auto& range) {
      return at > range.first && at < range.second;
    });
  }

  const std::string text_;
  std::set<Word> found_;
  std::vector<std::pair<std::size_t, std::size_t>> typed_;
};

bool has_tensors(const ArgumentSchema& argument) {
  return argument.is_tensor() || argument.is_tensor_list();
}

// Returns the number of arguments with tensors before argument `i`.
std::size_t place_of(const FunctionSchema& function, std::size_t i) {
  const auto& declared = function.arguments();
  return static_cast<std::size_t>(std::count_if(
      declared.begin(), declared.begin() + static_cast<std::ptrdiff_t>(i),
      has_tensors));
}

// Returns the number of arguments with tensors that every call gives.
std::size_t needed_tensors(const FunctionSchema& function) {
  const auto& declared = function.arguments();
  return static_cast<std::size_t>(std::count_if(
      declared.begin(), declared.end(), [](const ArgumentSchema& argument) {
        return has_tensors(argument) && !argument.has_default &&
               !argument.is_optional;
      }));
}

bool is_alike(const ArgumentSchema& a, const ArgumentSchema& b) {
  return a.type == b.type && a.is_list == b.is_list;
}

// Returns whether the value that a call gives may be None, or have such elements,
// although the need allows none.
bool may_be_absent(const ArgumentSchema& given, const ArgumentSchema& needed) {
  return (given.is_optional && !needed.is_optional) ||
         (given.elements_optional && !needed.elements_optional);
}

// Removes the needs that the function does not declare.
void intersect(WordNeeds& needs, const FunctionSchema& function) {
  std::erase_if(needs.arguments, [&](NeededArgument& needed) {
    const auto i = function.argument_index(needed.argument.name);
    if (!i || function.arguments()[*i].has_default ||
        !is_alike(function.arguments()[*i], needed.argument)) {
      return true;
    }
    if (needed.place != place_of(function, *i)) {
      needed.place = NeededArgument::kAnyPlace;
    }
    if (may_be_absent(function.arguments()[*i], needed.argument)) {
      needed.argument = function.arguments()[*i];
    }
    return false;
  });
  needs.tensors = std::min(needs.tensors, needed_tensors(function));
  needs.results = std::min(needs.results, function.returns().size());
}

// Returns whether the row was written for this operator. In-place, out= and foreach
// overloads have the row of the functional overload.
bool is_written_for(const OpRow& row, const FunctionSchema& function) {
  const std::string& name = function.name();
  return !function.is_out() &&
         (row.name == name ||
          row.name + "." == name.substr(0, name.rfind('.') + 1));
}

std::vector<WordNeeds> needs_of_library() {
  const auto library = OpLibrary::standard();
  std::map<Word, WordNeeds> all;
  std::map<const OpRow*, std::set<Word>> of_rows;
  for (const std::string& name : library->names()) {
    const auto function = library->find(name);
    const OpRow* row = library->row(*function);
    if (row == nullptr || !is_written_for(*row, *function)) continue;
    const auto [known, is_new] = of_rows.try_emplace(row);
    if (is_new) known->second = WordFinder(row->definition).words();
    for (const Word& word : known->second) {
      auto [needs, is_first] = all.try_emplace(word);
      WordNeeds& own = needs->second;
      if (is_first) {
        own.word = word.second;
        own.kind = word.first;
        own.tensors = needed_tensors(*function);
        own.results = function->returns().size();
        const auto& declared = function->arguments();
        for (std::size_t i = 0; i < declared.size(); ++i) {
          if (declared[i].has_default) continue;
          own.arguments.push_back(
              {declared[i], has_tensors(declared[i])
                                ? place_of(*function, i)
                                : NeededArgument::kAnyPlace});
        }
      }
      intersect(own, *function);
      own.operators.push_back(name);
    }
  }
  std::vector<WordNeeds> out;
  for (auto& [word, needs] : all) {
    std::sort(needs.operators.begin(), needs.operators.end());
    out.push_back(std::move(needs));
  }
  return out;
}

std::string type_text(const ArgumentSchema& argument) {
  return '`' + describe_type(argument) + ' ' + argument.name + '`';
}

// Returns the first need that the function lacks, such as "the argument `int dim`";
// empty if it has all.
std::string lacked(const WordNeeds& needs, const FunctionSchema& function) {
  for (const NeededArgument& needed : needs.arguments) {
    const auto i = function.argument_index(needed.argument.name);
    if (!i || !is_alike(function.arguments()[*i], needed.argument) ||
        may_be_absent(function.arguments()[*i], needed.argument)) {
      return "the argument " + type_text(needed.argument);
    }
    if (needed.place != NeededArgument::kAnyPlace &&
        needed.place != place_of(function, *i)) {
      return "`" + needed.argument.name + "` as tensor argument " +
             std::to_string(needed.place + 1);
    }
  }
  if (needed_tensors(function) < needs.tensors) {
    return counted(needs.tensors, "tensor");
  }
  if (function.returns().size() >= needs.results) return {};
  return counted(needs.results, "result");
}

}  // namespace

const std::vector<WordNeeds>& word_needs() {
  static const std::vector<WordNeeds> kNeeds = needs_of_library();
  return kNeeds;
}

bool uses_words(const OpDefinition& rule) {
  return !WordFinder(rule).words().empty();
}

namespace {

// Returns "column 12" for the place of the word; empty if it is unknown.
std::string place_of_word(const std::string& word, const RuleNames* names) {
  if (names == nullptr) return {};
  for (const RuleNames::Word& own : names->words) {
    if (own.text == word) return "column " + std::to_string(own.at + 1);
  }
  return {};
}

}  // namespace

Result<void> check_words(const OpDefinition& rule,
                         const FunctionSchema& function,
                         const RuleNames* names) {
  for (const Word& word : WordFinder(rule).words()) {
    const auto needs = std::find_if(
        word_needs().begin(), word_needs().end(), [&](const WordNeeds& one) {
          return one.kind == word.first && one.word == word.second;
        });
    if (needs == word_needs().end()) {
      return fail(
          ErrorCode::kInvalidArgument,
          "no operator of this library uses the word `" + word.second + "`",
          "docs/rule_words.md lists the words");
    }
    const std::string what = lacked(*needs, function);
    if (what.empty()) continue;
    return fail(Error{ErrorCode::kInvalidArgument,
                      "`" + word.second + "` needs " + what + ", as in `" +
                          needs->operators.front() + "`, which `" +
                          function.name() + "` does not declare",
                      place_of_word(word.second, names),
                      {"declared as " + to_string(function)},
                      "declare it, or write the rule in factor notation; "
                      "docs/rule_words.md lists what each word needs"});
  }
  return {};
}

}  // namespace shardprop
