#include "overlap.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

namespace shardprop::kernels {
namespace {

struct Extent {
  std::intptr_t low;   // first byte
  std::intptr_t high;  // one past the last; low where there are no elements
};

Extent extent_of(const Operand& operand) {
  const auto address = reinterpret_cast<std::intptr_t>(operand.data);
  Extent extent{address, address + operand.item_size()};
  for (int i = 0; i < operand.rank; ++i) {
    if (operand.sizes[i] == 0) return {address, address};
    const std::int64_t reach = operand.strides[i] * (operand.sizes[i] - 1);
    (reach < 0 ? extent.low : extent.high) += reach;
  }
  return extent;
}

bool disjoint(const Extent& a, const Extent& b) {
  return a.low >= a.high || b.low >= b.high || a.high <= b.low ||
         b.high <= a.low;
}

// One term of sum(coefficient * x) = target with 0 <= x <= bound.
struct Term {
  std::int64_t coefficient;
  std::int64_t bound;
  std::int64_t reach;    // most that this term and those after it can sum to
  std::int64_t divisor;  // of the coefficients after it
};

// Searches depth first, largest coefficient first. The reach of the smaller
// coefficients leaves few values for each term. Two addresses of nested strides
// take a few steps. NumPy solves the same problem (solve_may_share_memory).
class Solver {
 public:
  void add(std::int64_t coefficient, std::int64_t bound) {
    if (coefficient == 0 || bound == 0) return;
    terms_[count_++] = {coefficient, bound, 0, 0};
  }

  bool solvable(std::int64_t target) {
    std::sort(terms_.begin(), terms_.begin() + count_,
              [](const Term& a, const Term& b) {
                return a.coefficient > b.coefficient;
              });
    std::int64_t reach = 0;
    std::int64_t divisor = 0;
    for (int i = count_ - 1; i >= 0; --i) {
      terms_[i].divisor = divisor;
      reach += terms_[i].coefficient * terms_[i].bound;
      terms_[i].reach = reach;
      divisor = std::gcd(divisor, terms_[i].coefficient);
    }
    return search(0, target);
  }

 private:
  bool search(int i, std::int64_t target) {
    if (target == 0 || steps_ == 0) return true;
    --steps_;
    if (i == count_ || target < 0 || target > terms_[i].reach) return false;
    const Term& term = terms_[i];
    const std::int64_t rest = term.reach - term.coefficient * term.bound;
    const std::int64_t short_of = std::max<std::int64_t>(target - rest, 0);
    const std::int64_t most = std::min(term.bound, target / term.coefficient);
    for (std::int64_t x = (short_of + term.coefficient - 1) / term.coefficient;
         x <= most; ++x) {
      const std::int64_t left = target - x * term.coefficient;
      if (left != 0 && (term.divisor == 0 || left % term.divisor != 0)) {
        continue;
      }
      if (search(i + 1, left)) return true;
    }
    return false;
  }

  std::array<Term, 2 * kMaxDims + 2> terms_;
  int count_ = 0;
  int steps_ = 10000;
};

std::string name_of(NamedOperands named, std::size_t i) {
  return OperandName{named.name, named.list ? static_cast<std::int64_t>(i) : -1}
      .str();
}

}  // namespace

bool overlaps_itself(const Operand& operand) {
  std::array<std::pair<std::int64_t, std::int64_t>, kMaxDims> dims;
  int count = 0;
  for (int i = 0; i < operand.rank; ++i) {
    if (operand.sizes[i] == 0) return false;
    if (operand.sizes[i] > 1) {
      dims[count++] = {std::abs(operand.strides[i]), operand.sizes[i]};
    }
  }
  std::sort(dims.begin(), dims.begin() + count);
  std::int64_t extent = operand.item_size();
  for (int i = 0; i < count; ++i) {
    if (dims[i].first < extent) return true;
    extent += dims[i].first * (dims[i].second - 1);
  }
  return false;
}

bool overlap(const Operand& a, const Operand& b) {
  const Extent extent_a = extent_of(a);
  const Extent extent_b = extent_of(b);
  if (disjoint(extent_a, extent_b)) return false;
  // Solves a.low + x = b.high - 1 - y, with x and y sums of positive strides.
  // An address is counted upwards in a and downwards in b.
  Solver solver;
  for (const Operand* operand : {&a, &b}) {
    solver.add(1, operand->item_size() - 1);
    for (int i = 0; i < operand->rank; ++i) {
      solver.add(std::abs(operand->strides[i]), operand->sizes[i] - 1);
    }
  }
  return solver.solvable(extent_b.high - 1 - extent_a.low);
}

Status check_overlap(const char* op, NamedOperands outs, NamedOperands ins) {
  const auto fault = [op](const std::string& out, const std::string& other) {
    return Status{StatusCode::kOverlap,
                  message(op, ": ", out, " overlaps ", other)};
  };
  struct Entry {
    Extent extent;
    std::size_t index;
  };
  std::vector<Entry> sorted;
  sorted.reserve(outs.operands.size());
  for (std::size_t i = 0; i < outs.operands.size(); ++i) {
    if (overlaps_itself(outs.operands[i])) {
      return fault(name_of(outs, i), "itself");
    }
    sorted.push_back({extent_of(outs.operands[i]), i});
  }
  std::sort(sorted.begin(), sorted.end(), [](const Entry& a, const Entry& b) {
    return a.extent.low < b.extent.low;
  });
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const std::size_t a = sorted[i].index;
    for (std::size_t j = i + 1;
         j < sorted.size() && sorted[j].extent.low < sorted[i].extent.high;
         ++j) {
      const std::size_t b = sorted[j].index;
      if (overlap(outs.operands[a], outs.operands[b])) {
        return fault(name_of(outs, std::min(a, b)),
                     name_of(outs, std::max(a, b)));
      }
    }
  }
  std::intptr_t highest = 0;
  for (const Entry& entry : sorted) {
    highest = std::max(highest, entry.extent.high);
  }
  for (std::size_t i = 0; i < ins.operands.size(); ++i) {
    const Extent extent = extent_of(ins.operands[i]);
    if (sorted.empty() || extent.low >= highest ||
        extent.high <= sorted.front().extent.low) {
      continue;
    }
    for (const Entry& entry : sorted) {
      if (entry.extent.low >= extent.high) break;
      if (overlap(outs.operands[entry.index], ins.operands[i])) {
        return fault(name_of(outs, entry.index), name_of(ins, i));
      }
    }
  }
  return {};
}

}  // namespace shardprop::kernels
