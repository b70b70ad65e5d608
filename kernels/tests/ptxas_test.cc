// Reads the compiler's reports on the CUDA kernels: no kernel may spill or use
// local memory, on any target.
//
//   ptxas_test DIRECTORY

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace {

constexpr const char* kClean =
    "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads";

// Returns the text between the first two quotes from `from` on.
std::string quoted(const std::string& line, std::size_t from) {
  const std::size_t begin = line.find('\'', from);
  if (begin == std::string::npos) return "";
  return line.substr(begin + 1, line.find('\'', begin + 1) - begin - 1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::map<std::string, int> kernels;  // by target
  int reports = 0;
  int faults = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    if (entry.path().extension() != ".ptxas") continue;
    ++reports;
    std::ifstream file(entry.path());
    std::string kernel;
    std::string target;
    bool judged = true;
    for (std::string line; std::getline(file, line);) {
      const std::size_t entry_at = line.find("Compiling entry function");
      if (entry_at != std::string::npos) {
        kernel = quoted(line, entry_at);
        target = quoted(line, line.find(" for "));
        ++kernels[target];
        if (!judged) ++faults;  // the one before was never accounted for
        judged = false;
      } else if (line.find("bytes stack frame") != std::string::npos &&
                 !judged) {
        judged = true;
        if (line.find(kClean) == std::string::npos) {
          ++faults;
          std::printf("%s %s:%s\n", target.c_str(), kernel.c_str(),
                      line.c_str());
        }
      }
    }
    if (!judged) ++faults;
  }
  // All targets hold the same kernels.
  for (const auto& [target, count] : kernels) {
    std::printf("%s: %d kernels\n", target.c_str(), count);
    if (count != kernels.begin()->second) ++faults;
  }
  std::printf("%d reports, %d faults\n", reports, faults);
  return reports > 0 && kernels.size() >= 2 && faults == 0 ? 0 : 1;
}
