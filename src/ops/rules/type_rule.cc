#include "ops/rules/type_rule.h"

#include "base/try.h"
#include "ops/names/rule_names.h"
#include "ops/op_call.h"
#include "ops/rules/rule_reader.h"
#include "ops/rules/rule_words.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace shardprop {
namespace {

using TypeKind = TypeRule::Node::Kind;

constexpr std::string_view kTypeHelp =
    "a dtype rule is made of dtypes, `first`, names of arguments, `promoted`, "
    "`same`, and functions such as promote(x,y), floating(x), given(arg,x) and "
    "if(flag,x,y); docs/row_language.md lists them";
constexpr std::size_t kMostNodes = 64;

struct TypeWord {
  std::string_view name;
  TypeKind kind;
  // The kind of its argument, which is its first operand; kNone if it has none.
  NameKind argument;
  std::size_t operands;
};
constexpr TypeWord kTypeWords[] = {
    {"promote", TypeKind::kPromote, NameKind::kNone, 2},
    {"floating", TypeKind::kFloating, NameKind::kNone, 1},
    {"sum", TypeKind::kSum, NameKind::kNone, 1},
    {"real", TypeKind::kReal, NameKind::kNone, 1},
    {"complex", TypeKind::kComplex, NameKind::kNone, 1},
    {"given", TypeKind::kGiven, NameKind::kDType, 1},
    {"if", TypeKind::kIf, NameKind::kFlag, 2},
    {"alike", TypeKind::kAlike, NameKind::kNone, 2},
    {"no_bools", TypeKind::kNoBools, NameKind::kNone, 1},
    {"no_integers", TypeKind::kNoIntegers, NameKind::kNone, 1},
    {"only_bool", TypeKind::kOnlyBool, NameKind::kNone, 1},
    {"only_floating", TypeKind::kOnlyFloating, NameKind::kNone, 1},
    {"half", TypeKind::kHalf, NameKind::kNone, 1},
    {"truth", TypeKind::kTruth, NameKind::kNone, 1},
    {"stated", TypeKind::kStated, NameKind::kArgument, 2},
    {"scaled", TypeKind::kScaled, NameKind::kNumber, 1},
    {"not_bool", TypeKind::kNotBool, NameKind::kTensorOrNumber, 1},
    {"widened", TypeKind::kWidened, NameKind::kDType, 1},
    {"addend", TypeKind::kAddend, NameKind::kTensor, 1},
};

// Returns the dtype of that name; nullopt if it is none. The message of a
// refused name takes longer than all else that a library does with the word.
std::optional<DType> dtype_of(std::string_view word) {
  const bool has_size = word.size() > 1 && RuleReader::is_digit(word[1]);
  const bool may_be = has_size || word.starts_with("bf") || word == "bool";
  if (!may_be) return std::nullopt;
  const auto dtype = parse_dtype(word);
  return dtype ? std::optional<DType>(*dtype) : std::nullopt;
}

}  // namespace

class TypeRuleReader {
 public:
  TypeRuleReader(std::string_view text, std::size_t from, RuleNames* names)
      : in_(text, from), from_(from), names_(names) {}

  Result<TypeRule> read() {
    do {
      SP_ASSIGN(const std::size_t root, node());
      made_.results_.push_back(root);
    } while (in_.skip(","));
    if (!in_.is_at_end()) {
      return in_.expected("`,` or the end of the dtypes", kTypeHelp);
    }
    return std::move(made_);
  }

 private:
  Result<std::size_t> node() {
    if (++words_ > kMostNodes) {
      return in_.expected("at most 64 words", kTypeHelp);
    }
    in_.skip_blanks();
    const std::size_t at = in_.at();
    const std::string_view word = in_.word();
    if (word.empty()) return in_.expected("a dtype", kTypeHelp);
    TypeRule::Node made;
    if (in_.is_next("(")) {
      const auto* found =
          std::find_if(std::begin(kTypeWords), std::end(kTypeWords),
                       [&](const TypeWord& own) { return own.name == word; });
      if (found == std::end(kTypeWords) &&
          rule_words().find_dtype(word) != nullptr) {
        in_.skip("(");
        if (!in_.skip(")")) return in_.expected("`)`", kTypeHelp);
        made.kind = TypeKind::kWord;
        made.argument = word;
        if (names_ != nullptr) {
          names_->words.push_back({made.argument + "()", from_ + at});
        }
        made_.nodes_.push_back(std::move(made));
        in_.skip_blanks();
        return made_.nodes_.size() - 1;
      }
      if (found == std::end(kTypeWords)) {
        return RuleReader::wrong(
            "`" + std::string(word) + "` is no function of dtypes", from_ + at,
            kTypeHelp);
      }
      made.kind = found->kind;
      SP_CHECK(operands(*found, made));
    } else if (word == "promoted") {
      made.kind = TypeKind::kPromoted;
    } else if (word == "same") {
      made.kind = TypeKind::kSame;
    } else if (const auto dtype = dtype_of(word)) {
      made.kind = TypeKind::kDType;
      made.dtype = *dtype;
    } else if (word != "first") {
      made.kind = TypeKind::kArgument;
      made.argument = word;
      note(word, at, NameKind::kTypeOf, "typed");
    }
    in_.skip_blanks();
    made_.nodes_.push_back(std::move(made));
    return made_.nodes_.size() - 1;
  }

  Result<void> operands(const TypeWord& word, TypeRule::Node& made) {
    in_.skip("(");
    in_.skip_blanks();
    const bool has_argument = word.argument != NameKind::kNone;
    if (has_argument) {
      const std::size_t at = in_.at();
      made.argument = in_.word();
      if (made.argument.empty()) {
        return in_.expected("the name of an argument", kTypeHelp);
      }
      note(made.argument, at, word.argument, word.name);
      in_.skip_blanks();
    }
    for (std::size_t i = 0; i < word.operands; ++i) {
      if (i > 0 || has_argument) {
        if (!in_.skip(",")) return in_.expected("`,`", kTypeHelp);
      }
      SP_ASSIGN(const std::size_t operand, node());
      made.operands.push_back(operand);
    }
    if (!in_.skip(")")) return in_.expected("`)`", kTypeHelp);
    return {};
  }

  void note(std::string_view name, std::size_t at, NameKind kind,
            std::string_view word) {
    if (names_ == nullptr) return;
    names_->names.push_back(
        {std::string(name), from_ + at, kind, std::string(word)});
  }

  RuleReader in_;
  std::size_t from_;
  RuleNames* names_;
  TypeRule made_;
  std::size_t words_ = 0;  // begun so far, which bounds the nesting too
};

Result<TypeRule> TypeRule::parse(std::string_view text, std::size_t from,
                                 RuleNames* names) {
  return TypeRuleReader(text, from, names).read();
}

bool TypeRule::has_word() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) {
    return node.kind == TypeKind::kWord;
  });
}

std::string TypeRule::text(const Node& node) const {
  switch (node.kind) {
    case TypeKind::kDType:
      return std::string(shardprop::to_string(node.dtype));
    case TypeKind::kFirst:
      return "first";
    case TypeKind::kArgument:
      return node.argument;
    case TypeKind::kPromoted:
      return "promoted";
    case TypeKind::kSame:
      return "same";
    case TypeKind::kWord:
      return node.argument + "()";
    default:
      break;
  }
  const auto* found =
      std::find_if(std::begin(kTypeWords), std::end(kTypeWords),
                   [&](const TypeWord& own) { return own.kind == node.kind; });
  std::string out = std::string(found->name) + '(' + node.argument;
  for (const std::size_t operand : node.operands) {
    if (out.back() != '(') out += ',';
    out += text(nodes_[operand]);
  }
  return out + ')';
}

std::string to_string(const TypeRule& rule) {
  std::string out;
  for (const std::size_t root : rule.results_) {
    if (!out.empty()) out += ',';
    out += rule.text(rule.nodes_[root]);
  }
  return out;
}

bool counts(DType dtype) { return is_integral(dtype) || dtype == DType::kBool; }

DType real_dtype(DType dtype) {
  switch (dtype) {
    case DType::kC32:
      return DType::kF16;
    case DType::kC64:
      return DType::kF32;
    case DType::kC128:
      return DType::kF64;
    default:
      return dtype;
  }
}

DType complex_dtype(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return DType::kC32;
    case DType::kF32:
      return DType::kC64;
    case DType::kF64:
      return DType::kC128;
    default:
      return dtype;
  }
}

}  // namespace shardprop
