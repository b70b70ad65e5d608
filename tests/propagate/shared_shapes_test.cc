// SharedShapes: one answer serves the calls of a family, whose sizes differ.
#include "propagate/shared_shapes.h"

#include "propagate/bounded_call.h"
#include "propagate/drawn_calls.h"
#include "propagate/fixtures.h"
#include "propagate/strategy_search.h"

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using testing::BoundedCall;
using testing::call;
using testing::layouts;
using testing::propagator_on;
using testing::value_of;

// A call, its family and its answer.
struct Answered {
  Answered(std::string_view mesh_text, const OpSchema& the_op,
           const std::vector<std::string_view>& given)
      : op(the_op), bounded(mesh_text, the_op, layouts(given)) {
    has_family =
        write_family(key, sizes, op, bounded.given, bounded.bound_op.looks);
    answer = value_of(propagator_on(mesh_text).propagate(op, bounded.given));
    const auto chosen =
        choose_strategy(bounded.context, bounded.bound_op, bounded.given);
    REQUIRE(chosen.has_value());
    if (has_family && chosen->is_only_fit) {
      shapes = shared_shapes(bounded.bound_op, answer, bounded.mesh, sizes);
    }
  }
  bool is_in_family_of(const Answered& other) const {
    const auto a = key.words();
    const auto b = other.key.words();
    return has_family && other.has_family &&
           std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

  OpSchema op;
  BoundedCall bounded;
  KeyBuffer key;
  SizeClasses sizes;
  bool has_family = false;
  OutputSharding answer;
  std::shared_ptr<const SharedShapes> shapes;
};

OpSchema mm_of(std::int64_t m, std::int64_t k, std::int64_t n) {
  const auto text = [](std::int64_t a, std::int64_t b) {
    return "f32[" + std::to_string(a) + "," + std::to_string(b) + "]";
  };
  return call("aten.mm.default", {text(m, k), text(k, n)});
}

TEST_CASE("SizeClasses numbers different sizes, and 1 has a class of its own") {
  SizeClasses sizes;
  CHECK(sizes.add(8) == 1);
  CHECK(sizes.add(16) == 2);
  CHECK(sizes.add(8) == 1);
  CHECK(sizes.add(1) == SizeClasses::kOne);
  CHECK(sizes.count() == 2);
  CHECK(sizes[1] == 8);
  CHECK(sizes[2] == 16);
  CHECK(sizes[SizeClasses::kOne] == 1);
  for (std::int64_t size = 100; sizes.count() < SizeClasses::kMost; ++size) {
    const std::size_t before = sizes.count();
    CHECK(sizes.add(size) == before + 1);
  }
  CHECK(sizes.add(1'000) == SizeClasses::kTooMany);
  CHECK(sizes.add(16) == 2);
}

TEST_CASE("the answer of a matmul serves other sizes that divide evenly") {
  const Answered small("2", mm_of(8, 16, 4), {"S(0)", "R"});
  REQUIRE(small.shapes != nullptr);
  const Answered large("2", mm_of(6, 32, 10), {"S(0)", "R"});
  CHECK(large.is_in_family_of(small));
  CHECK(serves(*small.shapes, large.sizes));
  OutputSharding filled = small.answer;
  REQUIRE(fill_in(*small.shapes, large.sizes, large.op, filled));
  CHECK(testing::difference(large.answer, filled, large.bounded.mesh).empty());
  // 7 rows over 2 ranks are uneven.
  const Answered uneven("2", mm_of(7, 32, 10), {"S(0)", "R"});
  CHECK(uneven.is_in_family_of(small));
  CHECK(!serves(*small.shapes, uneven.sizes));
}

TEST_CASE("calls of one family have equal sizes at equal places") {
  const Answered small("2", mm_of(8, 16, 4), {"S(0)", "R"});
  // Rows and columns became equal, or a size became 1.
  CHECK(!Answered("2", mm_of(8, 8, 4), {"S(0)", "R"}).is_in_family_of(small));
  CHECK(!Answered("2", mm_of(8, 16, 1), {"S(0)", "R"}).is_in_family_of(small));
  CHECK(!Answered("2", mm_of(8, 16, 4), {"R", "S(1)"}).is_in_family_of(small));
  CHECK(!Answered("2", call("aten.mm.default", {"bf16[8,16]", "bf16[16,4]"}),
                  {"S(0)", "R"})
             .is_in_family_of(small));
}

TEST_CASE("strides, empty tensors and strided shards have no family") {
  const auto has_family = [](const std::string& tensor,
                             std::string_view layout) {
    return Answered("2", call("aten.relu.default", {tensor}), {layout})
        .has_family;
  };
  CHECK(has_family("f32[8,4]", "S(0)"));
  CHECK(!has_family("f32[0,4]", "R"));
  CHECK(!has_family("f32[8,4]{1,8}", "S(0)"));
  CHECK(!has_family("f32[8,4]", "SS(0,2)"));
}

TEST_CASE("an answer that moves, is uneven or reads a size serves no other") {
  // Every element of a softmax needs its whole row, so rows are not parallel.
  const OpSchema softmax =
      call("aten._softmax.default", {"f32[8,4]"},
           {{"dim", std::int64_t{1}}, {"half_to_float", false}});
  CHECK(Answered("2", softmax, {"S(0)"}).shapes == nullptr);
  const OpSchema flip = call("aten.flip.default", {"f32[8,4]"},
                             {{"dims", std::vector<std::int64_t>{1}}});
  CHECK(Answered("2", flip, {"S(0)"}).shapes == nullptr);
  // One operand must move, also if a caller ignores that.
  const Answered moving("2", mm_of(8, 16, 4), {"S(0)", "S(1)"});
  REQUIRE(!moving.answer.moves.empty());
  CHECK(moving.shapes == nullptr);
  CHECK(shared_shapes(moving.bounded.bound_op, moving.answer,
                      moving.bounded.mesh, moving.sizes) == nullptr);
  CHECK(Answered("2", mm_of(7, 16, 4), {"S(0)", "R"}).shapes == nullptr);
  // A view merges and splits dims by sizes that are arguments.
  const OpSchema view = call("aten.view.default", {"f32[8,6]"},
                             {{"size", std::vector<std::int64_t>{2, 4, 6}}});
  CHECK(Answered("2", view, {"R"}).shapes == nullptr);
}

TEST_CASE("every family member's own answer is the one that is filled in") {
  std::mt19937 random(3);
  const auto drawn_size = [&] {
    return std::int64_t{2} * static_cast<std::int64_t>(1 + random() % 6);
  };
  const auto text = [](std::vector<std::int64_t> sizes) {
    std::string out = "f32[";
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      out += (i == 0 ? "" : ",") + std::to_string(sizes[i]);
    }
    return out + "]";
  };
  int served = 0;
  for (int n = 0; n < 150; ++n) {
    const auto make = [&](int kind) {
      const std::int64_t a = drawn_size();
      const std::int64_t b = drawn_size();
      const std::int64_t c = drawn_size();
      const std::int64_t d = drawn_size();
      switch (kind) {
        case 0:
          return mm_of(a, b, c);
        case 1:
          return call("aten.bmm.default", {text({d, a, b}), text({d, b, c})});
        case 2:
          return call("aten.add.Tensor", {text({a, b}), text({b})});
        default:
          return call("aten.t.default", {text({a, b})});
      }
    };
    const int kind = n % 4;
    const std::vector<std::vector<std::string_view>> given = {
        {"S(0)", "R"}, {"S(0)", "S(0)"}, {"S(1)", "S(0)"}, {"S(0)"}};
    const Answered one("2", make(kind), given[static_cast<std::size_t>(kind)]);
    const Answered two("2", make(kind), given[static_cast<std::size_t>(kind)]);
    if (one.shapes == nullptr || !two.is_in_family_of(one) ||
        !serves(*one.shapes, two.sizes)) {
      continue;
    }
    ++served;
    OutputSharding filled = one.answer;
    REQUIRE(fill_in(*one.shapes, two.sizes, two.op, filled));
    CHECK(testing::difference(two.answer, filled, two.bounded.mesh).empty());
  }
  CHECK(served > 30);
}

}  // namespace
}  // namespace shardprop
