#include <shardprop/base/strong_id.h>

#include <doctest/doctest.h>

#include <type_traits>
#include <unordered_set>

namespace shardprop {
namespace {

using NodeId = StrongId<struct NodeTag>;
using ValueId = StrongId<struct ValueTag>;

static_assert(!std::is_convertible_v<NodeId, ValueId>);
static_assert(!std::is_convertible_v<std::size_t, NodeId>);
static_assert(!std::is_convertible_v<NodeId, std::size_t>);
static_assert(sizeof(NodeId) == 4);

TEST_CASE("ids are ordered by index, and one made of nothing names nothing") {
  CHECK_FALSE(NodeId().valid());
  CHECK(NodeId(0).valid());
  CHECK(NodeId(3).index() == 3);
  CHECK(NodeId(2) < NodeId(3));
  CHECK(NodeId(2) == NodeId(2));
  std::unordered_set<NodeId> seen{NodeId(1), NodeId(2), NodeId(1)};
  CHECK(seen.size() == 2);
}

}  // namespace
}  // namespace shardprop
