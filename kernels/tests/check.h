#pragma once

#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <vector>

// A minimal test framework, so that the kernels can be tested with a compiler
// alone. A file defines tests with TEST("what holds") { CHECK(...); }; a main
// calls check::run().
namespace check {

struct Test {
  const char* name;
  void (*body)();
};

inline std::vector<Test>& tests() {
  static std::vector<Test> list;
  return list;
}

inline int& failures() {
  static int count = 0;
  return count;
}

struct Registration {
  Registration(const char* name, void (*body)()) {
    tests().push_back({name, body});
  }
};

inline void fail(const char* file, int line, const std::string& what) {
  if (++failures() <= 20) {
    std::printf("%s:%d: %s\n", file, line, what.c_str());
  }
}

// Runs the tests whose name contains the word, or all tests without a word.
// Returns 0 if none failed.
inline int run(const char* word = "") {
  int ran = 0;
  for (const Test& test : tests()) {
    if (std::string(test.name).find(word) == std::string::npos) continue;
    const int before = failures();
    try {
      test.body();
    } catch (const std::exception& error) {
      fail(test.name, 0, error.what());
    }
    ++ran;
    std::printf("%s %s\n", failures() == before ? "ok    " : "FAILED",
                test.name);
  }
  std::printf("%d tests, %d checks failed\n", ran, failures());
  return failures() == 0 && ran > 0 ? 0 : 1;
}

}  // namespace check

#define CHECK_JOIN_(a, b) a##b
#define CHECK_JOIN(a, b) CHECK_JOIN_(a, b)
#define TEST_(name, id)                                         \
  static void CHECK_JOIN(test_body_, id)();                     \
  static const check::Registration CHECK_JOIN(test_entry_, id){ \
      name, &CHECK_JOIN(test_body_, id)};                       \
  static void CHECK_JOIN(test_body_, id)()
#define TEST(name) TEST_(name, __LINE__)

#define CHECK(condition)                                           \
  do {                                                             \
    if (!(condition)) check::fail(__FILE__, __LINE__, #condition); \
  } while (false)

// Checks with a detail in the message, for checks in loops.
#define CHECK_FOR(condition, detail)                        \
  do {                                                      \
    if (!(condition)) {                                     \
      check::fail(__FILE__, __LINE__,                       \
                  std::string(#condition ": ") + (detail)); \
    }                                                       \
  } while (false)
