#include "ops/definitions/matrices.h"

#include "ops/definitions/dtypes.h"

#include <algorithm>
#include <string>

namespace shardprop::linear_algebra {
namespace {

DType eigenvalue_dtype(DType dtype) {
  return dtype == DType::kF64   ? DType::kC128
         : dtype == DType::kF32 ? DType::kC64
                                : dtype;
}

}  // namespace

Dims column_major(const OpCall& call, const Dims& shape, DType dtype) {
  Dims strides = make_meta(shape, dtype).strides();
  const std::size_t rank = shape.size();
  if (static_cast<int>(rank) != call.first().rank() || rank < 2) return strides;
  strides[rank - 2] = 1;
  strides[rank - 1] = std::max<std::int64_t>(shape[rank - 2], 1);
  return strides;
}

OpDefinition::TypeOf types(std::string_view letters) {
  return
      [letters = std::string(letters)](const OpCall& call, std::size_t result) {
        const DType own = call.first().dtype();
        switch (letters[std::min(result, letters.size() - 1)]) {
          case 'r':
            return real_dtype(own);
          case 'c':
            return eigenvalue_dtype(own);
          case 'i':
            return DType::kI32;
          default:
            return own;
        }
      };
}

std::int64_t from_end(const OpCall& call, int back) {
  const TensorMeta& self = call.first();
  require(self.rank() >= back, "the operand holds no matrices");
  return self.size(self.rank() - back);
}

std::int64_t side(const OpCall& call, char letter) {
  const std::int64_t rows = from_end(call, 2);
  const std::int64_t columns = from_end(call, 1);
  const bool full = call.boolean_or("full_matrices", false) ||
                    (call.has("mode") &&
                     call.op().string_arg("mode").value_or("") == "complete");
  if (letter == 'u') return full ? rows : std::min(rows, columns);
  if (letter == 'v') return full ? columns : std::min(rows, columns);
  return std::min(rows, columns);
}

OpDefinition matrices(std::string_view notation, std::string_view letters) {
  return counted(notation, side).typed(types(letters)).strided(column_major);
}
OpDefinition rows_first(std::string_view notation, std::string_view letters) {
  return counted(notation, side).typed(types(letters));
}

}  // namespace shardprop::linear_algebra
