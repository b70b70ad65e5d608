// Functions that write .pt2 archives and gzipped programs.
#pragma once

#include <shardprop/base/result.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop::emit {

// Returns a zip of uncompressed records in one folder, as torch writes it.
// Error: kOutOfMemory.
Result<std::string> zip_archive(
    const std::vector<std::pair<std::string, std::string>>& records,
    std::string_view folder);

std::string gzip(std::string_view data);

}  // namespace shardprop::emit
