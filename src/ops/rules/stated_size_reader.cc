#include "ops/rules/stated_size_reader.h"

#include "base/parse_int.h"
#include "base/try.h"
#include "ops/rules/factor_name_reader.h"
#include "ops/rules/notation_parser.h"
#include "ops/rules/rule_words.h"

#include <algorithm>
#include <string>

namespace shardprop {
namespace {

Result<FactorName> known_name(RuleReader& in,
                              const std::vector<FactorName>& known) {
  const std::size_t at = in.at();
  SP_ASSIGN(const FactorName made, read_factor_name(in, kNotationHelp));
  if (std::find(known.begin(), known.end(), made) != known.end()) return made;
  return RuleReader::wrong("no operand has `" + std::string(made.text()) + '`',
                           at, kNotationHelp);
}

Result<void> read_smaller(RuleReader& in, const std::vector<FactorName>& known,
                          StatedSize& size) {
  size.kind = StatedSize::Kind::kSmaller;
  in.skip("(");
  SP_ASSIGN(size.first, known_name(in, known));
  if (!in.skip(",")) return in.expected("`,`", kNotationHelp);
  SP_ASSIGN(size.second, known_name(in, known));
  if (!in.skip(")")) return in.expected("`)`", kNotationHelp);
  return {};
}

Result<void> read_element(RuleReader& in, StatedSize& size) {
  if (!in.skip("[")) return {};
  const std::size_t at = in.at();
  const auto element = parse_int(in.word());
  if (!element || *element < 0 || *element >= 64) {
    in.go_to(at);
    return in.expected("the index of an element, from 0 to 63", kNotationHelp);
  }
  size.element = static_cast<int>(*element);
  if (!in.skip("]")) return in.expected("`]`", kNotationHelp);
  return {};
}

}  // namespace

Result<StatedSize> read_stated_size(RuleReader& in, const FactorName& factor,
                                    const std::vector<FactorName>& known,
                                    bool is_result, bool is_complete,
                                    RuleNames* names) {
  in.skip(":");
  StatedSize made{factor};
  const std::size_t at = in.at();
  if (in.skip("?")) {
    made.kind = StatedSize::Kind::kData;
    return made;
  }
  const std::string_view word = in.word();
  if (word.empty()) {
    return in.expected("a number, an argument or `?`", kNotationHelp);
  }
  if (const auto number = parse_int(word)) {
    made.number = *number;
    return made;
  }
  if (RuleReader::is_digit(word[0])) {
    return RuleReader::wrong("expected a size, found `" + std::string(word) +
                                 "`, which is no integer of 64 bits",
                             at, kNotationHelp);
  }
  if (!in.is_next("(")) {
    made.kind = StatedSize::Kind::kArgument;
    made.argument = word;
    SP_CHECK(read_element(in, made));
    if (names != nullptr) {
      names->names.push_back(
          {made.argument, at,
           made.element < 0 ? NameKind::kInteger : NameKind::kIntegers,
           std::string(factor.text()) + ':' + made.argument});
      if (made.element >= 0) {
        names->names.back().value = std::to_string(made.element);
        names->names.back().value_at = at + word.size() + 1;
      }
    }
    return made;
  }
  if (!is_result ||
      std::find(known.begin(), known.end(), factor) != known.end()) {
    return RuleReader::wrong("an operand has a size that others determine", at,
                             kNotationHelp);
  }
  if (word == "min") {
    SP_CHECK(read_smaller(in, known, made));
    return made;
  }
  made.kind = StatedSize::Kind::kWord;
  made.argument = word;
  in.skip("(");
  if (!in.skip(")")) return in.expected("`)`", kNotationHelp);
  if (names != nullptr) names->words.push_back({made.argument + "()", at});
  if (!is_complete || rule_words().find_size(word) != nullptr) return made;
  return RuleReader::wrong("`" + std::string(word) + "()` is no size", at,
                           kNotationHelp);
}

}  // namespace shardprop
