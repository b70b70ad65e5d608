// `RuleReader` reads the tokens of a rule text. Its errors name the column, the
// text that was found there, and the expected text.
#pragma once

#include <shardprop/base/result.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace shardprop {

class RuleReader {
 public:
  // Errors name columns of a text in which this one begins at column `from`, from 0.
  explicit RuleReader(std::string_view text, std::size_t from = 0)
      : text_(text), from_(from) {}

  std::size_t at() const { return at_; }
  void go_to(std::size_t at) { at_ = at; }
  bool is_at_end() const { return at_ == text_.size(); }
  // Returns the next character; '\0' at the end.
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool is_next(std::string_view token) const {
    return text_.substr(at_, token.size()) == token;
  }
  // Skips the token if it is next.
  bool skip(std::string_view token) {
    if (!is_next(token)) return false;
    at_ += token.size();
    return true;
  }
  void skip_blanks() {
    while (is_blank(peek())) ++at_;
  }
  // Reads letters, digits and underscores; empty if there are none.
  std::string_view word() {
    const std::size_t from = at_;
    while (is_word(peek())) ++at_;
    return text_.substr(from, at_ - from);
  }
  // Reads up to one of these characters, or to the end.
  std::string_view up_to(std::string_view ends) {
    const std::size_t from = at_;
    while (!is_at_end() && ends.find(peek()) == std::string_view::npos) ++at_;
    return text_.substr(from, at_ - from);
  }

  static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
  }
  static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_word(char c) {
    return c == '_' || is_letter(c) || is_digit(c);
  }
  // Returns whether the text can be the name of an argument.
  static bool is_name(std::string_view text) {
    return !text.empty() && !is_digit(text[0]) &&
           std::all_of(text.begin(), text.end(), is_word);
  }

  tl::unexpected<Error> expected(std::string_view what,
                                 std::string_view help) const {
    return wrong("expected " + std::string(what) + ", found " + found(),
                 from_ + at_, help);
  }
  // Returns the next character for messages: "`)`", "the end".
  std::string found() const {
    if (is_at_end()) return "the end";
    const char c = peek();
    return is_next("->")          ? "`->`"
           : c >= ' ' && c <= '~' ? '`' + std::string(1, c) + '`'
                                  : "a character that is not printable";
  }
  static tl::unexpected<Error> wrong(std::string message, std::size_t at,
                                     std::string_view help) {
    return fail(Error{ErrorCode::kInvalidArgument,
                      std::move(message),
                      "column " + std::to_string(at + 1),
                      {},
                      std::string(help)});
  }

 private:
  std::string_view text_;
  std::size_t from_ = 0;
  std::size_t at_ = 0;
};

}  // namespace shardprop
