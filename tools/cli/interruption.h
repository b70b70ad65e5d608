// Interruption changes SIGINT and SIGTERM during its lifetime: the first signal
// asks for the best answer so far, and the second ends the program. A signal
// that was ignored before remains ignored.
//
//   Interruption interruption;
//   options.stop = interruption.token();
//   const Solution solution = solve(problem, options);
//   if (interruption.came()) ...   // say that it is not the end of the search
#pragma once

#include <semaphore.h>

#include <csignal>
#include <stop_token>
#include <thread>

namespace shardprop::cli {

// Makes SIGINT and SIGTERM print one line before they end the program, while no
// Interruption exists. A signal that was ignored before remains ignored.
void announce_signals();

// Ends the program by the last signal that came, and prints nothing.
void end_by_last_signal();

// At most one object may exist at a time.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  bool came() const { return source_.stop_requested(); }

 private:
  std::stop_source source_;
  struct sigaction before_interrupt_ = {};
  struct sigaction before_terminate_ = {};
  // The watcher requests the stop, since a signal handler may only post a
  // semaphore.
  std::jthread watcher_;
};

}  // namespace shardprop::cli
