// AssignmentBounds never exceeds the cost of the moves of an assignment.
#include "propagate/assignment_bounds.h"

#include "propagate/bounded_call.h"
#include "propagate/fixtures.h"
#include "support/property.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using testing::BoundedCall;
using testing::call;
using testing::layouts;
using testing::value_of;

constexpr std::int64_t kNever = AssignmentBounds::kImpossible;

// Collects every assignment of a call and its operands.
class EveryAssignment : public StrategyVisitor {
 public:
  bool follows(const Assignment&) override { return true; }
  bool visit(const Assignment& assignment, const FactorShardings&,
             std::span<const Layout> operands) override {
    found.push_back({assignment, {operands.begin(), operands.end()}});
    return true;
  }
  struct Found {
    Assignment assignment;
    std::vector<Layout> operands;
  };
  std::vector<Found> found;
};

// Only assignments whose linearities some input feeds have a bound; turning
// replicated tensors into partials never costs less than keeping them.
bool is_fed(const OperandNeeds& needs, const Assignment& assignment) {
  return std::all_of(
      assignment.begin(), assignment.end(),
      [&](std::int16_t choice) { return needs.is_fed_choice(choice); });
}

Assignment prefix_of(const Assignment& assignment, std::size_t length) {
  return {assignment.begin(),
          assignment.begin() + static_cast<std::ptrdiff_t>(length)};
}

struct Counts {
  int assignments = 0;
  int bounded = 0;  // assignments with moves and a bound above 0
  int moving = 0;
  int exact = 0;
};

// Compares all bounds of a call with the costs of all its assignments.
void check_bounds(BoundedCall& c, Counts& counts) {
  EveryAssignment every;
  c.bound_op.walk->run(every);
  std::int64_t dearest = 0;
  std::map<std::vector<std::int16_t>, std::int64_t> least_of_prefix;
  const auto words = [](const Assignment& a) {
    return std::vector<std::int16_t>(a.begin(), a.end());
  };
  for (const auto& [assignment, operands] : every.found) {
    const std::int64_t cost = c.moved(operands);
    if (!is_fed(c.needs, assignment) || cost == kNever) continue;
    dearest = std::max(dearest, cost);
    for (std::size_t n = 1; n <= assignment.size(); ++n) {
      const auto [at, is_new] =
          least_of_prefix.try_emplace(words(prefix_of(assignment, n)), cost);
      at->second = std::min(at->second, cost);
    }
  }
  AssignmentBounds bounds = c.bounds();
  for (const std::int64_t limit :
       {std::int64_t{-1}, dearest / 8, dearest / 2, dearest}) {
    if (limit >= 0) bounds.extend(limit);
    for (const auto& [assignment, operands] : every.found) {
      const std::int64_t cost = c.moved(operands);
      if (!is_fed(c.needs, assignment) || cost == kNever) continue;
      CAPTURE(limit);
      std::int64_t last = 0;
      for (std::size_t n = 1; n <= assignment.size(); ++n) {
        last = bounds.of(prefix_of(assignment, n));
        CHECK(last <= least_of_prefix.at(words(prefix_of(assignment, n))));
        CHECK(bounds.of_last(n) == last);
      }
      CHECK(last <= cost);
      const std::int64_t sharp = bounds.of_last(assignment.size(), operands);
      CHECK(sharp <= cost);
      CHECK(bounds.of_whole(assignment) == last);
      ++counts.assignments;
      counts.moving += cost > 0 ? 1 : 0;
      counts.bounded += cost > 0 && last > 0 ? 1 : 0;
      bool all_exact = true;
      for (std::size_t i = 0; i < c.given.size(); ++i) {
        all_exact =
            all_exact && c.needs.is_exact(i) && bounds.moves(i).is_listed();
      }
      if (all_exact && limit == dearest) {
        CHECK(last == cost);
        ++counts.exact;
      }
    }
  }
}

// All layouts of a tensor with these placements on the mesh.
std::vector<Layout> canonical_layouts(const DeviceMesh& mesh, int rank,
                                      std::mt19937& random) {
  std::vector<Placement> placements = {Placement::replicate(),
                                       Placement::partial(ReduceOp::kSum)};
  for (int d = 0; d < rank; ++d) placements.push_back(Placement::shard(d));
  std::vector<Layout> out;
  for (int n = 0; n < 4; ++n) {
    Placements drawn;
    for (int m = 0; m < mesh.ndim(); ++m) {
      drawn.push_back(mesh.size(m) == 1
                          ? Placement::replicate()
                          : placements[random() % placements.size()]);
    }
    out.push_back(value_of(Layout::create(drawn)));
  }
  return out;
}

TEST_CASE("no assignment costs less than the bounds of its prefixes") {
  std::mt19937 random(10);
  const std::vector<OpSchema> calls = {
      call("aten.mm.default", {"bf16[5,8]", "bf16[8,6]"}),
      call("aten.mm.default", {"bf16[4096,4096]", "bf16[4096,512]"}),
      call("aten.add.Tensor", {"f32[16,64]", "f32[64]"}),
      call("aten.bmm.default", {"f32[4,512,64]", "f32[4,64,512]"}),
      call("aten.t.default", {"f32[12,5]"}),
      call("aten._softmax.default", {"f32[64,48]"},
           {{"dim", std::int64_t{1}}, {"half_to_float", false}}),
  };
  Counts counts;
  for (const std::string_view mesh_text : {"4", "2,3", "2,1,2", "2,2,2"}) {
    const DeviceMesh mesh = value_of(DeviceMesh::parse(mesh_text));
    for (const OpSchema& op : calls) {
      const int draws = testing::scaled(mesh.ndim() == 3 ? 2 : 4);
      for (int n = 0; n < draws; ++n) {
        std::vector<Layout> given;
        for (const TensorMeta& meta : op.inputs) {
          const auto some = canonical_layouts(mesh, meta.rank(), random);
          given.push_back(
              canonical(some[random() % some.size()], mesh, meta.shape()));
        }
        std::string text(mesh_text);
        for (const Layout& layout : given) text += " " + to_string(layout);
        INFO(op.name() << " on " << text);
        BoundedCall bounded(mesh_text, op, given, n % 2 == 0 ? 2 : 8);
        check_bounds(bounded, counts);
      }
    }
  }
  MESSAGE(counts.assignments << " assignments, moving " << counts.moving
                             << ", bounded " << counts.bounded << ", exact "
                             << counts.exact);
  CHECK(counts.moving > 1'000);
  CHECK(counts.bounded > counts.moving * 9 / 10);
  CHECK(counts.exact > 300);
}

TEST_CASE("the greedy bound is that of the cheapest choice per mesh dim") {
  std::mt19937 random(11);
  const OpSchema op = call("aten.mm.default", {"bf16[64,64]", "bf16[64,64]"});
  for (const std::string_view mesh_text : {"2,2,2", "2,4,2", "2,1,4"}) {
    const DeviceMesh mesh = value_of(DeviceMesh::parse(mesh_text));
    for (int n = 0; n < 6; ++n) {
      std::vector<Layout> given;
      for (std::size_t i = 0; i < 2; ++i) {
        given.push_back(canonical_layouts(mesh, 2, random).front());
      }
      INFO(mesh_text << " " << to_string(given[0]) << " "
                     << to_string(given[1]));
      BoundedCall bounded(mesh_text, op, given);
      AssignmentBounds bounds = bounded.bounds();
      const std::int64_t found = bounds.of_greedy_choices();
      // The same choices, made by bounds of whole prefixes from scratch.
      AssignmentBounds plain = bounded.bounds();
      const auto choices = static_cast<std::int16_t>(bounded.needs.choices());
      Assignment greedy;
      std::int64_t least = 0;
      for (int m = 0; m < mesh.ndim(); ++m) {
        least = kNever;
        Assignment best;
        for (std::int16_t choice = kUnassigned; choice < choices; ++choice) {
          Assignment longer = greedy;
          longer.push_back(choice);
          const std::int64_t of_longer = plain.of_whole(longer);
          if (of_longer < least) {
            least = of_longer;
            best = longer;
          }
        }
        greedy = best;
      }
      CHECK(found == least);
      CHECK(found == plain.of_whole(greedy));
    }
  }
}

TEST_CASE("meshes of one or two dims have no greedy bound") {
  const OpSchema op = call("aten.mm.default", {"bf16[64,64]", "bf16[64,64]"});
  BoundedCall one("4", op, layouts({"S(0)", "R"}));
  CHECK(one.bounds().of_greedy_choices() == kNever);
  BoundedCall two("2,2", op, layouts({"S(0),R", "R,R"}));
  CHECK(two.bounds().of_greedy_choices() == kNever);
}

TEST_CASE("an assignment that moves a written input is impossible") {
  const OpSchema op = call("aten.add.Tensor", {"f32[16,64]", "f32[16,64]"});
  BoundedCall bounded("2", op, layouts({"S(0)", "S(0)"}));
  bounded.written[0] = true;
  AssignmentBounds bounds = bounded.bounds();
  const Assignment replicated = {kUnassigned};
  const Assignment rows = {0};
  CHECK(bounds.of(rows) == 0);
  CHECK(!bounds.written_moves());
  CHECK(bounds.of(replicated) == kNever);
  CHECK(bounds.written_moves());
}

TEST_CASE("a shard where every strategy needs a partial is refused by name") {
  // The linearity of add requires a partial of both operands.
  const OpSchema op = call("aten.add.Tensor", {"f32[16,64]", "f32[16,64]"});
  BoundedCall bounded("2", op, layouts({"P(sum)", "S(0)"}));
  const auto factors =
      static_cast<std::int16_t>(bounded.bound_op.space->factors.size());
  AssignmentBounds bounds = bounded.bounds();
  std::int16_t refused = kUnassigned;
  for (auto c = factors; c < static_cast<std::int16_t>(bounded.needs.choices());
       ++c) {
    if (bounded.needs.is_fed_choice(c) && bounded.needs.of(c, 1).is_partial()) {
      refused = c;
    }
  }
  REQUIRE(refused != kUnassigned);
  CHECK(bounds.refused().message.empty());
  Assignment linear;
  linear.push_back(refused);
  CHECK(bounds.of(linear) == kNever);
  CHECK(bounds.refused().code == ErrorCode::kShardToPartial);
  CHECK(bounds.refused().message.find("operand 1 of `aten.add.Tensor`") !=
        std::string::npos);
}

}  // namespace
}  // namespace shardprop
