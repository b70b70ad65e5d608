#include "ops/rules/rule_words.h"

#include <shardprop/base/error.h>

#include "ops/definitions/words.h"

#include <utility>

namespace shardprop {
namespace {

template <class Words, class Meaning>
void add_word(Words& words, std::string text, Meaning meaning) {
  const auto [at, is_new] = words.emplace(std::move(text), std::move(meaning));
  if (is_new) return;
  throw InternalError("the rule word `" + at->first + "` is defined twice");
}

template <class Words>
auto find_word(const Words& words, std::string_view text) ->
    typename Words::const_pointer {
  const auto found = words.find(text);
  return found == words.end() ? nullptr : &*found;
}

template <class Words>
std::vector<std::string> texts_of(const Words& words) {
  std::vector<std::string> texts;
  for (const auto& [text, meaning] : words) texts.push_back(text);
  return texts;
}

}  // namespace

void RuleWords::form(OpDefinition form) {
  std::string text = form.text();
  add_word(forms_, std::move(text), std::move(form));
}

void RuleWords::modifier(std::string text, OpDefinition::Refine refine) {
  add_word(modifiers_, std::move(text), std::move(refine));
}

void RuleWords::check(std::string text, OpDefinition::Check check) {
  add_word(checks_, std::move(text), std::move(check));
}

void RuleWords::dtype(std::string word, OpDefinition::TypeOf type) {
  add_word(dtypes_, std::move(word), std::move(type));
}

void RuleWords::strides(std::string word, OpDefinition::StridesOf strides) {
  add_word(strides_, std::move(word), std::move(strides));
}

void RuleWords::size(std::string word, SizeOf size) {
  add_word(sizes_, std::move(word), std::move(size));
}

const OpDefinition* RuleWords::find_form(std::string_view text) const {
  const auto* found = find_word(forms_, text);
  return found == nullptr ? nullptr : &found->second;
}

const OpDefinition::Refine* RuleWords::find_modifier(
    std::string_view text) const {
  const auto* found = find_word(modifiers_, text);
  return found == nullptr ? nullptr : &found->second;
}

const OpDefinition::Check* RuleWords::find_check(std::string_view text) const {
  const auto* found = find_word(checks_, text);
  return found == nullptr ? nullptr : &found->second;
}

const OpDefinition::TypeOf* RuleWords::find_dtype(std::string_view word) const {
  const auto* found = find_word(dtypes_, word);
  return found == nullptr ? nullptr : &found->second;
}

const OpDefinition::StridesOf* RuleWords::find_strides(
    std::string_view word) const {
  const auto* found = find_word(strides_, word);
  return found == nullptr ? nullptr : &found->second;
}

const SizeOf* RuleWords::find_size(std::string_view word) const {
  const auto* found = find_word(sizes_, word);
  return found == nullptr ? nullptr : &found->second;
}

std::vector<std::string> RuleWords::forms() const { return texts_of(forms_); }

const RuleWords& rule_words() {
  static const RuleWords kWords = [] {
    RuleWords words;
    add_words(words);
    return words;
  }();
  return kWords;
}

OpDefinition form(std::string_view text) {
  const OpDefinition* found = rule_words().find_form(text);
  if (found != nullptr) return *found;
  throw InternalError("the form `" + std::string(text) + "` has no definition");
}

}  // namespace shardprop
