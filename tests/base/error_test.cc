#include <shardprop/base/error.h>
#include <shardprop/base/result.h>

#include <doctest/doctest.h>

#include "base/try.h"
#include "support/result_checks.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace shardprop {
namespace {

const std::vector<ErrorCode>& all_codes() {
  static const std::vector<ErrorCode> kCodes = {
#define SHARDPROP_ERROR_CODE(name, number, exit, meaning) ErrorCode::name,
#include <shardprop/base/error_codes.inc>
#undef SHARDPROP_ERROR_CODE
  };
  return kCodes;
}

TEST_CASE("an error prints in rustc's manner") {
  const Error error{ErrorCode::kShardDimOutOfRange,
                    "S(3) shards a dim that bf16[16,8] does not have",
                    "--pin 'w=S(3)'",
                    {"w: bf16[16,8]", "the mesh is dp=2"},
                    "name a dim between 0 and 1"};
  CHECK(to_string(error) ==
        "error[SP0303]: S(3) shards a dim that bf16[16,8] does not have\n"
        "  --> --pin 'w=S(3)'\n"
        "   |  w: bf16[16,8]\n"
        "   |  the mesh is dp=2\n"
        "   = help: name a dim between 0 and 1\n");
}

TEST_CASE("parts of an error that are empty take no line") {
  CHECK(to_string(Error{ErrorCode::kMeshSize, "no ranks", {}, {}, {}}) ==
        "error[SP0102]: no ranks\n");
}

TEST_CASE("a location is filled once and then made more precise") {
  Error error{ErrorCode::kTensorMeta, "odd", {}, {}, {}};
  error = std::move(error).at("$.nodes[3]");
  CHECK(error.location == "$.nodes[3]");
  error = std::move(error).at("model.json");
  CHECK(error.location == "model.json: $.nodes[3]");
  error = std::move(error).with_note("a").with_note("b").with_help("c");
  CHECK(error.notes == std::vector<std::string>{"a", "b"});
  CHECK(error.help == "c");
}

TEST_CASE("codes are distinct, printed in four digits and explained") {
  std::set<std::string> printed;
  std::set<std::string_view> names;
  for (const ErrorCode code : all_codes()) {
    const std::string text = code_string(code);
    CHECK(text.size() == 6);
    CHECK(std::stoi(text.substr(2)) == static_cast<int>(code));
    CHECK(printed.insert(text).second);
    CHECK(names.insert(code_name(code)).second);
    CHECK(code_name(code).front() == 'k');
    CHECK_FALSE(code_meaning(code).empty());
    CHECK(code_exit(code) >= 1);
    CHECK(code_exit(code) <= 4);
  }
}

TEST_CASE("codes stand in the order of their numbers") {
  CHECK(std::is_sorted(all_codes().begin(), all_codes().end()));
}

TEST_CASE("a code says what a program ends with") {
  CHECK(code_exit(ErrorCode::kRedistributeMemory) == 1);
  CHECK(code_exit(ErrorCode::kOutOfMemory) == 1);
  CHECK(code_exit(ErrorCode::kMeshSyntax) == 2);
  CHECK(code_exit(ErrorCode::kPinMatchesNothing) == 2);
  CHECK(code_exit(ErrorCode::kTensorMeta) == 3);
  CHECK(code_exit(ErrorCode::kPlanOtherGraph) == 3);
  CHECK(code_exit(ErrorCode::kNoStrategy) == 4);
}

TEST_CASE("a code outside the table is a bug of ours") {
  const auto code = static_cast<ErrorCode>(9999);
  CHECK_THROWS_AS(code_name(code), InternalError);
  CHECK_THROWS_AS(code_meaning(code), InternalError);
  CHECK_THROWS_AS(code_exit(code), InternalError);
}

Result<int> half(int n) {
  if (n % 2 != 0) return fail(ErrorCode::kMeshSize, "odd", "even it");
  return n / 2;
}

Result<void> must_halve(int n) {
  SP_CHECK(half(n));
  return {};
}

Result<int> quarter(int n) {
  SP_ASSIGN(const int first, half(n));
  SP_ASSIGN(const int second, half(first));
  return second;
}

TEST_CASE("early return hands on the value or the first error") {
  CHECK(quarter(12) == 3);
  CHECK_CODE(quarter(6), ErrorCode::kMeshSize);
  CHECK(quarter(3).error() ==
        Error{ErrorCode::kMeshSize, "odd", {}, {}, "even it"});
  CHECK(must_halve(2).has_value());
  CHECK_CODE(must_halve(3), ErrorCode::kMeshSize);
}

}  // namespace
}  // namespace shardprop
