#include "base/budget.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <stop_token>

namespace shardprop {
namespace {

// The clock of these tests stands still until a test moves it.
Budget::Clock::time_point test_now;
Budget::Clock::time_point read_test_clock() { return test_now; }
void pass_seconds(double seconds) {
  test_now += std::chrono::duration_cast<Budget::Clock::duration>(
      std::chrono::duration<double>(seconds));
}

Budget budget(const BudgetLimits& limits, std::stop_token stop = {}) {
  return Budget(limits, std::move(stop), std::nullopt, &read_test_clock);
}

TEST_CASE("a budget without limits never stops") {
  Budget all = budget({});
  pass_seconds(1e9);
  all.charge(std::numeric_limits<std::uint64_t>::max());
  CHECK(!all.is_stopped());
  CHECK(!all.is_cut_off());
  CHECK(!all.deadline());
  CHECK(!all.work_left());
  CHECK(!all.share(0.5).is_stopped());
  CHECK(!all.one_of(3).is_stopped());
  CHECK(!all.until(0.5).is_stopped());
  CHECK(all.share_spent() == 0);
}

TEST_CASE("whoever asks a budget learns which limit has ended it") {
  std::stop_source source;
  Budget all = budget({.seconds = 10, .work = 100}, source.get_token());
  CHECK(!all.stopped());
  SUBCASE("time") {
    pass_seconds(9.5);
    CHECK(!all.stopped());
    pass_seconds(0.5);
    CHECK(all.stopped() == StoppedBy::kTime);
    CHECK(all.cut_off() == StoppedBy::kTime);
  }
  SUBCASE("work, which running work does not ask for") {
    all.charge(99);
    CHECK(!all.stopped());
    all.charge(1);
    CHECK(all.stopped() == StoppedBy::kWork);
    CHECK(!all.cut_off());
  }
  SUBCASE("a request") {
    source.request_stop();
    CHECK(all.stopped() == StoppedBy::kRequest);
    CHECK(all.cut_off() == StoppedBy::kRequest);
  }
  SUBCASE("a request before work, and work before time") {
    pass_seconds(11);
    all.charge(101);
    CHECK(all.stopped() == StoppedBy::kWork);
    CHECK(all.cut_off() == StoppedBy::kTime);
    source.request_stop();
    CHECK(all.stopped() == StoppedBy::kRequest);
  }
}

TEST_CASE("a share is a part of the rest, and begins now") {
  std::stop_source source;
  Budget all = budget({.seconds = 10, .work = 1000}, source.get_token());
  pass_seconds(2);
  all.charge(200);
  Budget half = all.share(0.5);
  CHECK(half.seconds_left() == doctest::Approx(4));
  CHECK(half.seconds_spent() == 0);
  CHECK(half.work_left() == 400);
  CHECK(half.work_spent() == 0);
  CHECK(all.share(0.25, 1).seconds_left() == doctest::Approx(2));
  CHECK(all.share(0.25, 1).work_left() == 800);
  CHECK(all.rest().seconds_left() == doctest::Approx(8));
  CHECK(all.rest().work_left() == 800);
  CHECK(all.one_of(3).work_left() == 266);
  CHECK(all.one_of(4).seconds_left() == doctest::Approx(2));

  // The work of a child is its own until somebody charges the parent.
  half.charge(400);
  CHECK(half.stopped() == StoppedBy::kWork);
  CHECK(all.work_left() == 800);
  all.charge(half.work_spent());
  CHECK(all.work_left() == 400);

  // The stop token is that of the parent.
  source.request_stop();
  CHECK(half.stopped() == StoppedBy::kRequest);
}

TEST_CASE(
    "a narrowed budget keeps its beginning and loses a part of the rest") {
  Budget all = budget({.seconds = 10, .work = 100});
  pass_seconds(2);
  all.charge(40);
  const Budget half = all.narrowed(0.5);
  CHECK(half.seconds_spent() == doctest::Approx(2));
  CHECK(half.seconds_left() == doctest::Approx(4));
  CHECK(half.work_spent() == 40);
  CHECK(half.work_left() == 30);
  CHECK(all.narrowed(1).work_left() == 60);
  Budget unlimited = budget({});
  CHECK(!unlimited.narrowed(0.5).is_stopped());
  pass_seconds(20);
  CHECK(all.narrowed(0.5).stopped() == StoppedBy::kTime);
}

TEST_CASE("shares of a spent budget are spent") {
  Budget all = budget({.seconds = 1, .work = 10});
  pass_seconds(2);
  all.charge(11);
  CHECK(all.seconds_left() < 0);
  CHECK(all.work_left() == 0);
  for (const Budget& child :
       {all.rest(), all.share(0.5), all.one_of(2), all.until(0.5),
        all.within({.seconds = 5, .work = 5})}) {
    CHECK(child.stopped() == StoppedBy::kWork);
    CHECK(child.cut_off() == StoppedBy::kTime);
  }
}

TEST_CASE("all of a large amount of work is exactly that") {
  constexpr std::uint64_t kLarge = (std::uint64_t{1} << 62) - 1;
  const Budget all = budget({.work = kLarge});
  CHECK(all.rest().work_left() == kLarge);
  CHECK(all.until(1).work_left() == kLarge);
  CHECK(all.share(0.5, 1).work_left() == kLarge);
}

TEST_CASE("an earlier end counts from the same beginning") {
  Budget all = budget({.seconds = 10, .work = 1000});
  pass_seconds(3);
  all.charge(450);
  const Budget until = all.until(0.5);
  CHECK(until.seconds_spent() == doctest::Approx(3));
  CHECK(until.seconds_left() == doctest::Approx(2));
  CHECK(until.work_left() == 50);
  CHECK(until.deadline() == test_now + std::chrono::seconds(2));
  CHECK(all.until(0.3, 1).stopped() == StoppedBy::kTime);
  CHECK(all.until(1, 0.4).stopped() == StoppedBy::kWork);
  // An equal part of the rest up to there.
  CHECK(until.one_of(2).work_left() == 25);
}

TEST_CASE("further limits can only shorten a budget, new ones replace it") {
  const Budget all = budget({.seconds = 10, .work = 1000});
  CHECK(all.within({.work = 50}).work_left() == 50);
  CHECK(all.within({.work = 50}).seconds_left() == doctest::Approx(10));
  CHECK(all.within({.seconds = 2, .work = 5000}).work_left() == 1000);
  CHECK(all.within({.seconds = 2}).seconds_left() == doctest::Approx(2));
  CHECK(budget({.seconds = 10}).within({.work = 50}).work_left() == 50);

  std::stop_source source;
  const Budget spent = budget({.seconds = 0, .work = 0}, source.get_token());
  CHECK(spent.stopped() == StoppedBy::kWork);
  CHECK(spent.cut_off() == StoppedBy::kTime);
  const Budget renewed = spent.renewed({.seconds = 1});
  CHECK(!renewed.stopped());
  CHECK(!renewed.work_left());
  source.request_stop();
  CHECK(renewed.stopped() == StoppedBy::kRequest);
}

TEST_CASE("a budget of at least some work may exceed the rest of its parent") {
  Budget all({.work = 10});
  all.charge(10);
  CHECK(all.rest().at_least(4).work_left() == 4);
  CHECK(Budget({.work = 10}).at_least(4).work_left() == 10);
  CHECK_FALSE(Budget().at_least(4).work_limit().has_value());
}

TEST_CASE("the spent share is that of the work if work is limited") {
  Budget by_time = budget({.seconds = 8});
  Budget by_work = budget({.seconds = 8, .work = 100});
  pass_seconds(2);
  by_time.charge(75);
  by_work.charge(75);
  CHECK(by_time.share_spent() == doctest::Approx(0.25));
  CHECK(by_work.share_spent() == 0.75);
  CHECK(by_work.share_of_time_spent() == doctest::Approx(0.25));
  CHECK(budget({.seconds = 0}).share_spent() == 1);
  CHECK(budget({.seconds = 8, .work = 0}).share_spent() == 1);
}

TEST_CASE("time may have begun before the budget was made") {
  using std::chrono::hours;
  const auto now = Budget::Clock::now();
  CHECK(Budget({.seconds = 60}, {}, now - hours(1)).stopped() ==
        StoppedBy::kTime);
  CHECK(!Budget({.seconds = 7200}, {}, now - hours(1)).stopped());
  CHECK(Budget({.seconds = 60}, {}, now).deadline() ==
        now + std::chrono::seconds(60));
  // Clocks cannot represent this end.
  CHECK(!Budget({.seconds = 1e12}, {}, now).deadline());
  CHECK(!Budget({.seconds = 1e12}, {}, now).stopped());
}

}  // namespace
}  // namespace shardprop
