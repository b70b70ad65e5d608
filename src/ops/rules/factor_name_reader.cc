#include "ops/rules/factor_name_reader.h"

#include <string>

namespace shardprop {

Result<FactorName> read_factor_name(RuleReader& reader, std::string_view help) {
  const std::size_t at = reader.at();
  if (reader.skip("<")) {
    const std::string_view word = reader.word();
    if (word.empty()) return reader.expected("the name of a factor", help);
    if (!reader.skip(">")) return reader.expected("`>`", help);
    if (word.size() > FactorName::kMostLetters) {
      return RuleReader::wrong("a factor has a name of more than 15 letters",
                               at, help);
    }
    return FactorName(word);
  }
  if (!RuleReader::is_letter(reader.peek())) {
    return reader.expected("a factor", help);
  }
  std::string text(1, reader.peek());
  reader.go_to(reader.at() + 1);
  while (RuleReader::is_digit(reader.peek()) &&
         text.size() < FactorName::kMostLetters) {
    text += reader.peek();
    reader.go_to(reader.at() + 1);
  }
  if (RuleReader::is_digit(reader.peek())) {
    return RuleReader::wrong("a factor has a name of more than 15 letters", at,
                             help);
  }
  return FactorName(text);
}

}  // namespace shardprop
