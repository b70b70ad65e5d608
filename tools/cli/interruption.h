// Interruption: while it lives, SIGINT and SIGTERM ask for the best answer so
// far instead of ending the program; a second signal ends it. A signal that was
// ignored before stays ignored.
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

// At most one at a time.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  bool came() const { return source_.stop_requested(); }
  // Which one the last to come was, for who wants to end by it after all.
  static int last_signal();

 private:
  std::stop_source source_;
  struct sigaction before_interrupt_ = {};
  struct sigaction before_terminate_ = {};
  // Asks for the stop: a signal handler may only post a semaphore.
  std::jthread watcher_;
};

}  // namespace shardprop::cli
