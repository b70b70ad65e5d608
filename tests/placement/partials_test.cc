#include <shardprop/placement/partials.h>

#include "support/result_checks.h"

namespace shardprop {
namespace {

Placement partial(const char* text) {
  return testing::value_of(Placement::parse(text));
}

TEST_CASE("sum and average mix, other reduce ops only with their own kind") {
  CHECK(partials_mix(partial("P(sum)"), partial("P(avg)")));
  CHECK(partials_mix(partial("P(max)"), partial("P(max)")));
  CHECK_FALSE(partials_mix(partial("P(sum)"), partial("P(max)")));
  CHECK_FALSE(partials_mix(partial("P(sum)"), partial("P(sum,f32)")));
}

TEST_CASE("sum beside average is one sum") {
  for (const char* a : {"P(sum)", "P(avg)"}) {
    for (const char* b : {"P(sum)", "P(avg)"}) {
      const bool averaged =
          partial(a) == partial("P(avg)") && partial(b) == partial("P(avg)");
      CHECK(combined_partial(partial(a), partial(b)) ==
            partial(averaged ? "P(avg)" : "P(sum)"));
    }
  }
  CHECK(combined_partial(partial("P(max)"), partial("P(max)")) ==
        partial("P(max)"));
}

}  // namespace
}  // namespace shardprop
