// A list tool compares two golden lists with the library, or writes the second one:
//
//   NAME FIRST SECOND [--write]
#pragma once

#include <string>
#include <vector>

namespace shardprop::testing {

// Returns the lines of a file; none if it cannot be read.
std::vector<std::string> lines_of(const std::string& path);
void write_lines(const std::string& path,
                 const std::vector<std::string>& lines);

// Prints the lines that only one of the lists has, at most 20 of the former and
// 40 in all. Returns their number.
int print_differences(const std::vector<std::string>& before,
                      const std::vector<std::string>& now);

// Parses the arguments and calls run(FIRST, SECOND, whether it writes). Returns
// the exit status: 2 for wrong arguments, 1 for an exception.
int run_list_tool(int argc, char** argv, const char* usage,
                  int (*run)(const std::string&, const std::string&, bool));

}  // namespace shardprop::testing
