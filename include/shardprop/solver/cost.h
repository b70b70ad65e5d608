// Costs of a plan problem: 64-bit integers whose sums need 128 bits.
//
// A cost of kForbidden or more says "never"; it is not a number to add up. This
// is the convention of the contest format (10^18), made into a proper infinity:
// an assignment that touches a forbidden entry has no cost at all.
#pragma once

#include <cstdint>
#include <string>

namespace shardprop::solver {

__extension__ typedef __int128 Int128;  // NOLINT: ISO C++ has no such name

inline constexpr std::int64_t kForbidden = 1'000'000'000'000'000'000;

constexpr bool is_forbidden(std::int64_t cost) { return cost >= kForbidden; }

// Decimal digits: to_string(Int128{-12}) is "-12".
std::string to_string(Int128 value);

}  // namespace shardprop::solver
