#include "base/memory_at_hand.h"

#include "support/result_checks.h"

#include <sys/resource.h>

#include <cstdint>
#include <limits>

namespace shardprop {
namespace {

TEST_CASE("some memory is at hand, and not all that there could be") {
  CHECK(memory_at_hand() > 0);
  CHECK(check_fits(0, "things").has_value());
  CHECK(check_fits(1 << 10, "things").has_value());
#ifdef __linux__
  const auto refused =
      check_fits(std::numeric_limits<std::int64_t>::max() - 1, "things");
  CHECK_CODE(refused, ErrorCode::kOutOfMemory);
  CHECK(refused.error().message.starts_with(
      "things take at least 8192.0 PiB of memory, "));
#endif
}

// Sanitizers need far more addresses than memory.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a limit on addresses is one on memory") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
  rlimit little = before;
  little.rlim_cur = rlim_t{1} << 30;
  REQUIRE(::setrlimit(RLIMIT_AS, &little) == 0);
  const std::int64_t left = memory_at_hand();
  REQUIRE(::setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(left <= std::int64_t{1} << 30);
}
#endif

}  // namespace
}  // namespace shardprop
