#include "ops/program_text.h"

#include "base/try.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

namespace shardprop {
namespace {

// An expression nests at most this deeply, which is far above any definition
// here. The limit bounds the recursion of the parser.
constexpr int kMostNested = 64;

class ProgramParser {
 public:
  explicit ProgramParser(std::string_view text) : text_(text) {}

  Result<ExpressionPtr> expression() { return comparison(0); }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) {
      ++at_;
    }
  }
  bool take(std::string_view token) {
    skip_blanks();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  std::string name() {
    skip_blanks();
    std::size_t end = at_;
    const auto is_part = [&](char c) {
      return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
    };
    while (end < text_.size() && is_part(text_[end])) ++end;
    std::string out(text_.substr(at_, end - at_));
    if (!out.empty() && std::isdigit(static_cast<unsigned char>(out[0])) != 0) {
      return {};
    }
    at_ = end;
    return out;
  }
  bool done() {
    skip_blanks();
    return at_ == text_.size();
  }
  std::size_t place() const { return at_; }
  void back_to(std::size_t place) { at_ = place; }

  tl::unexpected<Error> error(std::string_view what) const {
    return fail(ErrorCode::kProgramSyntax,
                "a program of an operator: " + std::string(what) + " at `" +
                    std::string(text_.substr(std::min(at_, text_.size()), 20)) +
                    "`");
  }

 private:
  static ExpressionPtr make(Expression expression) {
    return std::make_shared<const Expression>(std::move(expression));
  }

  template <class Operand>
  Result<ExpressionPtr> chain(std::initializer_list<std::string_view> operators,
                              int depth, Operand operand) {
    SP_ASSIGN(ExpressionPtr left, operand(depth));
    while (true) {
      std::string_view found;
      for (const std::string_view op : operators) {
        if (take(op)) {
          found = op;
          break;
        }
      }
      if (found.empty()) return left;
      SP_ASSIGN(ExpressionPtr right, operand(depth));
      left = make({BinaryExpression{std::string(found), left, right}});
    }
  }

  Result<ExpressionPtr> comparison(int depth) {
    if (depth > kMostNested) return error("it nests too deep");
    return chain({"|", "<", ">=", "=="}, depth,
                 [this](int d) { return sum(d); });
  }
  Result<ExpressionPtr> sum(int depth) {
    return chain({"+", "-"}, depth, [this](int d) { return product(d); });
  }
  Result<ExpressionPtr> product(int depth) {
    return chain({"*", "/"}, depth, [this](int d) { return atom(d); });
  }

  Result<ExpressionPtr> atom(int depth) {
    skip_blanks();
    if (take("(")) {
      SP_ASSIGN(ExpressionPtr inner, comparison(depth + 1));
      if (!take(")")) return error("`)` is missing");
      return inner;
    }
    if (take("[")) {
      ListExpression list;
      while (!take("]")) {
        SP_ASSIGN(ExpressionPtr element, comparison(depth + 1));
        list.elements.push_back(std::move(element));
        if (!take(",") && text_.substr(at_, 1) != "]") {
          return error("`,` or `]` is missing");
        }
      }
      return make({std::move(list)});
    }
    if (at_ < text_.size() &&
        (text_[at_] == '-' ||
         std::isdigit(static_cast<unsigned char>(text_[at_])) != 0)) {
      return number();
    }
    const std::string word = name();
    if (word.empty()) return error("a value is missing");
    if (word == "True" || word == "False") {
      return make({NumberExpression{word == "True"}});
    }
    if (word == "inf") {
      return make({NumberExpression{std::numeric_limits<double>::infinity()}});
    }
    if (word == "None") return make({NoneExpression{}});
    if (take("(")) return call(word, depth);
    return make({NameExpression{word}});
  }

  Result<ExpressionPtr> number() {
    std::size_t end = at_ + 1;
    while (end < text_.size() &&
           (std::isdigit(static_cast<unsigned char>(text_[end])) != 0 ||
            text_[end] == '.')) {
      ++end;
    }
    const std::string_view digits = text_.substr(at_, end - at_);
    at_ = end;
    if (digits.find('.') == std::string_view::npos) {
      std::int64_t value = 0;
      const auto [stop, code] =
          std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (code != std::errc()) return error("not a number");
      return make({NumberExpression{value}});
    }
    double value = 0;
    const auto [stop, code] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code != std::errc()) return error("not a number");
    return make({NumberExpression{value}});
  }

  Result<ExpressionPtr> call(std::string function, int depth) {
    CallExpression call{std::move(function), {}, {}};
    while (!take(")")) {
      const std::size_t before = at_;
      const std::string word = name();
      const bool is_named =
          !word.empty() && text_.substr(at_, 2) != "==" && take("=");
      if (!is_named) at_ = before;
      SP_ASSIGN(ExpressionPtr value, comparison(depth + 1));
      if (is_named) {
        call.named.emplace_back(word, std::move(value));
      } else {
        call.positional.push_back(std::move(value));
      }
      skip_blanks();
      if (!take(",") && text_.substr(at_, 1) != ")") {
        return error("`,` or `)` is missing");
      }
    }
    return make({std::move(call)});
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

Result<void> parse_line(std::string_view line, ProgramText& program) {
  ProgramParser parser(line);
  if (parser.done()) return {};
  const std::size_t start = parser.place();
  const std::string first = parser.name();
  if (first == "return") {
    do {
      SP_ASSIGN(ExpressionPtr value, parser.expression());
      program.results.push_back(std::move(value));
    } while (parser.take(","));
    if (!parser.done()) return parser.error("something stands behind the end");
    return {};
  }
  ProgramLine out;
  out.names.push_back(first);
  while (parser.take(",")) out.names.push_back(parser.name());
  const bool named = std::none_of(out.names.begin(), out.names.end(),
                                  [](const auto& n) { return n.empty(); });
  if (!named || !parser.take("=")) {
    parser.back_to(start);
    return parser.error("an assignment or `return` is expected");
  }
  SP_ASSIGN(out.value, parser.expression());
  if (parser.take("if ")) {
    out.negated = parser.take("not ");
    out.condition = parser.name();
  }
  if (!parser.done()) return parser.error("something stands behind the end");
  program.lines.push_back(std::move(out));
  return {};
}

}  // namespace

Result<ProgramText> parse_program(std::string_view text) {
  ProgramText program;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\n;"), text.size());
    if (!program.results.empty() && text.substr(0, end).find_first_not_of(
                                        " \t") != std::string_view::npos) {
      return fail(ErrorCode::kProgramSyntax,
                  "a program of an operator goes on after `return`");
    }
    SP_CHECK(parse_line(text.substr(0, end), program));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (program.results.empty()) {
    return fail(ErrorCode::kProgramSyntax,
                "a program of an operator returns nothing");
  }
  return program;
}

}  // namespace shardprop
