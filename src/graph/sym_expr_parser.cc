#include "base/parse_int.h"
#include "base/try.h"
#include "graph/sym_expr_node.h"

#include <optional>
#include <utility>

namespace shardprop {
namespace {

// This depth exceeds any size in a program and is far below any stack limit.
constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxLength = 4096;

struct NamedOp {
  std::string_view name;
  SymOp op;
  std::size_t least;
  std::size_t most;
};

constexpr std::size_t kAny = 1U << 16;
constexpr NamedOp kOps[] = {
    {"Add", SymOp::kAdd, 1, kAny},
    {"Mul", SymOp::kMultiply, 1, kAny},
    {"Pow", SymOp::kPower, 2, 2},
    {"PowByNatural", SymOp::kPower, 2, 2},
    {"Max", SymOp::kMax, 1, kAny},
    {"Min", SymOp::kMin, 1, kAny},
    {"FloorDiv", SymOp::kFloorDivide, 2, 2},
    {"CleanDiv", SymOp::kFloorDivide, 2, 2},
    {"Mod", SymOp::kModulo, 2, 2},
    {"PythonMod", SymOp::kModulo, 2, 2},
};

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '.';
}

SymNode make(SymOp op, std::int64_t value, std::string text,
             std::vector<SymNode> operands) {
  return std::make_shared<const SymExpr::Node>(
      SymExpr::Node{op, value, std::move(text), std::move(operands)});
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<SymNode> run() {
    if (text_.size() > kMaxLength) return wrong("it is too long");
    SP_ASSIGN(SymNode node, expression(0));
    skip_blanks();
    if (at_ != text_.size()) return wrong("more follows after it");
    return node;
  }

 private:
  tl::unexpected<Error> wrong(const char* why) const {
    constexpr std::size_t kMostShown = 200;
    return fail(Error{ErrorCode::kSymExprSyntax,
                      std::string("a symbolic size cannot be read: ") + why,
                      "column " + std::to_string(at_ + 1),
                      {std::string(text_.substr(0, kMostShown))},
                      "sizes are written as SymPy's srepr: Mul(Integer(2), "
                      "Symbol('s0'))"});
  }
  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string_view word() {
    skip_blanks();
    const std::size_t start = at_;
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }

  Result<SymNode> expression(int depth) {
    if (depth > kMaxDepth) return wrong("it nests too deep");
    skip_blanks();
    const std::size_t start = at_;
    const std::string_view name = word();
    if (name.empty()) return wrong("a name or number is missing");
    if (const auto integer = parse_int(name)) {
      return make(SymOp::kConstant, *integer, {}, {});
    }
    if (!take('(')) {
      return make(SymOp::kSymbol, 0, std::string(name), {});
    }
    if (name == "Symbol") return symbol();
    if (name == "Integer") return integer();
    std::vector<SymNode> operands;
    if (!take(')')) {
      do {
        if (take_text()) continue;
        SP_ASSIGN(SymNode operand, expression(depth + 1));
        if (!take('=')) {
          operands.push_back(std::move(operand));
        } else if (!take_text()) {
          SP_CHECK(expression(depth + 1));
        }
      } while (take(','));
      if (!take(')')) return wrong("`)` expected");
    }
    for (const NamedOp& known : kOps) {
      if (known.name == name && operands.size() >= known.least &&
          operands.size() <= known.most) {
        return make(known.op, 0, {}, std::move(operands));
      }
    }
    return make(SymOp::kOpaque, 0,
                std::string(text_.substr(start, at_ - start)),
                std::move(operands));
  }

  // Skips a quoted text such as '1.5' in Float('1.5', precision=53), which
  // remains opaque.
  bool take_text() {
    skip_blanks();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) {
      return false;
    }
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return false;
    at_ = end + 1;
    return true;
  }

  // Reads the rest of a symbol: 's77', positive=True, integer=True)
  Result<SymNode> symbol() {
    skip_blanks();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) {
      return wrong("a symbol has no name");
    }
    const char quote = text_[at_++];
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos || end == at_) {
      return wrong("a symbol has no name");
    }
    std::string name(text_.substr(at_, end - at_));
    at_ = end + 1;
    while (take(',')) {
      if (word().empty() || !take('=') || word().empty()) {
        return wrong("an assumption is malformed");
      }
    }
    if (!take(')')) return wrong("`)` expected");
    return make(SymOp::kSymbol, 0, std::move(name), {});
  }

  Result<SymNode> integer() {
    const auto value = parse_int(word());
    if (!value || !take(')')) return wrong("an integer is malformed");
    return make(SymOp::kConstant, *value, {}, {});
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<SymNode> parse_sym_node(std::string_view srepr) {
  return Parser(srepr).run();
}

}  // namespace shardprop
