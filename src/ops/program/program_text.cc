#include "ops/program/program_text.h"

#include "base/try.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <limits>

namespace shardprop {
namespace {

// An expression nests at most this deeply, which is far above any definition
// here. The limit bounds the recursion of the parser.
constexpr int kMostNested = 64;
// Unit: values, calls and operators of a program. The limit bounds the recursion
// over long sums and over steps that read each other's results; the longest
// program here has about 500.
constexpr int kMostProgramNodes = 3000;

class ProgramParser {
 public:
  // `from` is the column of the line in the text of the user; `nodes` counts
  // those of the program.
  ProgramParser(std::string_view text, std::size_t from, int& nodes)
      : text_(text), from_(from), nodes_(nodes) {}

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

  tl::unexpected<Error> expected(std::string_view what) const {
    std::string found = "the end";
    if (at_ < text_.size()) {
      const char c = text_[at_];
      found = c > ' ' && c <= '~' ? '`' + std::string(1, c) + '`'
                                  : "a character that is not printable";
    }
    return error("expected " + std::string(what) + ", found " + found, at_);
  }
  tl::unexpected<Error> error(std::string message, std::size_t at) const {
    return fail(Error{ErrorCode::kProgramSyntax,
                      std::move(message),
                      "column " + std::to_string(from_ + at + 1),
                      {},
                      "a program is assignments and a return, such as "
                      "e = exp(x); return e / sum(e, [0], True)"});
  }

 private:
  Result<ExpressionPtr> make(Expression expression) {
    if (++nodes_ > kMostProgramNodes) {
      return error("a program has more than 3000 values, calls and operators",
                   at_);
    }
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
      SP_ASSIGN(left,
                make({BinaryExpression{std::string(found), left, right}}));
    }
  }

  Result<ExpressionPtr> comparison(int depth) {
    if (depth > kMostNested) {
      return error("an expression nests more than 64 levels deep", at_);
    }
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
      if (!take(")")) return expected("an operator or `)`");
      return inner;
    }
    if (take("[")) {
      ListExpression list;
      while (!take("]")) {
        SP_ASSIGN(ExpressionPtr element, comparison(depth + 1));
        list.elements.push_back(std::move(element));
        if (!take(",") && text_.substr(at_, 1) != "]") {
          return expected("`,` or `]`");
        }
      }
      return make({std::move(list)});
    }
    if (at_ < text_.size() &&
        (text_[at_] == '-' ||
         std::isdigit(static_cast<unsigned char>(text_[at_])) != 0)) {
      return number();
    }
    const std::size_t start = at_;
    const std::string word = name();
    if (word.empty()) return expected("a value");
    if (word == "True" || word == "False") {
      return make({NumberExpression{word == "True"}});
    }
    if (word == "inf") {
      return make({NumberExpression{std::numeric_limits<double>::infinity()}});
    }
    if (word == "None") return make({NoneExpression{}});
    if (take("(")) return call(word, start, depth);
    return make({NameExpression{word, from_ + start}});
  }

  Result<ExpressionPtr> number() {
    std::size_t end = at_ + 1;
    while (end < text_.size() &&
           (std::isdigit(static_cast<unsigned char>(text_[end])) != 0 ||
            text_[end] == '.')) {
      ++end;
    }
    const std::string_view digits = text_.substr(at_, end - at_);
    const std::size_t from = at_;
    at_ = end;
    if (digits.find('.') == std::string_view::npos) {
      std::int64_t value = 0;
      const auto [stop, code] =
          std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (code != std::errc() || stop != digits.data() + digits.size()) {
        return error("`" + std::string(digits) + "` is no number", from);
      }
      return make({NumberExpression{value}});
    }
    double value = 0;
    const auto [stop, code] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code != std::errc() || stop != digits.data() + digits.size()) {
      return error("`" + std::string(digits) + "` is no number", from);
    }
    return make({NumberExpression{value}});
  }

  // `start` is where the name of the function begins.
  Result<ExpressionPtr> call(std::string function, std::size_t start,
                             int depth) {
    CallExpression call{std::move(function), {}, {}, from_ + start};
    while (!take(")")) {
      skip_blanks();
      const std::size_t before = at_;
      const std::string word = name();
      skip_blanks();
      const bool is_named =
          !word.empty() && text_.substr(at_, 2) != "==" && take("=");
      if (!is_named) at_ = before;
      SP_ASSIGN(ExpressionPtr value, comparison(depth + 1));
      if (is_named) {
        call.named.emplace_back(word, std::move(value));
        call.named_at.push_back(from_ + before);
      } else {
        call.positional.push_back(std::move(value));
      }
      skip_blanks();
      if (!take(",") && text_.substr(at_, 1) != ")") {
        return expected("`,` or `)`");
      }
    }
    return make({std::move(call)});
  }

  std::string_view text_;
  std::size_t from_;
  std::size_t at_ = 0;
  int& nodes_;
};

Result<void> parse_line(std::string_view line, std::size_t from, int& nodes,
                        ProgramText& program) {
  ProgramParser parser(line, from, nodes);
  if (parser.done()) return {};
  const std::size_t start = parser.place();
  const std::string first = parser.name();
  if (first == "return") {
    program.return_at = from + start;
    do {
      SP_ASSIGN(ExpressionPtr value, parser.expression());
      program.results.push_back(std::move(value));
    } while (parser.take(","));
    if (!parser.done()) return parser.expected("`,` or the end of the line");
    return {};
  }
  ProgramLine out;
  out.at = from + start;
  out.names.push_back(first);
  while (parser.take(",")) out.names.push_back(parser.name());
  const bool named = std::none_of(out.names.begin(), out.names.end(),
                                  [](const auto& n) { return n.empty(); });
  if (!named || !parser.take("=")) {
    parser.back_to(start);
    return parser.expected("an assignment, such as x = exp(self), or `return`");
  }
  SP_ASSIGN(out.value, parser.expression());
  if (parser.take("if ")) {
    out.negated = parser.take("not ");
    parser.skip_blanks();
    out.condition_at = from + parser.place();
    out.condition = parser.name();
    if (out.condition.empty()) return parser.expected("a name");
  }
  if (!parser.done())
    return parser.expected("an operator, `if` or the end of the line");
  program.lines.push_back(std::move(out));
  return {};
}

}  // namespace

std::string_view operator_named(std::string_view op) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"+", "add"}, {"-", "sub"}, {"*", "mul"}, {"/", "div"},
      {"<", "lt"},  {">=", "ge"}, {"==", "eq"}, {"|", "bitwise_or"}};
  const auto* found =
      std::find_if(std::begin(kNames), std::end(kNames),
                   [&](const auto& known) { return known.first == op; });
  if (found == std::end(kNames)) {
    throw InternalError("no operator of programs is `" + std::string(op) + '`');
  }
  return found->second;
}

Result<ProgramText> parse_program(std::string_view text, std::size_t from) {
  ProgramText program;
  std::size_t at = 0;
  int nodes = 0;
  while (at < text.size()) {
    const std::size_t end =
        std::min(text.find_first_of("\n;", at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const std::size_t word = line.find_first_not_of(" \t");
    if (!program.results.empty() && word != std::string_view::npos) {
      return ProgramParser(line, from + at, nodes)
          .error("the program goes on after `return`", word);
    }
    SP_CHECK(parse_line(line, from + at, nodes, program));
    at = end + 1;
  }
  if (program.results.empty()) {
    return ProgramParser(text, from, nodes)
        .error("the program has no `return`", text.size());
  }
  return program;
}

}  // namespace shardprop
