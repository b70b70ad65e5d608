// PassClock adds up the time of the passes.
#pragma once

#include <shardprop/solver/pass.h>

#include <array>
#include <chrono>
#include <vector>

#include "base/index.h"

namespace shardprop::solver {

class PassClock {
 public:
  // Runs `work` and adds its time to `pass`.
  template <class Work>
  auto time(Pass pass, Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    struct Booking {
      PassClock& clock;
      Pass pass;
      std::chrono::steady_clock::time_point start;
      ~Booking() {
        const std::chrono::duration<double> took =
            std::chrono::steady_clock::now() - start;
        clock.add(pass, 1, took.count());
      }
    } const booking{*this, pass, start};
    return work();
  }
  void add(Pass pass, std::uint64_t runs, double seconds) {
    PassStats& stats = stats_[index(pass)];
    stats.pass = pass;
    stats.runs += runs;
    stats.seconds += seconds;
  }
  void add(const PassClock& other) {
    for (const PassStats& s : other.stats_) add(s.pass, s.runs, s.seconds);
  }
  std::vector<PassStats> stats() const {
    std::vector<PassStats> out;
    for (const PassStats& s : stats_) {
      if (s.runs > 0) out.push_back(s);
    }
    return out;
  }

 private:
  std::array<PassStats, kNumPasses> stats_{};
};

}  // namespace shardprop::solver
