#include "ops/list_tool.h"

#include <exception>
#include <fstream>
#include <iostream>
#include <set>
#include <string_view>

namespace shardprop::testing {

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

void write_lines(const std::string& path,
                 const std::vector<std::string>& lines) {
  std::ofstream out(path);
  for (const std::string& line : lines) out << line << '\n';
}

int print_differences(const std::vector<std::string>& before,
                      const std::vector<std::string>& now) {
  constexpr int kMostShown = 20;
  // A line that occurs twice differs from a line that occurs once.
  std::multiset<std::string> missing(before.begin(), before.end());
  int shown = 0;
  for (const std::string& line : now) {
    if (const auto found = missing.find(line); found != missing.end()) {
      missing.erase(found);
    } else if (++shown <= kMostShown) {
      std::cout << "+ " << line << '\n';
    }
  }
  for (const std::string& line : missing) {
    if (++shown <= kMostShown * 2) std::cout << "- " << line << '\n';
  }
  if (shown > 0 || before == now) return shown;
  std::cout << "the order of the lines differs\n";
  return 1;
}

int run_list_tool(int argc, char** argv, const char* usage,
                  int (*run)(const std::string&, const std::string&, bool)) {
  const bool writes = argc == 4 && std::string_view(argv[3]) == "--write";
  if (argc != 3 && !writes) {
    std::cerr << "usage: " << usage << " [--write]\n";
    return 2;
  }
  try {
    return run(argv[1], argv[2], writes);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}

}  // namespace shardprop::testing
