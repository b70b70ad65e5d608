// Properties: laws that hold for random inputs (rapidcheck), inside doctest.
//
//   TEST_CASE("parse reads what to_string writes") {
//     property(20000, [] {
//       const Layout layout = some_layout(3, 4);
//       RC_ASSERT(Layout::parse(to_string(layout)) == layout);
//     });
//   }
//
// Counts are those of every day; SHARDPROP_FULL=1 in the environment takes
// twenty times as many, or the number that a test states. Inputs are the same in every run unless
// SHARDPROP_SEED says otherwise.
#pragma once

#include <doctest/doctest.h>
#include <rapidcheck.h>
#include <rapidcheck/detail/TestListener.h>

#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>

namespace shardprop::testing {

inline bool full_counts() {
  const char* full = std::getenv("SHARDPROP_FULL");
  return full != nullptr && std::string(full) == "1";
}

// Returns the number of cases every day, or the one at full counts.
inline int counted(int every_day, int full) {
  return full_counts() ? full : every_day;
}

inline int scaled(int cases) { return full_counts() ? 20 * cases : cases; }

inline std::uint64_t property_seed() {
  const char* seed = std::getenv("SHARDPROP_SEED");
  return seed != nullptr ? std::strtoull(seed, nullptr, 10) : 20261120;
}

namespace detail {

// The default one announces a seed that is not ours.
class QuietListener : public rc::detail::TestListener {
 public:
  void onTestCaseFinished(const rc::detail::CaseDescription&) override {}
  void onShrinkTried(const rc::detail::CaseDescription&, bool) override {}
  void onTestFinished(const rc::detail::TestMetadata&,
                      const rc::detail::TestResult&) override {}
};

}  // namespace detail

// Runs `testable` on `cases` random inputs and shows the smallest that fails.
template <class Testable>
void property(int cases, Testable&& testable) {
  rc::detail::TestParams params;
  params.seed = property_seed();
  params.maxSuccess = scaled(cases);
  detail::QuietListener quiet;
  const auto result = rc::detail::checkTestable(
      std::forward<Testable>(testable), rc::detail::TestMetadata(), params,
      quiet, std::unordered_map<std::string, rc::detail::Reproduce>());
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  INFO(text.str());
  CHECK(result.template is<rc::detail::SuccessResult>());
}

}  // namespace shardprop::testing
