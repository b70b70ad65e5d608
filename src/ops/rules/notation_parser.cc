// Parses factor notations. docs/row_language.md has the grammar.

#include "ops/rules/notation_parser.h"

#include "base/parse_int.h"
#include "base/try.h"
#include "ops/rules/factor_name_reader.h"
#include "ops/rules/stated_size_reader.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace shardprop {
namespace {

constexpr std::string_view kLeadingDims = "...";
constexpr std::string_view kArrow = "->";
// A tensor has far fewer dims. The bound keeps texts of a file small.
constexpr std::size_t kMostDims = 64;
constexpr std::size_t kMostTerms = 256;
constexpr std::size_t kMostAlternatives = 16;

class NotationReader {
 public:
  // With `is_complete`, every size of a result must be known without the
  // definition. `names` may be null.
  NotationReader(RuleReader& reader, bool is_complete, RuleNames* names)
      : in_(reader), is_complete_(is_complete), names_(names) {}

  Result<Notation> read() {
    SP_ASSIGN(made_.conditions, read_conditions(in_, names_));
    SP_ASSIGN(made_.inputs, terms(input_places_));
    in_.skip_blanks();
    const std::size_t arrow = in_.at();
    if (!in_.skip(kArrow)) {
      return in_.expected("a factor, `,` or `->`", kNotationHelp);
    }
    is_result_ = true;
    SP_ASSIGN(made_.outputs, terms(output_places_));
    if (is_complete_) SP_CHECK(check_sizes());
    if (names_ != nullptr) {
      names_->alternatives.push_back(
          {made_, std::move(input_places_), arrow, std::move(output_places_)});
    }
    return std::move(made_);
  }

 private:
  Result<void> check_sizes() const {
    for (const auto& [made, at] : result_sizes_) {
      const bool is_stated =
          std::any_of(made_.sizes.begin(), made_.sizes.end(),
                      [&, &made = made](const StatedSize& size) {
                        return size.name == made;
                      });
      if (is_stated) continue;
      return RuleReader::wrong(
          "no operand has `" + std::string(made.text()) +
              "`, and its size is not stated",
          at,
          "state the size: {c:2}, {n:num_samples}, or {n:?} if it "
          "depends on data");
    }
    return {};
  }

  // Adds the column of each term to `places` if names are wanted.
  Result<std::vector<Term>> terms(std::vector<std::size_t>& places) {
    std::vector<Term> list;
    do {
      in_.skip_blanks();
      if (names_ != nullptr) places.push_back(in_.at());
      if (list.size() == kMostTerms) {
        return RuleReader::wrong("a notation has more than 256 terms", in_.at(),
                                 kNotationHelp);
      }
      SP_ASSIGN(Term read, term());
      list.push_back(std::move(read));
    } while (in_.skip(","));
    return list;
  }

  Result<Term> term() {
    Term made;
    in_term_.clear();
    in_.skip_blanks();
    const std::size_t first = in_.at();
    if (in_.skip("+")) {
      if (is_result_) {
        return RuleReader::wrong("a result has a `+`", first, kNotationHelp);
      }
      made.is_added = true;
    }
    const bool may_star = !is_result_ && !made.is_added;
    if (may_star && in_.skip("*")) {
      made.is_replicated = true;
    } else {
      SP_CHECK(dims(made));
    }
    if (may_star && in_.skip("*")) made.is_each = true;
    if (in_.is_next("*")) {
      return RuleReader::wrong(is_result_      ? "a result has a `*`"
                               : made.is_added ? "a term has a `+` and a `*`"
                                               : "a term has three `*`",
                               in_.at(), kNotationHelp);
    }
    in_.skip_blanks();
    if (in_.is_next("+")) {
      return RuleReader::wrong("a `+` is not first in its term", in_.at(),
                               kNotationHelp);
    }
    while (in_.is_next(":")) SP_CHECK(flag(made));
    in_.skip_blanks();
    return made;
  }

  Result<void> dims(Term& term) {
    while (true) {
      in_.skip_blanks();
      if (term.dims.size() > kMostDims) {
        return RuleReader::wrong("a term has more than 64 dims", in_.at(),
                                 kNotationHelp);
      }
      const char c = in_.peek();
      if (in_.is_next(kLeadingDims)) {
        SP_CHECK(leading(term));
      } else if (c == '(') {
        SP_CHECK(compound(term));
      } else if (c == '[' || c == '{') {
        SP_CHECK(bracketed(term));
      } else if (c == '_') {
        in_.skip("_");
        term.any();
      } else if (RuleReader::is_letter(c) || c == '<') {
        SP_ASSIGN(const FactorName made, name(DimUse::kSharded));
        term.add(made);
      } else {
        return {};
      }
    }
  }

  Result<void> leading(Term& term) {
    const std::size_t at = in_.at();
    in_.skip(kLeadingDims);
    std::uint8_t group = 0;
    if (RuleReader::is_digit(in_.peek())) {
      group = static_cast<std::uint8_t>(in_.peek() - '0');
      in_.go_to(in_.at() + 1);
    }
    for (const TermDim& dim : term.dims) {
      if (dim.kind == TermDim::Kind::kLeading) {
        return RuleReader::wrong("a term has two `...`", at, kNotationHelp);
      }
    }
    term.leading(group);
    return {};
  }

  // Reads `(ab)` or `(k[j:128])`, one dim of several factors.
  Result<void> compound(Term& term) {
    const std::size_t opened = in_.at();
    in_.skip("(");
    TermDim dim;
    while (true) {
      in_.skip_blanks();
      if (in_.skip(")")) break;
      if (in_.is_next("[")) {
        in_.skip("[");
        SP_ASSIGN(const FactorName made, name(DimUse::kBlocked));
        SP_CHECK(size_of(made));
        in_.skip_blanks();
        if (!in_.skip("]")) return in_.expected("`]`", kNotationHelp);
        dim.factors.push_back({made, DimUse::kBlocked});
      } else if (RuleReader::is_letter(in_.peek()) || in_.is_next("<")) {
        SP_ASSIGN(const FactorName made, name(DimUse::kSharded));
        dim.factors.push_back({made});
      } else {
        return in_.expected("a factor, `[` or `)`", kNotationHelp);
      }
      if (dim.factors.size() > kMostDims) {
        return in_.expected("at most 64 factors", kNotationHelp);
      }
    }
    if (dim.factors.empty()) {
      return RuleReader::wrong("a dim `()` has no factor", opened,
                               kNotationHelp);
    }
    term.dims.push_back(dim);
    return {};
  }

  // Reads `[ab]` or `{ab:2}`, one dim per name.
  Result<void> bracketed(Term& term) {
    const std::size_t opened = in_.at();
    const bool is_full = in_.peek() == '{';
    const DimUse use = is_full ? DimUse::kFull : DimUse::kBlocked;
    in_.skip(is_full ? "{" : "[");
    std::size_t count = 0;
    while (true) {
      in_.skip_blanks();
      if (in_.skip(is_full ? "}" : "]")) break;
      if (in_.skip("_")) {
        term.any();
      } else if (RuleReader::is_letter(in_.peek()) || in_.is_next("<")) {
        SP_ASSIGN(const FactorName made, name(use));
        SP_CHECK(size_of(made));
        term.add(made, use);
      } else {
        return in_.expected(
            is_full ? "a factor, `_` or `}`" : "a factor, `_` or `]`",
            kNotationHelp);
      }
      if (++count > kMostDims) {
        return in_.expected("at most 64 factors", kNotationHelp);
      }
    }
    if (count == 0) {
      return RuleReader::wrong(
          is_full ? "`{}` has no factor" : "`[]` has no factor", opened,
          kNotationHelp);
    }
    return {};
  }

  // Reads the name of a factor of the term.
  Result<FactorName> name(DimUse use) {
    const std::size_t at = in_.at();
    SP_ASSIGN(const FactorName made, read_factor_name(in_, kNotationHelp));
    const bool is_known =
        std::find(known_.begin(), known_.end(), made) != known_.end();
    const std::string quoted = '`' + std::string(made.text()) + '`';
    // A blocked factor of two dims is their diagonal.
    for (const NamedFactor& other : in_term_) {
      if (other.name == made && use != DimUse::kFull &&
          (use == DimUse::kSharded || other.use == DimUse::kSharded)) {
        return RuleReader::wrong("a term has " + quoted + " twice", at,
                                 kNotationHelp);
      }
    }
    if (use != DimUse::kFull) {
      in_term_.push_back({made, use});
      if (!is_result_) {
        factors_.push_back(made);
      } else if (!is_known) {
        return RuleReader::wrong("no operand has " + quoted, at, kNotationHelp);
      } else if (std::find(factors_.begin(), factors_.end(), made) ==
                 factors_.end()) {
        return RuleReader::wrong("every operand has the full dim " + quoted +
                                     ": the result has `{" +
                                     std::string(made.text()) + "}`",
                                 at, kNotationHelp);
      }
    } else if (is_result_ && !is_known) {
      result_sizes_.emplace_back(made, at);
    }
    if (!is_result_ && !is_known) known_.push_back(made);
    return made;
  }

  // Reads the size after a name, if there is one.
  Result<void> size_of(const FactorName& factor) {
    if (!in_.is_next(":")) return {};
    const std::size_t at = in_.at() + 1;
    SP_ASSIGN(StatedSize made, read_stated_size(in_, factor, known_, is_result_,
                                                is_complete_, names_));
    const bool is_stated = std::any_of(
        made_.sizes.begin(), made_.sizes.end(),
        [&](const StatedSize& size) { return size.name == factor; });
    if (is_stated) {
      return RuleReader::wrong(
          "the size of `" + std::string(factor.text()) + "` is stated twice",
          at, kNotationHelp);
    }
    made_.sizes.push_back(std::move(made));
    return {};
  }

  Result<void> flag(Term& term) {
    const std::size_t at = in_.at();
    in_.skip(":");
    const std::string_view word = in_.word();
    if (!is_result_) {
      return RuleReader::wrong("an operand has a mark of results", at,
                               kNotationHelp);
    }
    if (word == "none" && term == Term()) {
      term.is_absent = true;
    } else if (word == "always") {
      term.is_always = true;
    } else if (word == "column_major") {
      term.order = ResultOrder::kColumnMajor;
    } else if (word == "swapped") {
      term.order = ResultOrder::kSwapped;
    } else {
      in_.go_to(at + 1);
      return in_.expected("column_major, swapped, always, or none after no dim",
                          kNotationHelp);
    }
    return {};
  }

  RuleReader& in_;
  bool is_complete_;
  RuleNames* names_;
  std::vector<std::size_t> input_places_;  // columns of the terms
  std::vector<std::size_t> output_places_;
  Notation made_;
  bool is_result_ = false;
  std::vector<FactorName> known_;     // factors and sizes of the operands
  std::vector<FactorName> factors_;   // factors of the operands
  std::vector<NamedFactor> in_term_;  // factors of the term that is read
  // Sizes that only results have, and their columns.
  std::vector<std::pair<FactorName, std::size_t>> result_sizes_;
};

}  // namespace

Result<std::vector<Notation>> read_notations(RuleReader& reader,
                                             bool is_complete,
                                             RuleNames* names) {
  std::vector<Notation> alternatives;
  do {
    if (alternatives.size() == kMostAlternatives) {
      return RuleReader::wrong("a rule has more than 16 alternatives",
                               reader.at(), kNotationHelp);
    }
    SP_ASSIGN(Notation read, NotationReader(reader, is_complete, names).read());
    alternatives.push_back(std::move(read));
    reader.skip_blanks();
  } while (reader.skip("|"));
  return alternatives;
}

Result<std::vector<Notation>> parse_notations(std::string_view text) {
  RuleReader reader(text);
  SP_ASSIGN(auto alternatives, read_notations(reader, false));
  if (!reader.is_at_end()) {
    return reader.expected("a dim, `,`, `|` or the end of the notation",
                           kNotationHelp);
  }
  return alternatives;
}

Result<Notation> Notation::parse(std::string_view text) {
  RuleReader reader(text);
  SP_ASSIGN(Notation notation, NotationReader(reader, false, nullptr).read());
  reader.skip_blanks();
  if (!reader.is_at_end()) {
    return reader.expected("a dim, `,` or the end of the notation",
                           kNotationHelp);
  }
  return notation;
}

}  // namespace shardprop
