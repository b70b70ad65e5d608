// `WindowLoads` numbers the loads of overlap windows. A load is the compute and
// the overlappable time of one window in the micro-batches in which they are
// equal.
//
// A step runs each window once in every micro-batch. A gather after an update
// overlaps in the first micro-batch alone, and a gradient that is reduced once a
// step overlaps in the last one alone. So a window of a step of several
// micro-batches has a load for the first one, one for the last one, and one for
// all between. All times are the share of one micro-batch:
//
//   --accumulate 8                  first    between   last
//   1 us in each micro-batch        1/8 us   6/8 us    1/8 us
//   8 us after an update            1 us
//   8 us once a step, a gradient                       1 us
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardprop {

class WindowLoads {
 public:
  static constexpr std::size_t kMostOfWindow = 3;

  // `micro_batches` is the result of divided_micro_batches(): with many
  // micro-batches each window has one load. Precondition: at least 1.
  WindowLoads(std::size_t windows, std::int64_t micro_batches)
      : windows_(windows),
        micro_batches_(micro_batches),
        of_window_(micro_batches < 3 ? static_cast<std::size_t>(micro_batches)
                                     : kMostOfWindow) {}

  std::size_t size() const { return windows_ * of_window_; }
  // Returns the number of loads of one window.
  std::size_t of_window() const { return of_window_; }
  std::size_t window_of(std::size_t load) const { return load / of_window_; }
  // Returns the load of a window in the first and in the last micro-batch.
  std::size_t first(std::size_t window) const { return window * of_window_; }
  std::size_t last(std::size_t window) const {
    return (window + 1) * of_window_ - 1;
  }

  // Divides a time that the window takes in each micro-batch: calls
  // `visit(load, part)` for each load of the window. The parts add up to the
  // time.
  template <class Visit>
  void divide(std::size_t window, std::int64_t nanoseconds,
              const Visit& visit) const {
    if (of_window_ == 1) {
      visit(window, nanoseconds);
      return;
    }
    const std::int64_t one = nanoseconds / micro_batches_;
    visit(first(window), one);
    if (of_window_ == 2) {
      visit(last(window), nanoseconds - one);
      return;
    }
    visit(first(window) + 1, nanoseconds - 2 * one);
    visit(last(window), one);
  }

 private:
  std::size_t windows_;
  std::int64_t micro_batches_;
  std::size_t of_window_;
};

}  // namespace shardprop
