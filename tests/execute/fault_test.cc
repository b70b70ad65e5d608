// Faults at every step of a redistribution: a rank throws, leaves, or never
// comes. All others report it in time, and nothing hangs.
#include "support/property.h"
#include "support/result_checks.h"

#include <shardprop/collective/thread_world.h>
#include <shardprop/execute/executor.h>
#include <shardprop/redistribute/planner.h>

#include <atomic>
#include <cctype>
#include <chrono>
#include <future>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

// Whether it says "rank 3" or "ranks 1, 3".
bool names_rank(const std::string& text, std::int64_t rank) {
  std::istringstream words(text);
  bool listing = false;
  for (std::string word; words >> word;) {
    const bool number = std::isdigit(static_cast<unsigned char>(word[0])) != 0;
    if (listing && number && std::stoll(word) == rank) return true;
    listing = number ? listing && word.back() == ',' : word.starts_with("rank");
  }
  return false;
}

using Clock = std::chrono::steady_clock;

enum class Fault : std::uint8_t { kThrows, kLeaves, kNeverComes };

constexpr std::chrono::milliseconds kTimeout{200};

// `Gone` is the exception by which a run ends in the middle without a message.
struct Gone {};

struct Ending {
  Result<void> result;
  std::chrono::milliseconds after{};
};

// Every rank runs the program; `faulty` fails before step `at`. A rank that
// never comes is released when all others have reported.
std::vector<Ending> run_with_fault(const RedistributePlan& plan,
                                   const TensorSpec& src, const TensorSpec& dst,
                                   std::int64_t faulty, std::size_t at,
                                   Fault fault) {
  const std::int64_t ranks = src.mesh().size();
  std::promise<void> reported;
  std::shared_future<void> all_reported = reported.get_future().share();
  std::atomic<std::int64_t> left{ranks - 1};
  std::vector<std::chrono::milliseconds> after(static_cast<std::size_t>(ranks));
  const auto begin = Clock::now();
  auto results =
      run_ranks(ranks, {.timeout = kTimeout}, [&](Communicator& communicator) {
        const std::int64_t rank = communicator.rank();
        const auto program =
            RedistributeProgram::create(plan, src, dst, rank).value();
        const auto source =
            LocalTensor::zeros(program.source_shape(), src.meta().dtype())
                .value();
        RunOptions options;
        if (rank == faulty) {
          options.before_step = [&](std::size_t step) {
            if (step != at) return;
            if (fault == Fault::kThrows) throw std::runtime_error("a fault");
            if (fault == Fault::kNeverComes) all_reported.wait();
            throw Gone();
          };
        }
        Result<void> end;
        try {
          auto out = run(program, communicator, source, options);
          if (!out) end = fail(out.error());
        } catch (const Gone&) {
          return Result<void>();
        }
        after[static_cast<std::size_t>(rank)] =
            std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() -
                                                                  begin);
        // Ranks whose groups lack the faulty one find out at their next call.
        if (end) end = communicator.barrier(value_of(Group::world(ranks)));
        if (rank != faulty && --left == 0) reported.set_value();
        return end;
      });
  std::vector<Ending> out;
  for (std::size_t r = 0; r < results.size(); ++r) {
    out.push_back({std::move(results[r]), after[r]});
  }
  return out;
}

TEST_CASE("a fault at any step is reported by all others within the timeout") {
  struct Example {
    const char* mesh;
    const char* src;
    const char* dst;
  };
  // Each example needs three collectives or more; together they have every
  // kind.
  const Example examples[] = {
      {"2,2", "f32[6,5] S(0),P(sum)", "f32[6,5] R,S(1)"},
      {"2,3", "i32[7,4] S(1),S(0)", "i32[7,4] S(0),S(1)"},
      {"2,2", "bf16[8,8] P(sum,f32),P(sum,f32)", "bf16[8,8] S(1),S(0)"},
      {"3,2", "f32[9] SS(0,2),R", "f32[9] R,S(0)"},
      {"4", "i64[4,4] P(bxor)", "i64[4,4] R"},
  };
  std::mt19937 random(31);
  const int faults = testing::full_counts() ? 500 : 25;
  int injected = 0;
  while (injected < faults) {
    const Example& example = examples[random() % std::size(examples)];
    const auto mesh = value_of(DeviceMesh::parse(example.mesh));
    const auto src = value_of(TensorSpec::parse(example.src, mesh));
    const auto dst = value_of(TensorSpec::parse(example.dst, mesh));
    const auto plan =
        value_of(plan_redistribution(src, dst, default_topology()));
    const auto at = random() % plan.steps.size();
    const auto faulty = static_cast<std::int64_t>(
        random() % static_cast<std::uint64_t>(mesh.size()));
    const auto fault = static_cast<Fault>(random() % 3);
    INFO(to_string(src) << " -> " << to_string(dst) << ", rank " << faulty
                        << ", step " << at << ", fault "
                        << static_cast<int>(fault));
    const auto endings = run_with_fault(plan, src, dst, faulty, at, fault);
    for (std::size_t r = 0; r < endings.size(); ++r) {
      if (static_cast<std::int64_t>(r) == faulty) continue;
      CAPTURE(r);
      REQUIRE_FALSE(endings[r].result.has_value());
      const Error& error = endings[r].result.error();
      CHECK((error.code == ErrorCode::kRankFailed ||
             error.code == ErrorCode::kTimeout));
      // It says who, be it that another rank waits for it.
      CHECK_MESSAGE(names_rank(to_string(error), faulty), to_string(error));
      // The limit is the timeout plus a margin for a busy machine.
      CHECK(endings[r].after < kTimeout + std::chrono::seconds(2));
    }
    ++injected;
  }
}

}  // namespace
}  // namespace shardprop
