// Costs of a plan problem are 64-bit integers whose sums need 128 bits.
//
// A cost of kForbidden or more means "never" and is not added to sums. The
// contest format has the same convention (10^18). Here it is a true infinity:
// an assignment with a forbidden entry has no cost.
#pragma once

#include <cstdint>
#include <string>

namespace shardprop::solver {

__extension__ typedef __int128 Int128;  // NOLINT: ISO C++ has no such name

inline constexpr std::int64_t kForbidden = 1'000'000'000'000'000'000;

constexpr bool is_forbidden(std::int64_t cost) { return cost >= kForbidden; }

// Returns decimal digits: to_string(Int128{-12}) is "-12".
std::string to_string(Int128 value);

}  // namespace shardprop::solver
