// AssignmentWalk and StrategyComposer against all assignments of mesh dims.
#include "strategy/assignment_walk.h"

#include "strategy/applied.h"
#include "strategy/strategy_composer.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using testing::applied;
using testing::value_of;

using Choices = std::vector<std::int16_t>;

// A composer that allows every prefix, or those without a forbidden pair of
// neighbours.
struct FreeComposer {
  Choices all;
  std::int16_t never_after = -2;  // this choice may not follow itself

  const Choices& choices() const { return all; }
  bool may_begin(const Assignment& prefix, bool) const {
    const std::size_t n = prefix.size();
    return n < 2 || prefix[n - 1] != never_after ||
           prefix[n - 2] != never_after;
  }
};

std::vector<Choices> walked(const FreeComposer& composer,
                            const DeviceMesh& mesh,
                            const StrategyOptions& options = {}) {
  std::vector<Choices> out;
  AssignmentWalk<FreeComposer>(composer, mesh, options, true)
      .run([](const Assignment&) { return true; },
           [&](const Assignment& assignment) {
             out.emplace_back(assignment.begin(), assignment.end());
             return true;
           });
  return out;
}

// All assignments, the last mesh dim fastest.
std::vector<Choices> every_assignment(const Choices& choices,
                                      const DeviceMesh& mesh) {
  std::vector<Choices> out = {{}};
  for (int m = 0; m < mesh.ndim(); ++m) {
    std::vector<Choices> longer;
    for (const Choices& prefix : out) {
      longer.push_back(prefix);
      longer.back().push_back(kUnassigned);
      if (mesh.size(m) == 1) continue;
      for (const std::int16_t choice : choices) {
        longer.push_back(prefix);
        longer.back().push_back(choice);
      }
    }
    out = std::move(longer);
  }
  return out;
}

int runs_in(const Choices& assignment, const DeviceMesh& mesh) {
  Choices active;
  for (std::size_t m = 0; m < assignment.size(); ++m) {
    if (mesh.size(static_cast<int>(m)) > 1) active.push_back(assignment[m]);
  }
  return static_cast<int>(std::unique(active.begin(), active.end()) -
                          active.begin());
}

TEST_CASE("the walk visits every assignment once, the last mesh dim fastest") {
  const FreeComposer composer{{0, 1, 4}};
  for (const std::string_view text : {"2", "2,3", "2,1,2", "1", "2,2,2"}) {
    const DeviceMesh mesh = value_of(DeviceMesh::parse(text));
    CHECK(walked(composer, mesh) == every_assignment(composer.all, mesh));
  }
}

TEST_CASE("the walk skips prefixes that no valid assignment has") {
  const FreeComposer composer{{0, 1}, 1};
  const DeviceMesh mesh = value_of(DeviceMesh::parse("2,2,2"));
  std::vector<Choices> expected = every_assignment(composer.all, mesh);
  std::erase_if(expected, [](const Choices& a) {
    return (a[0] == 1 && a[1] == 1) || (a[1] == 1 && a[2] == 1);
  });
  CHECK(walked(composer, mesh) == expected);
}

TEST_CASE("the walk asks about each prefix before it follows it") {
  const FreeComposer composer{{0, 1}};
  const DeviceMesh mesh = value_of(DeviceMesh::parse("2,2"));
  std::vector<Choices> asked;
  std::vector<Choices> visited;
  AssignmentWalk<FreeComposer>(composer, mesh, {}, true)
      .run(
          [&](const Assignment& prefix) {
            asked.emplace_back(prefix.begin(), prefix.end());
            return prefix[0] != 0;
          },
          [&](const Assignment& assignment) {
            visited.emplace_back(assignment.begin(), assignment.end());
            return visited.size() < 4;
          });
  CHECK(asked == std::vector<Choices>{
                     {-1}, {-1, -1}, {-1, 0}, {-1, 1}, {0}, {1}, {1, -1}});
  CHECK(visited == std::vector<Choices>{{-1, -1}, {-1, 0}, {-1, 1}, {1, -1}});
}

TEST_CASE("most_runs bounds the runs of mesh dims larger than 1") {
  const FreeComposer composer{{0, 1}};
  for (const std::string_view text : {"2,2,2", "2,1,2,2", "2,2,2,2"}) {
    const DeviceMesh mesh = value_of(DeviceMesh::parse(text));
    for (const int most : {1, 2, 3}) {
      StrategyOptions options;
      options.most_runs = most;
      std::vector<Choices> expected = every_assignment(composer.all, mesh);
      std::erase_if(expected,
                    [&](const Choices& a) { return runs_in(a, mesh) > most; });
      CHECK(walked(composer, mesh, options) == expected);
      CHECK(assignments_in_runs(3, mesh.num_active_dims(), most) ==
            static_cast<std::int64_t>(expected.size()));
    }
    StrategyOptions none;
    none.most_runs = 0;
    CHECK(walked(composer, mesh, none) ==
          std::vector<Choices>{
              Choices(static_cast<std::size_t>(mesh.ndim()), kUnassigned)});
  }
}

TEST_CASE("most_assignments lowers the runs on more than three mesh dims") {
  const FreeComposer composer{{0, 1, 2}};
  const DeviceMesh mesh = value_of(DeviceMesh::parse("2,2,2,2"));
  const auto all =
      static_cast<std::int64_t>(every_assignment(composer.all, mesh).size());
  for (const std::int64_t most : {all, all - 1, std::int64_t{60}}) {
    StrategyOptions options;
    options.most_assignments = most;
    const std::vector<Choices> found = walked(composer, mesh, options);
    CHECK(static_cast<std::int64_t>(found.size()) <= most);
    int longest = 0;
    for (const Choices& a : found) {
      longest = std::max(longest, runs_in(a, mesh));
    }
    if (longest < 4) CHECK(assignments_in_runs(4, 4, longest + 1) > most);
    CHECK(static_cast<std::int64_t>(found.size()) ==
          assignments_in_runs(4, 4, longest));
  }
  // Assignments of two runs always remain.
  StrategyOptions one;
  one.most_assignments = 1;
  CHECK(static_cast<std::int64_t>(walked(composer, mesh, one).size()) ==
        assignments_in_runs(4, 4, 2));
  const DeviceMesh small = value_of(DeviceMesh::parse("2,2,2"));
  CHECK(walked(composer, small, one) == every_assignment(composer.all, small));
}

TEST_CASE("joined mesh dims have the choice of the mesh dim before them") {
  const FreeComposer composer{{0, 1}};
  const DeviceMesh mesh = value_of(DeviceMesh::parse("2,1,2,2"));
  StrategyOptions options;
  options.joined_dims = 0b0100;  // mesh dim 2; mesh dim 1 is not counted
  std::vector<Choices> expected = every_assignment(composer.all, mesh);
  std::erase_if(expected, [](const Choices& a) { return a[2] != a[0]; });
  CHECK(walked(composer, mesh, options) == expected);
}

TEST_CASE("the number of assignments saturates") {
  CHECK(assignments_in_runs(2, 1, 5) == 2);
  CHECK(assignments_in_runs(1'000, 30, 30) == std::int64_t{1} << 40);
  CHECK(assignments_in_runs(32'767, 64, 64) == std::int64_t{1} << 40);
}

// --- StrategyComposer ---

struct Composed {
  Composed(OpSchema the_op, std::string_view mesh_text,
           StrategyOptions the_options = {})
      : op(std::move(the_op)),
        space(testing::space_of(op)),
        mesh(value_of(DeviceMesh::parse(mesh_text))),
        options(the_options),
        composer(op, space, mesh, options) {}
  Composed(const Composed&) = delete;

  std::vector<Assignment> every() const {
    std::vector<Assignment> out;
    for (const Choices& choices : every_assignment(composer.choices(), mesh)) {
      out.emplace_back(choices.begin(), choices.end());
    }
    return out;
  }

  OpSchema op;
  IndexSpace space;
  DeviceMesh mesh;
  StrategyOptions options;
  StrategyComposer composer;
};

using Ints = std::vector<std::int64_t>;

std::vector<OpSchema> composed_calls() {
  return {
      applied("aten.mm.default", {"f32[6,8]", "f32[8,5]"}),
      applied("aten.view.default", {"f32[4,6]"}, {{"size", Ints{24}}}),
      applied("aten.view.default", {"f32[3,8]"}, {{"size", Ints{3, 2, 4}}}),
      applied("aten.mean.dim", {"f32[7,4]"}, {{"dim", Ints{0}}}),
      applied("aten._softmax.default", {"f32[6,4]"},
              {{"dim", std::int64_t{1}}, {"half_to_float", false}}),
      applied("aten.amax.default", {"i64[5,2]"}, {{"dim", Ints{1}}}),
  };
}

TEST_CASE("may_begin() refuses only prefixes that no valid assignment has") {
  int refused = 0;
  for (const OpSchema& op : composed_calls()) {
    for (const std::string_view text : {"2", "2,3", "2,2,2"}) {
      for (const bool empty : {true, false}) {
        const Composed c(op, text, {.allow_empty_shards = empty});
        CAPTURE(op.name());
        CAPTURE(text);
        for (const Assignment& assignment : c.every()) {
          const bool valid = c.composer.layouts(assignment).has_value();
          bool followed = true;
          Assignment prefix;
          for (const std::int16_t choice : assignment) {
            prefix.push_back(choice);
            followed = followed && c.composer.may_begin(prefix, true);
          }
          // A valid assignment has no prefix that is refused.
          if (valid) CHECK(followed);
          if (!followed) ++refused;
        }
      }
    }
  }
  CHECK(refused > 100);
}

TEST_CASE("layouts of a valid assignment follow from the factors it cuts") {
  int compared = 0;
  for (const OpSchema& op : composed_calls()) {
    const Composed c(op, "2,3");
    const auto inputs = c.space.inputs.size();
    for (const Assignment& assignment : c.every()) {
      const auto layouts = c.composer.layouts(assignment);
      if (!layouts) continue;
      REQUIRE(layouts->size() == inputs + c.space.outputs.size());
      for (std::size_t o = 0; o < layouts->size(); ++o) {
        const Operand& operand =
            o < inputs ? c.space.inputs[o] : c.space.outputs[o - inputs];
        const Layout& layout = (*layouts)[o];
        for (int m = 0; m < c.mesh.ndim(); ++m) {
          const std::int16_t choice = assignment[static_cast<std::size_t>(m)];
          const bool cuts =
              choice >= 0 &&
              static_cast<std::size_t>(choice) < c.space.factors.size() &&
              operand.holds(choice);
          CHECK(layout[m].is_shard() == cuts);
          if (choice == kUnassigned) CHECK(layout[m].is_replicate());
          if (!cuts) continue;
          const auto& dim =
              operand.dims[static_cast<std::size_t>(layout[m].dim())];
          CHECK(std::find(dim.begin(), dim.end(), choice) != dim.end());
          ++compared;
        }
      }
    }
  }
  CHECK(compared > 100);
}

TEST_CASE("options remove assignments and change no layout") {
  int removed = 0;
  for (const OpSchema& op : composed_calls()) {
    for (const std::string_view text : {"3", "2,3", "4,2"}) {
      const Composed all(op, text);
      const Composed even(op, text, {.allow_uneven = false});
      const Composed full(op, text, {.allow_empty_shards = false});
      const Composed plain(op, text, {.allow_strided = false});
      const Composed ordered(op, text, {.allow_shard_orders = false});
      for (const Assignment& assignment : all.every()) {
        const auto layouts = all.composer.layouts(assignment);
        bool is_even = true;
        bool is_full = true;
        for (std::size_t f = 0; f < all.space.factors.size(); ++f) {
          const FactorShards shards = factor_shards(
              all.space, all.mesh, assignment, nullptr, static_cast<int>(f));
          is_even = is_even && shards.even;
          is_full = is_full && shards.smallest > 0;
        }
        const auto check = [&](const Composed& other, bool allowed) {
          const auto found = other.composer.layouts(assignment);
          removed += layouts && !found ? 1 : 0;
          if (layouts && allowed) {
            CHECK(found == layouts);
          } else {
            CHECK(!found.has_value());
          }
        };
        check(even, is_even);
        check(full, is_full);
        const auto each = [&](const auto& is_fine) {
          return layouts &&
                 std::all_of(layouts->begin(), layouts->end(), is_fine);
        };
        check(plain, each([](const Layout& l) { return !l.has_strided(); }));
        check(ordered,
              each([](const Layout& l) { return l.has_default_order(); }));
      }
    }
  }
  CHECK(removed > 50);
}

TEST_CASE("a choice needs reductions that the dtype defines") {
  // A sum of bools is not defined, so no linearity passes such partials.
  const Composed floats(applied("aten.clone.default", {"f32[8]"}), "2");
  const Composed bools(applied("aten.clone.default", {"bool[8]"}), "2");
  const auto reductions = [](const Composed& c) {
    std::set<ReduceOp> out;
    for (const Assignment& assignment : c.every()) {
      const auto layouts = c.composer.layouts(assignment);
      if (layouts && (*layouts)[0][0].is_partial()) {
        out.insert((*layouts)[0][0].reduce_op());
      }
    }
    return out;
  };
  CHECK(reductions(floats).contains(ReduceOp::kAvg));
  CHECK(!reductions(bools).contains(ReduceOp::kAvg));
}

}  // namespace
}  // namespace shardprop
