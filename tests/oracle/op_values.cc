// Evaluates operator calls by the reference, so that tests in Python can
// compare the values with PyTorch's:
//
//   op_values CALLS.jsonl
//
// Each line is {"call": …, "inputs": ["hex", …]}: the call as
// `shardprop propagate` reads it, and the bytes of every operand, row-major.
// Answers are {"outputs": ["hex", …]}, row-major too, or {"error": …} with the
// code and whether the reference has the operator.

#include "cli/op_line.h"
#include "reference/elements.h"

#include <shardprop/ops/op_library.h>
#include <shardprop/reference/evaluate.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace {

using nlohmann::ordered_json;
using shardprop::reference::Tensor;

int digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

// Laid out as the meta says.
Tensor tensor_of(const shardprop::TensorMeta& meta, const std::string& hex) {
  std::int64_t extent = 1;
  for (int d = 0; d < meta.rank(); ++d) {
    extent += std::max<std::int64_t>(meta.size(d) - 1, 0) *
              meta.strides()[static_cast<std::size_t>(d)];
  }
  const Tensor out = Tensor::zeros({extent}, meta.dtype())
                         .seen_as(meta.shape(), meta.strides());
  const std::int64_t width = item_size(meta.dtype());
  std::size_t next = 0;
  shardprop::reference::for_each_offset(
      out.shape(), out.strides(), [&](std::int64_t offset) {
        for (std::int64_t i = 0; i < width; ++i, next += 2) {
          out.data()[offset * width + i] = static_cast<std::byte>(
              digit(hex.at(next)) * 16 + digit(hex.at(next + 1)));
        }
      });
  return out;
}

std::string hex_of(const Tensor& given) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const Tensor tensor = shardprop::reference::contiguous(given);
  const std::int64_t bytes = tensor.numel() * item_size(tensor.dtype());
  std::string out;
  for (std::int64_t i = 0; i < bytes; ++i) {
    const auto byte = static_cast<unsigned>(tensor.data()[i]);
    out += kDigits[byte / 16];
    out += kDigits[byte % 16];
  }
  return out;
}

ordered_json failed(const shardprop::Error& error) {
  return {{"error",
           {{"code", code_string(error.code)}, {"message", error.message}}}};
}

ordered_json answer(const std::string& line,
                    const shardprop::OpLibrary& library) {
  const ordered_json asked = ordered_json::parse(line);
  std::optional<std::string> name;
  const auto parsed =
      shardprop::cli::parse_op_line(asked["call"].dump(), library, name);
  if (!parsed) return failed(parsed.error());
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < parsed->op->inputs.size(); ++i) {
    inputs.push_back(tensor_of(parsed->op->inputs[i],
                               asked["inputs"][i].get<std::string>()));
  }
  const auto made =
      shardprop::reference::evaluate(library, *parsed->op, inputs);
  if (!made) return failed(made.error());
  ordered_json outputs = ordered_json::array();
  for (const Tensor& tensor : *made) outputs.push_back(hex_of(tensor));
  return {{"outputs", std::move(outputs)}};
}

// The operators that the reference has, a line each.
void list(const shardprop::OpLibrary& library) {
  for (const std::string& name : library.names()) {
    const auto function = library.find(name);
    if (function != nullptr &&
        shardprop::reference::evaluates(library, *function)) {
      std::cout << name << '\n';
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto library = shardprop::OpLibrary::standard();
  if (argc == 2 && std::string(argv[1]) == "--list") {
    list(*library);
    return 0;
  }
  std::ifstream file(argc == 2 ? argv[1] : "");
  if (!file) {
    std::cerr << "usage: op_values CALLS.jsonl | --list\n";
    return 2;
  }
  try {
    for (std::string line; std::getline(file, line);) {
      std::cout << answer(line, *library).dump() << '\n';
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
