// Builds and prints factor notations.

#include <shardprop/ops/notation.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace shardprop {
namespace {

constexpr int kLetters = 26;

bool is_letter_with_number(std::string_view name) {
  return std::isalpha(static_cast<unsigned char>(name[0])) != 0 &&
         std::all_of(name.begin() + 1, name.end(), [](char c) {
           return std::isdigit(static_cast<unsigned char>(c)) != 0;
         });
}

std::string name_text(const FactorName& name) {
  const std::string text(name.text());
  return is_letter_with_number(text) ? text : '<' + text + '>';
}

std::string size_text(const StatedSize& size) {
  switch (size.kind) {
    case StatedSize::Kind::kNumber:
      return std::to_string(size.number);
    case StatedSize::Kind::kData:
      return "?";
    case StatedSize::Kind::kWord:
      return size.argument + "()";
    case StatedSize::Kind::kSmaller:
      return "min(" + name_text(size.first) + ',' + name_text(size.second) +
             ')';
    case StatedSize::Kind::kArgument:
      break;
  }
  return size.element < 0
             ? size.argument
             : size.argument + '[' + std::to_string(size.element) + ']';
}

// `NotationPrinter` prints the terms of one notation. A stated size is printed
// where its factor first appears between brackets.
class NotationPrinter {
 public:
  explicit NotationPrinter(const std::vector<StatedSize>& sizes)
      : left_(sizes) {}

  std::string terms(const std::vector<Term>& list) {
    std::string text;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0) text += ',';
      text += term(list[i]);
    }
    return text;
  }

  std::string term(const Term& of) {
    std::string text;
    if (of.is_added) text += '+';
    if (of.is_replicated) text += '*';
    for (std::size_t d = 0; d < of.dims.size(); ++d) {
      const TermDim& dim = of.dims[d];
      // Neighbours in brackets of one kind share them: {mn}.
      const auto is_lone = [&](std::size_t at) {
        return at < of.dims.size() && of.dims[at].factors.size() == 1 &&
               of.dims[at].kind == TermDim::Kind::kFactors;
      };
      if (is_lone(d) && dim.factors[0].use != DimUse::kSharded) {
        const DimUse use = dim.factors[0].use;
        text += use == DimUse::kFull ? '{' : '[';
        text += bracketed(dim.factors[0]);
        // A stated size ends at the bracket.
        while (!has_size_ && is_lone(d + 1) &&
               of.dims[d + 1].factors[0].use == use) {
          text += bracketed(of.dims[++d].factors[0]);
        }
        text += use == DimUse::kFull ? '}' : ']';
        continue;
      }
      text += dim_text(dim);
    }
    if (of.is_each) text += '*';
    if (of.is_absent) text += ":none";
    if (of.is_always) text += ":always";
    if (of.order == ResultOrder::kColumnMajor) text += ":column_major";
    if (of.order == ResultOrder::kSwapped) text += ":swapped";
    return text;
  }

 private:
  std::string bracketed(const NamedFactor& factor) {
    std::string text = name_text(factor.name);
    has_size_ = false;
    const auto found = std::find_if(
        left_.begin(), left_.end(),
        [&](const StatedSize& size) { return size.name == factor.name; });
    if (found == left_.end()) return text;
    text += ':' + size_text(*found);
    left_.erase(found);
    has_size_ = true;
    return text;
  }

  std::string dim_text(const TermDim& dim) {
    if (dim.kind == TermDim::Kind::kAny) return "_";
    if (dim.kind == TermDim::Kind::kLeading) {
      return dim.group == 0 ? "..." : "..." + std::to_string(dim.group);
    }
    std::string text;
    for (const NamedFactor& factor : dim.factors) {
      text += factor.use == DimUse::kSharded ? name_text(factor.name)
                                             : '[' + bracketed(factor) + ']';
    }
    return dim.factors.size() == 1 ? text : '(' + text + ')';
  }

  std::vector<StatedSize> left_;
  bool has_size_ = false;  // of the factor that was printed last
};

std::string condition_text(const Condition& condition) {
  std::string text = condition.holds ? "" : "not ";
  text += condition.argument;
  if (!condition.word.empty()) text += " is " + condition.word;
  return text;
}

}  // namespace

FactorName FactorName::of_dim(int dim) {
  FactorName name(static_cast<char>('a' + dim % kLetters));
  if (dim >= kLetters) {
    std::to_chars(name.text_.data() + 1, name.text_.data() + kMostLetters,
                  dim / kLetters);
  }
  return name;
}

int FactorName::dim() const {
  int turns = 0;
  const std::string_view all = text();
  std::from_chars(all.data() + 1, all.data() + all.size(), turns);
  return letter() - 'a' + turns * kLetters;
}

std::string_view FactorName::text() const {
  const auto end = std::find(text_.begin(), text_.end(), '\0');
  return {text_.data(), static_cast<std::size_t>(end - text_.begin())};
}

Term& Term::add(FactorName name, DimUse use) {
  TermDim dim;
  dim.factors.push_back({name, use});
  dims.push_back(dim);
  return *this;
}

Term& Term::sharded(std::initializer_list<FactorName> names) {
  for (const FactorName& name : names) add(name);
  return *this;
}

Term& Term::full(std::initializer_list<FactorName> names) {
  for (const FactorName& name : names) add(name, DimUse::kFull);
  return *this;
}

Term& Term::compound(std::initializer_list<NamedFactor> factors) {
  TermDim dim;
  for (const NamedFactor& factor : factors) dim.factors.push_back(factor);
  dims.push_back(dim);
  return *this;
}

Term& Term::leading(std::uint8_t group) {
  TermDim dim;
  dim.kind = TermDim::Kind::kLeading;
  dim.group = group;
  dims.push_back(dim);
  return *this;
}

Term& Term::any() {
  TermDim dim;
  dim.kind = TermDim::Kind::kAny;
  dims.push_back(dim);
  return *this;
}

Term Term::replicated() {
  Term term;
  term.is_replicated = true;
  return term;
}

Term Term::absent() {
  Term term;
  term.is_absent = true;
  return term;
}

std::string to_string(const Term& term) {
  return NotationPrinter({}).term(term);
}

std::string to_string(const Notation& notation) {
  std::string text;
  for (std::size_t i = 0; i < notation.conditions.size(); ++i) {
    text += i == 0 ? "if " : " and ";
    text += condition_text(notation.conditions[i]);
  }
  if (!text.empty()) text += ": ";
  NotationPrinter printer(notation.sizes);
  text += printer.terms(notation.inputs);
  text += "->";
  return text + printer.terms(notation.outputs);
}

std::string to_string(const std::vector<Notation>& alternatives) {
  std::string text;
  for (std::size_t i = 0; i < alternatives.size(); ++i) {
    if (i > 0) text += " | ";
    text += to_string(alternatives[i]);
  }
  return text;
}

}  // namespace shardprop
