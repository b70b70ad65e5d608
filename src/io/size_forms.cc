#include "io/size_forms.h"

#include "base/index.h"
#include "base/try.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace shardprop::pt2 {
namespace {

// No tensor has more elements, and two of them multiply within 128 bits.
constexpr WideInt kMostMonomial = WideInt{1} << 60;
constexpr int kMostExponent = 2;
constexpr int kMostDegree = 4;
// Forms are tried one by one for each number.
constexpr std::size_t kMostMonomials = 256;
// Exports write floating-point numbers with 17 digits.
constexpr double kRelativeError = 1e-12;

bool all_equal(const auto& values) {
  return std::all_of(values.begin(), values.end(),
                     [&](const auto value) { return value == values[0]; });
}

bool is_near(double a, double b) {
  return std::abs(a - b) <= kRelativeError * std::max(std::abs(a), std::abs(b));
}

std::string listed(const std::vector<std::int64_t>& seen) {
  std::string text;
  for (const std::int64_t value : seen) {
    text += (text.empty() ? "" : " and ") + std::to_string(value);
  }
  return text;
}

Error unreadable(std::string message, std::string help) {
  return {
      ErrorCode::kInvalidArgument, std::move(message), {}, {}, std::move(help)};
}

constexpr const char* kAnotherExport =
    "export the program at a third choice of sizes, and give that one too: "
    "--other-size GRAPH3";

std::string times(const std::string& factor, const std::string& rest) {
  if (rest == "1") return factor;
  return factor == "1" ? rest : factor + '*' + rest;
}

}  // namespace

SizeForms::SizeForms(std::vector<FreeSize> sizes)
    : sizes_(std::move(sizes)),
      exports_(sizes_.empty() ? 1 : sizes_[0].seen.size()) {
  add_monomials();
}

// Multiplies the monomials of the sizes before by each power of the next size.
void SizeForms::add_monomials() {
  monomials_.push_back({"1", std::vector<WideInt>(exports_ + 1, 1)});
  std::vector<int> degrees{0};
  for (const FreeSize& size : sizes_) {
    const std::size_t before = monomials_.size();
    for (std::size_t i = 0; i < before; ++i) {
      Monomial next = monomials_[i];
      for (int power = 1; power <= kMostExponent; ++power) {
        if (degrees[i] + power > kMostDegree ||
            monomials_.size() == kMostMonomials) {
          break;
        }
        next.text = times(next.text, size.name);
        bool fits = true;
        for (std::size_t e = 0; e <= exports_; ++e) {
          next.values[e] *= e == exports_ ? size.wanted : size.seen[e];
          fits = fits && next.values[e] > 0 && next.values[e] <= kMostMonomial;
        }
        if (!fits) break;
        monomials_.push_back(next);
        degrees.push_back(degrees[i] + power);
      }
    }
  }
}

std::vector<SizeForms::Candidate> SizeForms::multiples(
    const std::vector<std::int64_t>& seen) const {
  std::vector<Candidate> out;
  for (const Monomial& m : monomials_) {
    bool fits = !all_equal(std::vector(m.values.begin(), m.values.end() - 1));
    for (std::size_t e = 0; e < exports_ && fits; ++e) {
      fits = seen[e] * m.values[0] == seen[0] * m.values[e];
    }
    if (!fits) continue;
    const WideInt product = seen[0] * m.values[exports_];
    Candidate found{times(std::to_string(seen[0]) + '/' +
                              std::to_string(saturated(m.values[0])),
                          m.text),
                    std::nullopt, true};
    if (seen[0] % m.values[0] == 0) {
      found.text =
          times(std::to_string(saturated(seen[0] / m.values[0])), m.text);
    }
    if (product % m.values[0] == 0) found.value = product / m.values[0];
    out.push_back(std::move(found));
  }
  return out;
}

std::vector<SizeForms::Candidate> SizeForms::shifted(
    const std::vector<std::int64_t>& seen) const {
  std::vector<Candidate> out;
  for (const Monomial& m : monomials_) {
    std::vector<WideInt> rest;
    for (std::size_t e = 0; e < exports_; ++e) {
      if (seen[e] % m.values[e] != 0) break;
      rest.push_back(seen[e] / m.values[e]);
    }
    if (rest.size() < exports_) continue;
    for (const FreeSize& size : sizes_) {
      std::size_t other = 0;
      while (other < exports_ && size.seen[other] == size.seen[0]) ++other;
      if (other == exports_) continue;
      const WideInt run = size.seen[other] - size.seen[0];
      const WideInt rise = rest[other] - rest[0];
      if (rise == 0 || rise % run != 0) continue;
      const WideInt c = rise / run;
      const WideInt d = rest[0] - c * size.seen[0];
      bool fits = d != 0;
      for (std::size_t e = 0; e < exports_ && fits; ++e) {
        fits = rest[e] == c * size.seen[e] + d;
      }
      if (!fits) continue;
      const std::string inner = times(std::to_string(saturated(c)), size.name) +
                                (d < 0 ? " - " : " + ") +
                                std::to_string(saturated(d < 0 ? -d : d));
      out.push_back({m.text == "1" ? inner : m.text + "*(" + inner + ')',
                     m.values[exports_] * (c * size.wanted + d),
                     c == 1 || c == -1});
    }
  }
  // The simplest forms alone count if there are some.
  if (std::any_of(out.begin(), out.end(),
                  [](const Candidate& c) { return c.is_unit; })) {
    std::erase_if(out, [](const Candidate& c) { return !c.is_unit; });
  }
  return out;
}

Result<std::int64_t> SizeForms::factored(std::int64_t seen) const {
  WideInt rest = seen;
  WideInt value = 1;
  for (const FreeSize& size : sizes_) {
    for (int power = 0; power < kMostExponent && rest % size.seen[0] == 0;
         ++power) {
      rest /= size.seen[0];
      value *= size.wanted;
      if (value > kMostMonomial) break;
    }
  }
  if (value > kMostMonomial || rest * value > kMostInt) {
    return fail(
        unreadable(std::to_string(seen) + " is too large at the given sizes",
                   "give smaller sizes"));
  }
  return static_cast<std::int64_t>(rest * value);
}

Result<std::int64_t> SizeForms::found(
    const std::vector<std::int64_t>& seen) const {
  if (exports_ == 1) {
    return may_follow(seen[0]) ? factored(seen[0]) : seen[0];
  }
  if (all_equal(seen)) return seen[0];
  std::vector<Candidate> candidates = multiples(seen);
  if (candidates.empty()) candidates = shifted(seen);
  if (candidates.empty()) {
    return fail(unreadable(
        "a number is " + listed(seen) +
            " in the exports, which is no function of their sizes",
        "a number may be constant, a multiple of sizes, or differ from that by "
        "a constant"));
  }
  const Candidate& first = candidates.front();
  for (const Candidate& other : candidates) {
    if (other.value == first.value) continue;
    return fail(unreadable("a number is " + listed(seen) +
                               " in the exports, which is " + first.text +
                               " or " + other.text,
                           kAnotherExport));
  }
  if (!first.value) {
    return fail(unreadable(
        "a number is " + first.text + ", which is not whole at the given sizes",
        "give sizes at which it is whole"));
  }
  if (*first.value > kMostInt || *first.value < kLeastInt) {
    return fail(unreadable(first.text + " is too large at the given sizes",
                           "give smaller sizes"));
  }
  return static_cast<std::int64_t>(*first.value);
}

Result<std::int64_t> SizeForms::number(
    const std::vector<std::int64_t>& seen) const {
  if (const auto known = known_.find(seen); known != known_.end()) {
    return known->second;
  }
  SP_ASSIGN(const std::int64_t value, found(seen));
  known_.emplace(seen, value);
  return value;
}

Result<double> SizeForms::real(const std::vector<double>& seen) const {
  if (exports_ == 1 || all_equal(seen)) return seen[0];
  std::vector<std::pair<std::string, double>> candidates;
  for (const Monomial& m : monomials_) {
    const auto value = [&](std::size_t e) {
      return static_cast<double>(m.values[e]);
    };
    bool is_product = true;
    bool is_quotient = true;
    for (std::size_t e = 0; e < exports_; ++e) {
      is_product =
          is_product && is_near(seen[e] * value(0), seen[0] * value(e));
      is_quotient =
          is_quotient && is_near(seen[e] * value(e), seen[0] * value(0));
    }
    if (is_product) {
      candidates.emplace_back(m.text, seen[0] / value(0) * value(exports_));
    }
    if (is_quotient) {
      candidates.emplace_back("1/(" + m.text + ')',
                              seen[0] * value(0) / value(exports_));
    }
  }
  const std::string both =
      std::to_string(seen[0]) + " and " + std::to_string(seen[1]);
  if (candidates.empty()) {
    return fail(unreadable("a number is " + both +
                               " in the exports, which is no function of "
                               "their sizes",
                           "a floating-point number may be constant, or a "
                           "multiple or quotient of sizes"));
  }
  for (const auto& [text, value] : candidates) {
    if (is_near(value, candidates.front().second)) continue;
    return fail(unreadable("a number is " + both +
                               " in the exports, which follows " +
                               candidates.front().first + " or " + text,
                           kAnotherExport));
  }
  return candidates.front().second;
}

bool SizeForms::may_follow(std::int64_t number) const {
  return number > 0 &&
         std::any_of(sizes_.begin(), sizes_.end(), [&](const FreeSize& size) {
           return number % size.seen[0] == 0;
         });
}

bool SizeForms::is_next_to_size(std::int64_t number) const {
  return std::any_of(monomials_.begin() + 1, monomials_.end(),
                     [&](const Monomial& m) {
                       return m.values[0] == WideInt{number} + 1 ||
                              m.values[0] == WideInt{number} - 1;
                     });
}

bool SizeForms::may_follow(double number) const {
  return std::any_of(
      monomials_.begin() + 1, monomials_.end(), [&](const Monomial& m) {
        const auto value = static_cast<double>(m.values[0]);
        return is_near(number, value) || is_near(number * value, 1);
      });
}

}  // namespace shardprop::pt2
