// The implementation of doctest for the one source of a test binary that
// includes this file. A crash ends the binary at once and names the test case.
//
// The handler of doctest allocates memory. After a crash inside of malloc,
// which then holds its lock, that handler would wait for ever.
#pragma once

#define DOCTEST_CONFIG_NO_POSIX_SIGNALS
#include <doctest/doctest.h>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>

namespace shardprop::testing {

inline std::atomic<const char*> running_test_case = nullptr;

inline void say_at_once(const char* text) {
  // An error could not be reported either.
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

inline const char* name_of_signal(int signal) {
  switch (signal) {
    case SIGABRT:
      return "SIGABRT";
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGFPE:
      return "SIGFPE";
    default:
      return "SIGILL";
  }
}

extern "C" inline void end_at_once(int signal) {
  const char* const name = running_test_case;
  say_at_once("\ncrash: ");
  say_at_once(name_of_signal(signal));
  say_at_once(" in test case \"");
  say_at_once(name == nullptr ? "none" : name);
  say_at_once("\"\n");
  // SA_RESETHAND has restored the default action, which ends the process.
  static_cast<void>(raise(signal));
}

// Learns from doctest which test case runs.
class FatalSignals final : public doctest::IReporter {
 public:
  explicit FatalSignals(const doctest::ContextOptions& /*options*/) {}

  void test_run_start() override {
    // A handler also runs where the main thread has used up its stack.
    static char memory[1 << 16];
    stack_t stack{};
    stack.ss_sp = memory;
    stack.ss_size = sizeof(memory);
    sigaltstack(&stack, nullptr);
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
      struct sigaction action{};
      // Sanitizers report some of these signals themselves.
      sigaction(signal, nullptr, &action);
      if (action.sa_handler != SIG_DFL) continue;
      action.sa_handler = end_at_once;
      action.sa_flags =
          static_cast<int>(SA_RESETHAND | SA_NODEFER | SA_ONSTACK);
      sigaction(signal, &action, nullptr);
    }
  }
  void test_case_start(const doctest::TestCaseData& started) override {
    running_test_case = started.m_name;
  }
  void test_case_end(const doctest::CurrentTestCaseStats&) override {
    running_test_case = nullptr;
  }

  void report_query(const doctest::QueryData&) override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};

REGISTER_LISTENER("fatal_signals", 1, FatalSignals);

}  // namespace shardprop::testing
#endif
