// Parts of a tensor as operators put them together: in few strips, and back
// where they came from.
#include "io/emit/group_cuts.h"
#include "io/emit/runs.h"
#include "support/result_checks.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using emit::GroupCuts;
using emit::Strip;
using testing::value_of;

// Returns the elements that a strip represents, with `rounds` of the loops
// around it.
void append(const Strip& strip, std::vector<std::int64_t>& rounds,
            std::vector<std::int64_t>& out) {
  if (!strip.parts.empty()) {
    rounds.push_back(0);
    for (; rounds.back() < strip.count; ++rounds.back()) {
      for (const Strip& part : strip.parts) append(part, rounds, out);
    }
    rounds.pop_back();
    return;
  }
  std::int64_t begin = strip.run.begin;
  for (std::size_t k = 0; k < rounds.size(); ++k) {
    begin += rounds[k] * strip.steps[k];
  }
  for (std::int64_t i = 0; i < strip.run.size(); ++i) out.push_back(begin + i);
}

std::vector<std::int64_t> elements(const std::vector<Strip>& strips) {
  std::vector<std::int64_t> out;
  std::vector<std::int64_t> rounds;
  for (const Strip& strip : strips) append(strip, rounds, out);
  return out;
}

std::vector<std::int64_t> elements(const std::vector<Interval>& runs) {
  std::vector<std::int64_t> out;
  for (const Interval& run : runs) {
    for (std::int64_t i = run.begin; i < run.end; ++i) out.push_back(i);
  }
  return out;
}

std::int64_t windows_of(const std::vector<Strip>& strips) {
  std::int64_t out = 0;
  for (const Strip& strip : strips) {
    out += strip.parts.empty() ? 1 : windows_of(strip.parts);
  }
  return out;
}

GroupCuts::Dim cuts_of(const std::string& mesh_text, const std::string& layout,
                       std::int64_t size) {
  const DeviceMesh mesh = value_of(DeviceMesh::parse(mesh_text));
  const Layout cut = value_of(Layout::parse(layout));
  DimIndices all;
  for (int d = 0; d < mesh.ndim(); ++d) all.push_back(d);
  const auto cuts = emit::group_cuts(
      cut, Layout::replicated(mesh.ndim()), all, mesh,
      value_of(TensorMeta::contiguous(Dims{size}, DType::kF32)),
      mesh.coordinate_at_index(0));
  REQUIRE(cuts);
  return cuts->dims[0];
}

TEST_CASE("what repeats becomes loops") {
  const auto strips = emit::fold({{0, 3}, {4, 7}, {8, 11}, {12, 13}});
  REQUIRE(strips.size() == 2);
  CHECK(strips[0].count == 3);
  CHECK(strips[0].parts[0].run == Interval{0, 3});
  CHECK(strips[0].parts[0].steps == std::vector<std::int64_t>{4});
  CHECK(strips[1].run == Interval{12, 13});
  CHECK(emit::fold({{0, 3}, {3, 7}}).size() == 1);
  CHECK(emit::fold({}).empty());
}

TEST_CASE("folded runs have the elements of the runs, in their order") {
  std::mt19937 draw(5);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Interval> runs;
    const std::size_t kinds = 1 + draw() % 3;
    for (std::size_t i = 0; i < 1 + draw() % 30; ++i) {
      const std::int64_t begin = static_cast<std::int64_t>(
          i / kinds * (1 + draw() % 2) * 4 + i % kinds * 50);
      runs.push_back({begin, begin + static_cast<std::int64_t>(draw() % 4)});
    }
    CHECK(elements(emit::fold(runs)) == elements(runs));
  }
}

TEST_CASE("parts of uneven cuts go to the ranks and come back") {
  struct Cut {
    const char* mesh;
    const char* layout;
  };
  for (const Cut& one :
       {Cut{"3", "S(0)"}, Cut{"2,3", "S(0),S(0)"}, Cut{"3,2", "S(0)@1,S(0)@0"},
        Cut{"4", "SS(0,3)"}, Cut{"2,2,3", "S(0),S(0),S(0)"},
        Cut{"3,2", "SS(0,2),S(0)"}}) {
    for (std::int64_t size = 0; size < 60; ++size) {
      CAPTURE(one.layout);
      CAPTURE(size);
      const GroupCuts::Dim dim = cuts_of(one.mesh, one.layout, size);
      const auto sent = elements(emit::fold(dim.parted()));
      REQUIRE(static_cast<std::int64_t>(sent.size()) == dim.padded());
      std::vector<std::int64_t> back;
      for (const std::int64_t at : elements(emit::fold(dim.joined()))) {
        back.push_back(sent[static_cast<std::size_t>(at)]);
      }
      CHECK(back == elements(std::vector<Interval>{{0, size}}));
    }
  }
}

TEST_CASE("operators do not grow with the ranks of a group") {
  struct Cut {
    const char* few;
    const char* many;
    const char* layout;
  };
  for (const Cut& one :
       {Cut{"7", "1000", "S(0)"}, Cut{"5,3", "33,31", "S(0),S(0)"},
        Cut{"3,3,3", "11,9,10", "S(0),S(0),S(0)"},
        Cut{"6", "600", "SS(0,8)"}}) {
    CAPTURE(one.layout);
    for (const std::int64_t size : {128256, 128257, 130001}) {
      CAPTURE(size);
      const GroupCuts::Dim many = cuts_of(one.many, one.layout, size);
      CHECK(windows_of(emit::fold(many.joined())) <= 16);
      CHECK(windows_of(emit::fold(many.parted())) <= 16);
      const GroupCuts::Dim few = cuts_of(one.few, one.layout, size);
      CHECK(windows_of(emit::fold(few.joined())) <= 16);
    }
  }
}

}  // namespace
}  // namespace shardprop
