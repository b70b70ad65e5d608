// `RankScalar` is a scalar argument whose value differs between ranks. It is a
// formula of the rank's coordinate: linear in a local size, an offset, or the
// local size of a factor, which may be divided first.
//
//   view f32[4,6,8] -> f32[24,8], both S(0) over 2 ranks:
//     size = [local_size(output 0, dim 0), 8]      // [12, 8]
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardprop {

// The value is constant + scale * (x / divisor). The quotient is rounded down,
// or up.
struct RankFormula {
  std::int64_t scale = 1;
  std::int64_t constant = 0;
  std::int64_t divisor = 1;  // at least 1
  bool rounds_up = false;

  // Returns the value for x, which is at least 0.
  std::int64_t of(std::int64_t x) const {
    const bool has_rest = rounds_up && x % divisor != 0;
    return constant + scale * (x / divisor + (has_rest ? 1 : 0));
  }
  friend bool operator==(const RankFormula&, const RankFormula&) = default;
};

// x is the size of a dim of the local operand, the offset of the local operand
// in that dim, or the local size of a factor.
struct RankScalar : RankFormula {
  enum class Kind : std::uint8_t {
    kConstant,
    kLocalSize,
    kOffset,
    kFactorSize,
  };
  Kind kind = Kind::kConstant;
  bool of_output = false;    // `operand` counts outputs instead of inputs
  std::int16_t operand = 0;  // or the factor, for kFactorSize
  std::int16_t dim = 0;

  static RankScalar value(std::int64_t constant) {
    return {{0, constant}, Kind::kConstant};
  }
  static RankScalar input_size(int input, int dim) {
    return {{},
            Kind::kLocalSize,
            false,
            static_cast<std::int16_t>(input),
            static_cast<std::int16_t>(dim)};
  }
  static RankScalar output_size(int output, int dim) {
    return {{},
            Kind::kLocalSize,
            true,
            static_cast<std::int16_t>(output),
            static_cast<std::int16_t>(dim)};
  }
  static RankScalar input_offset(int input, int dim) {
    return {{},
            Kind::kOffset,
            false,
            static_cast<std::int16_t>(input),
            static_cast<std::int16_t>(dim)};
  }
  static RankScalar output_offset(int output, int dim) {
    return {{},
            Kind::kOffset,
            true,
            static_cast<std::int16_t>(output),
            static_cast<std::int16_t>(dim)};
  }
  static RankScalar factor_size(int factor) {
    return {{}, Kind::kFactorSize, false, static_cast<std::int16_t>(factor), 0};
  }
  friend bool operator==(const RankScalar&, const RankScalar&) = default;
};

// `LocalArgument` is an argument of the operator whose value is replaced on
// each rank.
struct LocalArgument {
  std::string name;
  bool is_list = false;
  std::vector<RankScalar> values;  // one value unless is_list
  friend bool operator==(const LocalArgument&, const LocalArgument&) = default;
};

}  // namespace shardprop
