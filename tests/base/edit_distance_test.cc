#include "base/edit_distance.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

TEST_CASE("the nearest name is proposed") {
  const std::vector<std::string_view> names = {"dp", "tp", "pipeline"};
  CHECK(did_you_mean("tpp", names) == "did you mean `tp`?");
  CHECK(did_you_mean("dq", names) == "did you mean `dp`?");
  CHECK(did_you_mean("pipelnie", names) == "did you mean `pipeline`?");
  CHECK(did_you_mean("peipline", names) == "did you mean `pipeline`?");
}

TEST_CASE("upper and lower case are the same") {
  const std::vector<std::string_view> names = {"u32", "f32"};
  CHECK(did_you_mean("F32", names) == "did you mean `f32`?");
}

TEST_CASE("of names equally near, the one whose letters were typed") {
  const std::vector<std::string_view> names = {"bmm", "mm", "mv"};
  CHECK(did_you_mean("mmm", names) == "did you mean `mm`?");
  CHECK(did_you_mean("mn", names) == "did you mean `mm`?");
  CHECK(did_you_mean("bm", names) == "did you mean `bmm`?");
}

TEST_CASE("names that are too far are listed instead") {
  const std::vector<std::string_view> names = {"dp", "tp"};
  CHECK(did_you_mean("expert", names) == "known: dp, tp");
  CHECK(did_you_mean("", names) == "known: dp, tp");
  CHECK(did_you_mean("x", {}).empty());
}

TEST_CASE("long lists are cut") {
  const std::vector<std::string> letters = {
      "aaaa", "bbbb", "cccc", "dddd", "eeee", "ffff", "gggg", "hhhh", "iiii"};
  const std::vector<std::string_view> names(letters.begin(), letters.end());
  CHECK(did_you_mean("zzzzzzzzzzzzz", names) ==
        "known: aaaa, bbbb, cccc, dddd, eeee, ffff, gggg, hhhh, …");
}

}  // namespace
}  // namespace shardprop
