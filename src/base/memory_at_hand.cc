#include "base/memory_at_hand.h"

#include "base/quantities.h"
#include "base/saturating.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string_view>

namespace shardprop {
namespace {

constexpr std::int64_t kUnknown = kMostInt;

// Returns the number at the start of a file. Returns nullopt if the file has no
// number ("max") or does not exist.
std::optional<std::int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// Returns the number after `key` in a file of lines "key number ...".
std::optional<std::int64_t> number_of(const std::string& path,
                                      std::string_view key) {
  std::ifstream file(path);
  std::string found;
  std::int64_t number = 0;
  std::string rest;
  while (file >> found >> number && std::getline(file, rest)) {
    if (found == key) return number;
  }
  return std::nullopt;
}

// Returns the bytes of free memory and swap that Linux reports.
std::int64_t free_memory() {
  const auto available = number_of("/proc/meminfo", "MemAvailable:");
  if (!available) return kUnknown;
  const std::int64_t swap = number_of("/proc/meminfo", "SwapFree:").value_or(0);
  return sat_mul(*available + swap, 1024);
}

// Returns the control group (version 2) of this process; empty if it has none.
std::string own_group() {
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  std::string path;
  while (std::getline(groups, line)) {
    if (line.starts_with("0::/")) path = line.substr(3);
  }
  return path;
}

// Returns the bytes of cached files, which the kernel frees when memory is
// short. Its figure "file" also has tmpfs and shared memory, which it only
// swaps.
std::int64_t cached_files(const std::string& folder) {
  const std::string path = folder + "/memory.stat";
  return sat_add(number_of(path, "inactive_file").value_or(0),
                 number_of(path, "active_file").value_or(0));
}

// Returns the bytes left under the limit on addresses (ulimit -v).
std::int64_t left_of_addresses() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return kUnknown;
  }
  const std::int64_t pages = number_in("/proc/self/statm").value_or(0);
  const auto most =
      static_cast<std::int64_t>(std::min<rlim_t>(limit.rlim_cur, kUnknown));
  return std::max<std::int64_t>(most - pages * ::sysconf(_SC_PAGESIZE), 0);
}

}  // namespace

std::int64_t left_in_group(const std::string& root, std::string path) {
  std::int64_t left = kUnknown;
  while (!path.empty()) {
    const std::string folder = root + (path == "/" ? std::string() : path);
    const auto most = number_in(folder + "/memory.max");
    const auto now = number_in(folder + "/memory.current");
    if (most && now) {
      const std::int64_t held =
          std::max<std::int64_t>(*now - cached_files(folder), 0);
      left = std::min(left, std::max<std::int64_t>(*most - held, 0));
    }
    if (path == "/") break;
    path.resize(std::max<std::size_t>(path.rfind('/'), 1));
  }
  return left;
}

std::int64_t memory_at_hand() {
  return std::min({free_memory(), left_in_group("/sys/fs/cgroup", own_group()),
                   left_of_addresses()});
}

Result<void> check_fits(std::int64_t bytes, const std::string& what) {
  const std::int64_t had = memory_at_hand();
  if (bytes <= had) return {};
  return fail(ErrorCode::kOutOfMemory,
              what + " take at least " + bytes_text(bytes) + " of memory, " +
                  bytes_text(had) + " are to be had",
              "free memory, raise its limit, or ask for less");
}

}  // namespace shardprop
