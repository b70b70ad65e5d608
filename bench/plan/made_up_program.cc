// Writes a generated program for `shardprop explain`, to measure how planning
// scales:
//
//   made_up_program KIND N > FILE.json
//
// KIND: training (about N operators), fan (a value with N users), views (a
// chain of N), modules (one operator N modules deep).
#include "support/made_up_program.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string_view kind = argv[1];
  const std::int64_t size = std::atoll(argv[2]);
  std::string text;
  if (kind == "training") {
    text = training_program(size);
  } else if (kind == "fan") {
    text = fan_program(size);
  } else if (kind == "views") {
    text = view_chain_program(size);
  } else if (kind == "modules") {
    text = module_path_program(size);
  } else {
    return 2;
  }
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0
                                                                         : 1;
}
