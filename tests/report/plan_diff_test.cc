// Tests the differences of two plans as text.
#include <shardprop/report/plan_diff.h>

#include <doctest/doctest.h>

#include <string>

namespace shardprop {
namespace {

std::string text_of(std::int64_t a, std::int64_t b) {
  PlanDiff diff;
  diff.nanoseconds = b - a;
  diff.figures.push_back(
      {"communication", FigureDifference::Unit::kTime, a, b});
  return diff_to_text(diff);
}

TEST_CASE("a difference that is not zero is never printed as zero") {
  const std::string less = text_of(21'000'020, 21'000'000);
  CAPTURE(less);
  CHECK(less.find("-20 ns") != std::string::npos);
  CHECK(less.find("0.0 us") == std::string::npos);
  CHECK(less.find("0.0 %") == std::string::npos);
  CHECK(less.find("the second plan costs 20 ns less") != std::string::npos);
  const std::string more = text_of(21'000'000, 21'000'049);
  CAPTURE(more);
  CHECK(more.find("+49 ns") != std::string::npos);
  const std::string much = text_of(10'000, 12'500);
  CHECK(much.find("+2.5 us (+25.0 %)") != std::string::npos);
}

}  // namespace
}  // namespace shardprop
