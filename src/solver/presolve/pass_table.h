// PassTable adds up the runs of the passes: their time, work and gains.
#pragma once

#include <shardprop/base/procedure.h>
#include <shardprop/solver/pass.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/index.h"
#include "base/saturating.h"

namespace shardprop::solver {

class PassTable {
 public:
  // Runs `work` and adds its time to `pass`.
  template <class Work>
  auto time(Pass pass, Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    struct Booking {
      PassTable& table;
      Pass pass;
      std::chrono::steady_clock::time_point start;
      ~Booking() {
        const std::chrono::duration<double> took =
            std::chrono::steady_clock::now() - start;
        table.add(pass, 1, took.count());
      }
    } const booking{*this, pass, start};
    return work();
  }
  void add(Pass pass, std::uint64_t runs, double seconds) {
    Procedure& of = rows_[index(pass)];
    of.runs += runs;
    of.seconds += seconds;
  }
  void add_work(Pass pass, std::uint64_t work) {
    rows_[index(pass)].work += work;
  }
  // Adds runs that improved the cost or the bound, and closed so much of the
  // gap in units of cost.
  void add_gain(Pass pass, std::uint64_t improvements,
                std::int64_t gap_closed) {
    Procedure& of = rows_[index(pass)];
    of.improvements += improvements;
    of.gap_closed = sat_add(of.gap_closed, gap_closed);
  }

  // Returns the records of all passes, with their names and switches.
  std::vector<Procedure> procedures(const PassSet& switches) const {
    std::vector<Procedure> out(rows_.begin(), rows_.end());
    for (std::size_t p = 0; p < out.size(); ++p) {
      const auto pass = static_cast<Pass>(p);
      out[p].name = pass_name(pass);
      out[p].enabled = switches.enabled(pass);
    }
    return out;
  }

 private:
  std::array<Procedure, kNumPasses> rows_{};
};

}  // namespace shardprop::solver
