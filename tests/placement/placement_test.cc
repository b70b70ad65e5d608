#include <shardprop/placement/placement.h>

#include "support/property.h"
#include "support/result_checks.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

namespace shardprop {
namespace {

using testing::property;
using testing::value_of;

Placement some_placement() {
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      return Placement::replicate();
    case 1:
      return Placement::shard(*rc::gen::inRange(0, 64));
    case 2:
      return Placement::strided_shard(*rc::gen::inRange(0, 64),
                                      *rc::gen::inRange(1, 1 << 20));
    default: {
      const ReduceOp op = kAllReduceOps[*rc::gen::inRange<std::size_t>(
          0, std::size(kAllReduceOps))];
      const auto dtypes = all_dtypes();
      const auto at = *rc::gen::inRange<std::size_t>(0, dtypes.size() + 1);
      return at == dtypes.size() ? Placement::partial(op)
                                 : Placement::partial(op, dtypes[at]);
    }
  }
}

TEST_CASE("a placement reads back what it prints, and is its bits") {
  property(40000, [] {
    const Placement a = some_placement();
    const Placement b = some_placement();
    RC_ASSERT(Placement::parse(to_string(a)) == a);
    RC_ASSERT((a == b) == (a.bits() == b.bits()));
    RC_ASSERT((a == b) == (to_string(a) == to_string(b)));
    RC_ASSERT(((a <=> b) == 0) == (a == b));
  });
}

TEST_CASE("kinds") {
  const Placement plain = value_of(Placement::parse("S(1)"));
  CHECK(plain.is_shard());
  CHECK_FALSE(plain.is_strided());
  CHECK(plain.shards(1));
  CHECK_FALSE(plain.shards(0));
  CHECK(plain.split_factor() == 1);

  const Placement strided = value_of(Placement::parse("SS(1,4)"));
  CHECK(strided.is_shard());
  CHECK(strided.is_strided());
  CHECK(strided.dim() == 1);
  CHECK(strided.split_factor() == 4);
  CHECK(strided.with_dim(3) == Placement::strided_shard(3, 4));
  CHECK(value_of(Placement::parse("SS(1,1)")) == plain);

  const Placement partial = value_of(Placement::parse("P(avg)"));
  CHECK(partial.is_partial());
  CHECK_FALSE(partial.shards(0));
  CHECK(partial.reduce_op() == ReduceOp::kAvg);
  CHECK_FALSE(partial.reduce_dtype().has_value());
  CHECK(value_of(Placement::parse("P(sum,f32)")).reduce_dtype() == DType::kF32);
  CHECK(Placement().is_replicate());
}

TEST_CASE("reduce ops and where they are defined") {
  for (const ReduceOp op : kAllReduceOps) {
    CHECK(parse_reduce_op(to_string(op)) == op);
    CHECK(is_defined(op, DType::kI32) == (op != ReduceOp::kAvg));
  }
  CHECK_FALSE(parse_reduce_op("mean").has_value());
  CHECK_FALSE(parse_reduce_op("").has_value());
  CHECK(is_defined(ReduceOp::kAvg, DType::kBF16));
  CHECK(is_defined(ReduceOp::kAvg, DType::kC64));
  CHECK_FALSE(is_defined(ReduceOp::kMax, DType::kC64));
  CHECK(is_defined(ReduceOp::kBor, DType::kBool));
  CHECK_FALSE(is_defined(ReduceOp::kBxor, DType::kF32));
}

}  // namespace
}  // namespace shardprop
