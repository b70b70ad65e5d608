#include "ops/schema/schema_parser.h"

#include "base/try.h"
#include "ops/schema/argument_check.h"
#include "ops/schema/argument_types.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

constexpr std::string_view kNameEnds = " \t\n,()[]?=!|";

class SchemaParser {
 public:
  explicit SchemaParser(std::string_view text) : text_(text) {}

  Result<ParsedSchema> run() {
    ParsedSchema schema;
    SP_ASSIGN(schema.name, operator_name());
    SP_ASSIGN(schema.arguments, arguments());
    skip_blanks();
    if (!take("->")) return wrong("`->` and the results are missing");
    SP_ASSIGN(schema.returns, returns());
    skip_blanks();
    if (at_ != text_.size()) return wrong("more follows after the results");
    return schema;
  }

 private:
  tl::unexpected<Error> wrong(const std::string& why) const {
    return fail(Error{ErrorCode::kSchemaSyntax,
                      "a declaration is malformed: " + why,
                      "column " + std::to_string(at_ + 1),
                      {std::string(text_)},
                      "write it as PyTorch prints it: ns::name.overload(Tensor "
                      "self, int dim=0) -> Tensor"});
  }

  tl::unexpected<Error> wrong_at(std::size_t at, std::string why,
                                 std::string help) const {
    return fail(Error{ErrorCode::kSchemaSyntax,
                      "a declaration is malformed: " + std::move(why),
                      "column " + std::to_string(at + 1),
                      {std::string(text_)},
                      std::move(help)});
  }

  void skip_blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) {
      ++at_;
    }
  }
  bool take(std::string_view token) {
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  std::string_view take_name() {
    const std::size_t end = text_.find_first_of(kNameEnds, at_);
    const std::string_view name = text_.substr(at_, end - at_);
    at_ += name.size();
    return name;
  }

  Result<std::string> operator_name() {
    skip_blanks();
    const std::size_t open = text_.find('(', at_);
    if (open == std::string_view::npos) return wrong("no `(` in it");
    const std::string_view full = text_.substr(at_, open - at_);
    const std::size_t colons = full.find("::");
    if (colons == std::string_view::npos || colons == 0) {
      return wrong("the operator has no namespace");
    }
    const std::string_view rest = full.substr(colons + 2);
    const std::size_t dot = rest.find('.');
    const std::string_view base = rest.substr(0, dot);
    const std::string_view overload = dot == std::string_view::npos
                                          ? std::string_view("default")
                                          : rest.substr(dot + 1);
    if (base.empty() || overload.empty() ||
        full.find_first_of(" \t\n,[]?=!|") != std::string_view::npos) {
      return wrong("`" + std::string(full) + "` is not an operator name");
    }
    at_ = open + 1;
    return std::string(full.substr(0, colons)) + '.' + std::string(base) + '.' +
           std::string(overload);
  }

  Result<std::vector<ArgumentSchema>> arguments() {
    std::vector<ArgumentSchema> list;
    bool keyword_only = false;
    skip_blanks();
    if (take(")")) return list;
    while (true) {
      skip_blanks();
      if (take("*")) {
        if (keyword_only) return wrong("a second `*`");
        keyword_only = true;
      } else {
        SP_ASSIGN(ArgumentSchema argument, type());
        skip_blanks();
        argument.name = take_name();
        if (argument.name.empty()) return wrong("an argument without a name");
        for (const ArgumentSchema& other : list) {
          if (other.name == argument.name) {
            return wrong("`" + argument.name + "` is declared twice");
          }
        }
        argument.keyword_only = keyword_only;
        skip_blanks();
        if (take("=")) {
          skip_blanks();
          argument.has_default = true;
          const std::size_t start = at_;
          SP_ASSIGN(argument.default_value, default_of(argument));
          SP_CHECK(check_default(argument, start));
        }
        list.push_back(std::move(argument));
      }
      skip_blanks();
      if (take(")")) return list;
      if (!take(",")) return wrong("`,` or `)` expected");
    }
  }

  Result<std::vector<ArgumentSchema>> returns() {
    std::vector<ArgumentSchema> list;
    skip_blanks();
    if (!take("(")) {
      SP_ASSIGN(ArgumentSchema result, type());
      skip_blanks();
      result.name = take_name();
      list.push_back(std::move(result));
      return list;
    }
    skip_blanks();
    if (take(")")) return list;
    while (true) {
      skip_blanks();
      SP_ASSIGN(ArgumentSchema result, type());
      skip_blanks();
      result.name = take_name();
      list.push_back(std::move(result));
      skip_blanks();
      if (take(")")) return list;
      if (!take(",")) return wrong("`,` or `)` expected");
    }
  }

  Result<ArgumentSchema> type() {
    ArgumentSchema argument;
    const std::size_t start = at_;
    const std::string_view name = take_name();
    if (name.empty()) return wrong("a type is missing");
    argument.type_name = name;
    argument.type = argument_type(name);
    if (argument.type == ArgumentType::kOther && !is_other_type(name)) {
      return wrong_at(start,
                      "expected a type, found `" + std::string(name) + '`',
                      help_for_type(name));
    }
    if (name == "Dict") {
      const std::size_t close = text_.find(')', at_);
      if (close == std::string_view::npos) return wrong("an open `Dict(`");
      argument.type_name += text_.substr(at_, close + 1 - at_);
      at_ = close + 1;
    } else if (take("(")) {
      SP_ASSIGN(argument.alias, alias());
    }
    while (true) {
      if (take("?")) {
        argument.is_optional = true;
      } else if (take("[")) {
        if (argument.is_list) return wrong("a list of lists");
        // `Tensor?[]`: the mark before the brackets belongs to the elements.
        argument.elements_optional = std::exchange(argument.is_optional, false);
        argument.is_list = true;
        if (!take("]")) {
          std::int64_t size = 0;
          const auto [stop, code] = std::from_chars(
              text_.data() + at_, text_.data() + text_.size(), size);
          if (code != std::errc() || size < 1) return wrong("no list size");
          at_ = static_cast<std::size_t>(stop - text_.data());
          if (!take("]")) return wrong("`]` expected");
          argument.list_size = size;
        }
      } else {
        return argument;
      }
    }
  }

  bool next_is(std::string_view token) const {
    return text_.substr(at_, token.size()) == token;
  }

  Result<std::optional<AliasInfo>> alias() {
    AliasInfo info;
    while (at_ < text_.size() && !next_is(")")) {
      if (take("!")) {
        info.writes = true;
      } else if (take(" -> *")) {
        info.joins_wildcard = true;
      } else if (text_[at_] == ' ') {
        return wrong("an alias annotation is malformed");
      } else {
        info.set += text_[at_++];
      }
    }
    if (!take(")") || info.set.empty()) {
      return wrong("an alias annotation is malformed");
    }
    return std::optional<AliasInfo>(std::move(info));
  }

  Result<Argument> default_of(const ArgumentSchema& argument) {
    if (take("None")) return Argument(NoneArg{});
    if (take("[")) return default_list(argument);
    const std::size_t start = at_;
    SP_ASSIGN(Argument value, literal());
    if (argument.type == ArgumentType::kInt && !argument.is_list &&
        std::holds_alternative<double>(value)) {
      return wrong_at(start,
                      "expected an integer of 64 bits, found `" +
                          std::string(text_.substr(start, at_ - start)) + '`',
                      "declare the argument as float if it may be a fraction");
    }
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      for (const EnumeratedDefault& known : enumerated_defaults()) {
        if (known.type_name == argument.type_name && known.number == *number) {
          return known.value;
        }
      }
    }
    return value;
  }

  // `start` is where the default begins.
  Result<void> check_default(const ArgumentSchema& argument,
                             std::size_t start) const {
    if (fits_as_default(argument)) return {};
    const std::string type = describe_type(argument);
    return wrong_at(
        start,
        "expected a default of the type `" + type + "`, found `" +
            std::string(text_.substr(start, at_ - start)) + '`',
        std::holds_alternative<NoneArg>(argument.default_value)
            ? "declare the argument as `" + type + "? " + argument.name + '`'
            : "write a value of that type, such as " +
                  std::string(example_of(argument)));
  }

  Result<Argument> default_list(const ArgumentSchema& argument) {
    std::vector<std::int64_t> ints;
    std::vector<double> floats;
    std::vector<bool> bools;
    std::vector<std::string> strings;
    skip_blanks();
    while (!take("]")) {
      SP_ASSIGN(Argument value, literal());
      if (const auto* i = std::get_if<std::int64_t>(&value)) {
        ints.push_back(*i);
      } else if (const auto* d = std::get_if<double>(&value)) {
        floats.push_back(*d);
      } else if (const auto* b = std::get_if<bool>(&value)) {
        bools.push_back(*b);
      } else {
        strings.push_back(std::get<std::string>(std::move(value)));
      }
      skip_blanks();
      if (take(",")) {
        skip_blanks();
      } else if (!next_is("]")) {
        return wrong("`,` or `]` expected");
      }
    }
    const int kinds =
        static_cast<int>(!ints.empty()) + static_cast<int>(!floats.empty()) +
        static_cast<int>(!bools.empty()) + static_cast<int>(!strings.empty());
    if (kinds > 1) return wrong("a default list of several types");
    if (!floats.empty()) return Argument(std::move(floats));
    if (!bools.empty()) return Argument(std::move(bools));
    if (!strings.empty()) return Argument(std::move(strings));
    if (ints.empty() && argument.type == ArgumentType::kTensor) {
      return Argument(std::vector<TensorArg>{});
    }
    return Argument(std::move(ints));
  }

  Result<Argument> literal() {
    if (take("True")) return Argument(true);
    if (take("False")) return Argument(false);
    if (next_is("\"") || next_is("'")) return quoted();
    const std::size_t end = text_.find_first_of(" ,])", at_);
    const std::string_view token = text_.substr(at_, end - at_);
    const char* const first = token.data();
    const char* const last = first + token.size();
    std::int64_t integer = 0;
    if (const auto [stop, code] = std::from_chars(first, last, integer);
        code == std::errc() && stop == last) {
      at_ += token.size();
      return Argument(integer);
    }
    double real = 0;
    if (const auto [stop, code] = std::from_chars(first, last, real);
        code == std::errc() && stop == last) {
      at_ += token.size();
      return Argument(real);
    }
    return wrong("`" + std::string(token) + "` is not a default value");
  }

  Result<Argument> quoted() {
    const char quote = text_[at_++];
    std::string out;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      out += text_[at_++];
    }
    if (at_ == text_.size()) return wrong("an open string");
    ++at_;
    return Argument(std::move(out));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<ParsedSchema> parse_schema(std::string_view text) {
  return SchemaParser(text).run();
}

}  // namespace shardprop
