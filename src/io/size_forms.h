// `SizeForms` states how the numbers of a program follow its sizes. It knows the
// sizes and the numbers of one or more exports of the program.
//
//   SizeForms forms({{"batch", {5, 11}, 64}, {"seq", {37, 101}, 8192}});
//   forms.number({185, 1111}).value();   // 524288: batch*seq
//   forms.number({36, 100}).value();     // 8191: seq - 1
//   forms.number({128, 128}).value();    // 128: a constant
//   forms.number({6, 7}).error();        // no function of the sizes
//
// A number has one of these forms. M is a product of powers of sizes, each with
// an exponent of at most 2, and c and d are constants:
//
//   1. c                      equal in all exports
//   2. c * M
//   3. M * (c * size + d)     or c * size + d
//
// Two forms that fit all exports may differ at the wanted sizes. Then the number
// is ambiguous, unless exactly one of them has a c of 1 or -1 (form 3).
#pragma once

#include <shardprop/base/result.h>

#include "base/saturating.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shardprop::pt2 {

// `FreeSize` is a size of the user's inputs.
struct FreeSize {
  std::string name;                // batch, seq, image.2
  std::vector<std::int64_t> seen;  // at each export
  std::int64_t wanted = 0;
};

class SizeForms {
 public:
  // All sizes were seen at the same number of exports, which is at least one. With
  // one export, all of `sizes` are set to another value and share no factor.
  explicit SizeForms(std::vector<FreeSize> sizes);

  // Returns the number at the wanted sizes. With one export, each size that
  // divides a number above 0 is a factor of its M (form 2). Error:
  // kInvalidArgument (ambiguous, no form, no whole number, too large).
  Result<std::int64_t> number(const std::vector<std::int64_t>& seen) const;
  // The same for a floating-point number, which is c * M or c / M. With one
  // export it is a constant.
  Result<double> real(const std::vector<double>& seen) const;

  // Returns whether a number that is seen at one export may follow a size: whether
  // it is a multiple of one, or the inverse of a product of sizes.
  bool may_follow(std::int64_t number) const;
  bool may_follow(double number) const;
  // Returns whether a number that is seen at one export is one more or one less
  // than a product of sizes, as seq - 1.
  bool is_next_to_size(std::int64_t number) const;

  std::size_t exports() const { return exports_; }
  const std::vector<FreeSize>& sizes() const { return sizes_; }

 private:
  struct Monomial {
    std::string text;             // batch*seq
    std::vector<WideInt> values;  // at each export, then at the wanted sizes
  };
  struct Candidate {
    std::string text;
    std::optional<WideInt> value;  // empty: no whole number
    bool is_unit = false;          // c is 1 or -1
  };

  void add_monomials();
  Result<std::int64_t> found(const std::vector<std::int64_t>& seen) const;
  std::vector<Candidate> multiples(const std::vector<std::int64_t>& seen) const;
  std::vector<Candidate> shifted(const std::vector<std::int64_t>& seen) const;
  Result<std::int64_t> factored(std::int64_t seen) const;

  std::vector<FreeSize> sizes_;
  std::size_t exports_;
  std::vector<Monomial> monomials_;  // the first one is 1
  // Numbers repeat in a program, so each is looked for once.
  mutable std::map<std::vector<std::int64_t>, std::int64_t> known_;
};

}  // namespace shardprop::pt2
