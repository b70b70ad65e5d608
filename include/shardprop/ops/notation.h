// `Notation` is the factor notation of an operator, as a value: one term per
// tensor operand and result, and the factors of each dim.
//
//   mk,kn->mn                    a matrix product; the results lack k
//   ...{mn}->...{mk},...{kn}     a QR decomposition of batches of matrices
//   t(hd)->thd                   a dim of two factors, major first
//
// docs/row_language.md has the grammar with an example per construct. A value
// prints as text that parses back to the same value. Definitions whose notation
// depends on the call build the value directly, without text.
#pragma once

#include <shardprop/base/inline_vector.h>
#include <shardprop/base/result.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// `FactorName` is the name of a factor: a letter, a letter with a number, or a
// word of up to 15 letters, digits and underscores.
class FactorName {
 public:
  static constexpr std::size_t kMostLetters = 15;

  constexpr FactorName() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a letter is a name.
  constexpr FactorName(char letter) { text_[0] = letter; }
  // Precondition: 1 to 15 letters, digits and underscores.
  constexpr explicit FactorName(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) text_[i] = text[i];
  }
  // Returns a name for dim `dim` of an operand: a, b, ... z, a1, b1, ...
  static FactorName of_dim(int dim);

  std::string_view text() const;
  // Returns the first letter, which printed index spaces show.
  constexpr char letter() const { return text_[0]; }
  // Returns the dim of a name that of_dim() made.
  int dim() const;

  friend constexpr bool operator==(const FactorName&,
                                   const FactorName&) = default;

 private:
  std::array<char, kMostLetters + 1> text_ = {};
};

// `DimUse` says how a term uses a factor.
enum class DimUse : std::uint8_t {
  kSharded,  // `m`: mesh dims may shard it
  kBlocked,  // `[m]`: a factor that only a program may shard
  kFull,     // `{m}`: a size; every rank has the full dim
};

struct NamedFactor {
  FactorName name;
  DimUse use = DimUse::kSharded;
  friend bool operator==(const NamedFactor&, const NamedFactor&) = default;
};

// `TermDim` is one dim of a term, or its leading dims.
struct TermDim {
  enum class Kind : std::uint8_t {
    kFactors,  // its factors, major first
    kLeading,  // `...`: any number of dims, aligned on the right
    kAny,      // `_`: a full dim; of any size in operands, of 1 in results
  };
  Kind kind = Kind::kFactors;
  std::uint8_t group = 0;  // of kLeading: `...` is group 0, `...1` group 1
  InlineVector<NamedFactor, 2> factors;
  friend bool operator==(const TermDim&, const TermDim&) = default;
};

// `ResultOrder` is the memory order of a result.
enum class ResultOrder : std::uint8_t {
  kDense,        // row by row
  kColumnMajor,  // `:column_major`: the last two dims are swapped in memory
  kSwapped,      // `:swapped`: the first two dims are swapped in memory
};

// `Term` describes one operand or one result. The builder functions return the
// term, so that calls can be chained: Term().leading().full("mn").
struct Term {
  std::vector<TermDim> dims;
  bool is_added = false;       // `+n`: added to the product, and broadcasts
  bool is_replicated = false;  // `*`: full dims, any number of them
  bool is_each = false;        // `b{h}*`: all elements of a list
  bool is_always = false;      // `:always`: `output_mask` does not exclude it
  bool is_absent = false;      // `:none`: the result is not produced
  ResultOrder order = ResultOrder::kDense;

  // Each adds one dim per name.
  Term& sharded(std::initializer_list<FactorName> names);
  Term& full(std::initializer_list<FactorName> names);
  Term& add(FactorName name, DimUse use = DimUse::kSharded);
  // Adds one dim of several factors.
  Term& compound(std::initializer_list<NamedFactor> factors);
  Term& leading(std::uint8_t group = 0);
  Term& any();

  static Term replicated();
  static Term absent();

  friend bool operator==(const Term&, const Term&) = default;
};

// `StatedSize` is the size of a factor that the notation states, such as
// `{c:2}`, `{s:num_samples}`, `{x:output_size[0]}`, `{k:min(m,n)}`,
// `{x:pooled()}` or `{n:?}`.
struct StatedSize {
  enum class Kind : std::uint8_t {
    kNumber,
    kArgument,  // of an integer argument, or of an element of a list
    kSmaller,   // of two factors of operands
    kWord,      // of a word of the rule language, such as `pooled()`
    kData,      // depends on data; the call states it
  };
  FactorName name;
  Kind kind = Kind::kNumber;
  std::int64_t number = 0;    // of kNumber
  std::string argument = {};  // of kArgument; the word of kWord
  int element = -1;           // of kArgument; -1 for a number
  FactorName first = {};      // of kSmaller
  FactorName second = {};
  friend bool operator==(const StatedSize&, const StatedSize&) = default;
};

// `Condition` is what an argument must be: `transposed`, `not transposed`,
// `mode is r`. A condition on an argument that the operator does not declare
// does not hold.
struct Condition {
  std::string argument;
  bool holds = true;
  std::string word = {};  // empty: true, or given
  friend bool operator==(const Condition&, const Condition&) = default;
};

struct Notation {
  std::vector<Term> inputs;
  std::vector<Term> outputs;
  std::vector<StatedSize> sizes;
  std::vector<Condition> conditions;  // of this alternative

  // Parses one notation. Error: kInvalidArgument, which names the column.
  static Result<Notation> parse(std::string_view text);
  friend bool operator==(const Notation&, const Notation&) = default;
};

std::string to_string(const Term& term);
std::string to_string(const Notation& notation);

// A rule has alternatives, separated by `|`. The first one whose conditions
// hold and whose terms have the ranks of the operands applies.
Result<std::vector<Notation>> parse_notations(std::string_view text);
std::string to_string(const std::vector<Notation>& alternatives);

}  // namespace shardprop
