#include "cli/interruption.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace shardprop::cli {
namespace {

sem_t signalled;
volatile std::sig_atomic_t last = SIGINT;

extern "C" void on_signal(int signal) {
  const int before = errno;
  last = signal;
  sem_post(&signalled);
  std::signal(signal, SIG_DFL);
  errno = before;
}

extern "C" void announce_and_end(int signal) {
  constexpr char kLine[] = "interrupted: there is no answer yet\n";
  // An error is ignored, since the process ends anyway.
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, kLine, sizeof kLine - 1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// Installs the handler unless the signal is ignored. A shell starts background
// programs with the signal ignored, and expects that to remain so.
void listen(int signal, void (*handler)(int), struct sigaction& before) {
  sigaction(signal, nullptr, &before);
  if (before.sa_handler == SIG_IGN) return;
  struct sigaction action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

}  // namespace

void announce_signals() {
  struct sigaction before = {};
  listen(SIGINT, announce_and_end, before);
  listen(SIGTERM, announce_and_end, before);
}

void end_by_last_signal() {
  std::signal(last, SIG_DFL);
  std::raise(last);
}

Interruption::Interruption() {
  sem_init(&signalled, 0, 0);
  try {
    watcher_ = std::jthread([this](const std::stop_token& ended) {
      while (sem_wait(&signalled) != 0) {
      }
      // The destructor also posts the semaphore.
      if (!ended.stop_requested()) source_.request_stop();
    });
  } catch (const std::system_error&) {
    return;  // without a thread to watch, a signal ends the program
  }
  listen(SIGINT, on_signal, before_interrupt_);
  listen(SIGTERM, on_signal, before_terminate_);
}

Interruption::~Interruption() {
  if (!watcher_.joinable()) return;
  sigaction(SIGINT, &before_interrupt_, nullptr);
  sigaction(SIGTERM, &before_terminate_, nullptr);
  watcher_.request_stop();
  sem_post(&signalled);
  watcher_.join();
  sem_destroy(&signalled);
}

}  // namespace shardprop::cli
