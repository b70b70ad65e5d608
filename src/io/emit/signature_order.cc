#include "io/emit/signature_order.h"

#include <algorithm>
#include <numeric>

namespace shardprop::emit {
namespace {

int place_of(const SpmdProgram& program, const ProgramOutput& output) {
  switch (output.kind) {
    case OutputKind::kUpdate: {
      const InputPlace written =
          emit::place_of(program.inputs[*output.target].kind);
      return written == InputPlace::kBuffer      ? 0
             : written == InputPlace::kParameter ? 1
                                                 : 2;
    }
    case OutputKind::kUser:
    case OutputKind::kLoss:
      return 3;
    case OutputKind::kGradient:
      return 4;
  }
  return 4;
}

template <class Place>
std::vector<std::size_t> ordered(std::size_t count, const Place& place) {
  std::vector<std::size_t> out(count);
  std::iota(out.begin(), out.end(), std::size_t{0});
  std::stable_sort(out.begin(), out.end(), [&](std::size_t a, std::size_t b) {
    return place(a) < place(b);
  });
  return out;
}

}  // namespace

InputPlace place_of(InputKind kind) {
  switch (kind) {
    case InputKind::kParameter:
      return InputPlace::kParameter;
    case InputKind::kBuffer:
    case InputKind::kOptimizerState:
      return InputPlace::kBuffer;
    case InputKind::kConstant:
      return InputPlace::kConstant;
    default:
      return InputPlace::kUser;
  }
}

std::vector<std::size_t> input_order(const SpmdProgram& program) {
  return ordered(program.inputs.size(), [&](std::size_t i) {
    return place_of(program.inputs[i].kind);
  });
}

std::vector<std::size_t> output_order(const SpmdProgram& program) {
  return ordered(program.outputs.size(), [&](std::size_t o) {
    return place_of(program, program.outputs[o]);
  });
}

}  // namespace shardprop::emit
