#define DOCTEST_CONFIG_IMPLEMENT
#include "support/fatal_signals.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <system_error>

// Tests name the example graphs relative to the repository. A binary that is
// started elsewhere moves there first.
int main(int argc, char** argv) {
  if (!std::filesystem::exists("examples/graphs")) {
    std::error_code failed;
    std::filesystem::current_path(SHARDPROP_SOURCE_DIR, failed);
  }
  return doctest::Context(argc, argv).run();
}
