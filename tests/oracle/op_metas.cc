// Prints the outputs, with strides, that the library infers for operator calls.
// Tests in Python compare them with PyTorch's:
//
//   op_metas BATCH.jsonl    lines as `shardprop propagate` reads them
//   {"outputs": [{"shape": [2, 3], "dtype": "f32", "strides": [3, 1]}]}
//   {"error": {"message": "…"}}

#include "cli/op_line.h"

#include <shardprop/ops/op_library.h>

#include <exception>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace {

using nlohmann::ordered_json;

ordered_json numbers(const auto& list) {
  ordered_json out = ordered_json::array();
  for (const std::int64_t number : list) out.push_back(number);
  return out;
}

ordered_json answer(const std::string& line,
                    const shardprop::OpLibrary& library) {
  std::optional<std::string> name;
  const auto parsed = shardprop::cli::parse_op_line(line, library, name);
  if (!parsed) return {{"error", {{"message", parsed.error().message}}}};
  ordered_json outputs = ordered_json::array();
  for (const shardprop::TensorMeta& meta : parsed->op->outputs) {
    outputs.push_back({{"shape", numbers(meta.shape())},
                       {"dtype", to_string(meta.dtype())},
                       {"strides", numbers(meta.strides())}});
  }
  return {{"outputs", std::move(outputs)}};
}

}  // namespace

int main(int argc, char** argv) {
  std::ifstream file(argc == 2 ? argv[1] : "");
  if (!file) {
    std::cerr << "usage: op_metas BATCH.jsonl\n";
    return 2;
  }
  try {
    const auto library = shardprop::OpLibrary::standard();
    for (std::string line; std::getline(file, line);) {
      std::cout << answer(line, *library).dump() << '\n';
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
