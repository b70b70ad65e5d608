#include "base/guard.h"
#include "base/parallel.h"

#include "support/result_checks.h"

#include <atomic>
#include <set>
#include <stdexcept>
#include <vector>

namespace shardprop {
namespace {

template <class Exception>
Result<int> guarded_throw(const Exception& exception) {
  return guarded([&]() -> Result<int> { throw exception; });
}

TEST_CASE("what the machine refuses is an error") {
  CHECK(guarded([]() -> Result<int> { return 7; }) == 7);
  CHECK_CODE(guarded_throw(std::bad_alloc()), ErrorCode::kOutOfMemory);
  CHECK_CODE(guarded_throw(std::length_error("vector")),
             ErrorCode::kOutOfMemory);
  CHECK_CODE(guarded_throw(std::system_error(std::make_error_code(
                 std::errc::resource_unavailable_try_again))),
             ErrorCode::kThreadStart);
}

TEST_CASE("a bug of ours stays one") {
  CHECK_THROWS_AS((void)guarded_throw(InternalError("broken")), InternalError);
  CHECK_THROWS_AS((void)guarded_throw(std::system_error(
                      std::make_error_code(std::errc::io_error))),
                  std::system_error);
}

TEST_CASE("every share runs once") {
  for (const std::size_t n : {0, 1, 2, 7}) {
    std::vector<std::atomic<int>> runs(n);
    parallel(n, [&](std::size_t i) { ++runs[i]; });
    for (const auto& count : runs) CHECK(count == 1);
  }
}

TEST_CASE("the exception of the first share that threw reaches the caller") {
  for (const std::size_t first : {0, 2, 3}) {
    std::atomic<int> ran = 0;
    const auto work = [&] {
      parallel(5, [&](std::size_t i) {
        ++ran;
        if (i >= first) throw std::out_of_range(std::to_string(i));
      });
    };
    CHECK_THROWS_WITH_AS(work(), std::to_string(first).c_str(),
                         std::out_of_range);
    CHECK(ran == 5);
  }
}

}  // namespace
}  // namespace shardprop
