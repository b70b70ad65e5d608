// `Values` resolves the names of a program's tensors and scalars.
#pragma once

#include <shardprop/graph/graph_builder.h>

#include "io/pt2_program.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shardprop::pt2 {

// A tensor whose symbolic sizes are replaced by their hints.
struct ResolvedTensor {
  TensorMeta meta;
  std::vector<SymbolicDim> symbolic;
};

// Returns the DType of a number of the schema (schema.py, ScalarType).
std::optional<DType> dtype_of(std::int64_t number);

// Returns the first 80 bytes of a name of the program, in quotes.
std::string name_in_quotes(std::string_view name);

// Assumed sizes of dims whose size depends on data: u0 -> 128.
using SizeBounds = std::map<std::string, std::int64_t>;

// Sizes that the user gives in LoadOptions.
struct GivenSizes {
  SizeBounds bounds;                          // that depend on data
  std::map<std::string, std::int64_t> sizes;  // symbolic, `batch`, `seq`
};

class Values {
 public:
  // The value of a size that depends on data is the first of these that
  // applies:
  // 1. its entry in `bounds`;
  // 2. its share of a known size, if a check states that it and others add up
  //    to it;
  // 3. the upper end of its range;
  // 4. the lower end of its range or kDefaultBound, whichever is larger.
  //
  // Errors: kRepeatedKey, kSymExprSyntax, kListTooLong; kInvalidArgument if a
  // given size is unknown to the program, of another kind or out of range.
  static Result<Values> create(const Program& program, const GivenSizes& given);
  // Returns the values of a region of the program of `outer`. Errors: as
  // `create`.
  static Result<Values> within(const GraphBody& region, const Values& outer);
  static constexpr std::int64_t kDefaultBound = 1024;
  // No tensor has more elements. torch writes larger bounds if it knows no
  // range.
  static constexpr std::int64_t kMostBounded = std::int64_t{1} << 40;

  // Errors: kDanglingName, kUnknownVariant (dtype), kTensorMeta, kNoSizeHint.
  Result<ResolvedTensor> tensor(std::string_view name) const;
  bool has_tensor(std::string_view name) const {
    return tensors_.contains(name);
  }

  struct Scalar {
    std::int64_t value = 0;
    std::optional<SymExpr> expression;  // where it is no constant
  };
  // Errors: kDanglingName, kNoSizeHint.
  Result<Scalar> scalar(std::string_view name) const;
  Result<Scalar> scalar(const SymName& argument) const;

  // Symbolic sizes by name, with their values at the export.
  const std::map<std::string, Symbol>& symbols() const { return symbols_; }
  // True if the user gave the size, even if it equals the size at the export.
  bool is_set(const std::string& name) const { return set_.contains(name); }
  // Sizes that depend on data, with the values assumed for them.
  const SizeBounds& bounded() const { return bounded_; }
  // The program's ranges of computed sizes: 2*s39.
  const std::vector<Range>& computed_ranges() const { return computed_; }

 private:
  Result<void> add_names(const GraphBody& body);
  Result<void> learn_body(const GraphBody& body);
  Result<void> learn_regions(const GraphBody& body);
  void add_ranges(const Program& program);
  // Returns the error for a bound of a size that cannot have a bound.
  Error no_bound(const std::string& name, std::int64_t value) const;
  Result<void> set_sizes(const Program& program,
                         const std::map<std::string, std::int64_t>& sizes);
  Result<std::string> symbol_named(const Program& program,
                                   const std::string& name,
                                   const std::string& place) const;
  Result<void> check_computed_ranges(const std::string& place) const;
  // Checks the conditions that the program asserts or that guard it.
  Result<void> check_conditions(const Program& program,
                                const std::string& place) const;
  Result<void> bound_sizes(const Program& program, const SizeBounds& bounds);
  SizeBounds shares(const Program& program, const SizeBounds& bounds) const;
  Result<Scalar> resolve(const SymValue& value) const;
  Result<SymExpr> parse(std::string_view expression) const;
  Result<void> learn_symbols(const SymValue& value);
  void solve_symbols();

  std::unordered_map<std::string_view, const Tensor*> tensors_;
  std::unordered_map<std::string_view, const NamedSym*> scalars_;
  std::map<std::string, Symbol> symbols_;
  SymExpr::Bindings hints_;
  std::set<std::string> set_;  // sizes that the user gave
  bool is_resized_ = false;    // some are not those of the export
  SizeBounds bounded_;
  std::vector<Range> computed_;
  // The values at the export of sizes computed from symbols, by the text of
  // their expression.
  std::map<std::string_view, std::int64_t> computed_hints_;
  // Expressions repeat in a program, so each is parsed once.
  mutable std::unordered_map<std::string_view, SymExpr> parsed_;
  mutable std::size_t parsed_bytes_ = 0;
};

}  // namespace shardprop::pt2
