#include "base/quantities.h"

#include <doctest/doctest.h>

#include <cstdint>

namespace shardprop {
namespace {

TEST_CASE("counts agree with their nouns") {
  CHECK(counted(std::int64_t{0}, "op") == "0 ops");
  CHECK(counted(std::int64_t{1}, "mesh dim") == "1 mesh dim");
  CHECK(counted(std::int64_t{2}, "mesh dim") == "2 mesh dims");
  CHECK(counted(std::int64_t{7415}, "op") == "7,415 ops");
}

}  // namespace
}  // namespace shardprop
