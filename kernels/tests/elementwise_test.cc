// strided_copy, fill and reduce_into.

#include "case.h"

namespace shardprop::kernels::testing {
namespace {

using Sizes = std::vector<std::int64_t>;

Sizes any_sizes(Case& test) {
  Sizes sizes;
  for (std::int64_t d = test.pick(0, 5); d > 0; --d) {
    sizes.push_back(test.pick_of<std::int64_t>({1, 2, 3, 5, 9, 20}));
  }
  return sizes;
}

DType any_castable(Case& test) {
  return static_cast<DType>(test.pick(0, kCastableCount - 1));
}

void expect_copy(Case& test, const Tensor& in, const Tensor& out, double scale,
                 const std::string& what) {
  for (Engine* engine : engines()) {
    test.expect(
        *engine, {out},
        [&](std::byte* base) {
          return engine->strided_copy(
              {.in = in.in(base), .out = out.out(base), .scale = scale});
        },
        [&](Arena& arena) { strided_copy(arena, in, out, scale); }, what);
  }
}

TEST("strided_copy equals the reference on random cases") {
  for (unsigned seed = 0; seed < 400; ++seed) {
    Case test(seed);
    const bool casts = test.pick(0, 1) == 0;
    const DType any =
        static_cast<DType>(test.pick(0, static_cast<int>(DType::kComplex64)));
    const DType from = casts ? any_castable(test) : any;
    const DType to = casts ? any_castable(test) : any;
    const Sizes sizes = any_sizes(test);
    const bool misaligned = test.pick(0, 3) == 0;
    Tensor in = test.input(from, sizes, test.any_layout(), misaligned);
    if (!sizes.empty() && test.pick(0, 5) == 0) {
      in.strides[static_cast<std::size_t>(
          test.pick(0, static_cast<std::int64_t>(sizes.size()) - 1))] = 0;
    }
    const Tensor out = test.place(to, sizes, test.any_layout(), misaligned);
    expect_copy(test, in, out, casts ? test.pick_of({1.0, 0.3}) : 1.0,
                "seed " + std::to_string(seed));
  }
}

TEST("strided_copy reads backwards") {
  Case test(1);
  Tensor in = test.input(DType::kFloat32, {4, 50});
  const Tensor out = test.place(DType::kFloat16, {4, 50});
  in.offset = in.at(in.count() - 1);
  for (std::int64_t& stride : in.strides) stride = -stride;
  expect_copy(test, in, out, 1.0, "both dims reversed");
}

TEST("strided_copy transposes squares of every size of element") {
  for (const DType dtype :
       {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64}) {
    Case test(1);
    const Tensor in = test.input(dtype, {3, 301, 203}, Case::Layout::kColumn);
    const Tensor out = test.place(dtype, {3, 301, 203});
    expect_copy(test, in, out, 1.0, std::string(to_string(dtype)));
  }
}

TEST("strided_copy carries 16-byte elements") {
  for (Engine* engine : engines()) {
    Case test(1);
    const Tensor in = test.input(DType::kInt64, {6, 5, 2});
    const Tensor out = test.place(DType::kInt64, {5, 6, 2});
    Tensor wide_in = {DType::kComplex128, {5, 6}, {1, 5}, in.offset};
    Tensor wide_out = {DType::kComplex128, {5, 6}, {6, 1}, out.offset};
    const Tensor in_turned = {DType::kInt64, {5, 6, 2}, {2, 10, 1}, in.offset};
    test.expect(
        *engine, {out},
        [&](std::byte* base) {
          return engine->strided_copy(
              {.in = wide_in.in(base), .out = wide_out.out(base)});
        },
        [&](Arena& arena) { strided_copy(arena, in_turned, out, 1.0); },
        "c128");
  }
}

TEST("strided_copy refuses shapes that differ and memory that overlaps") {
  for (Engine* engine : engines()) {
    Case test(2);
    const Tensor in = test.input(DType::kFloat32, {2, 3});
    const Tensor out = test.place(DType::kFloat32, {3, 2});
    const Tensor square = test.input(DType::kFloat32, {4, 4});
    // The odd and even columns interleave without a common element.
    const Tensor even = {DType::kFloat32, {4, 2}, {4, 2}, square.offset};
    const Tensor odd = {DType::kFloat32, {4, 2}, {4, 2}, square.offset + 4};
    const Tensor upper = {DType::kFloat32, {2, 4}, {4, 1}, square.offset};
    const Tensor middle = {DType::kFloat32, {2, 4}, {4, 1}, square.offset + 16};
    const auto copy = [&](const Tensor& from, const Tensor& to) {
      return [&, engine](std::byte* base) {
        return engine->strided_copy({.in = from.in(base), .out = to.out(base)});
      };
    };
    test.refuse(*engine, StatusCode::kInvalidArgument,
                "strided_copy: in has sizes [2,3], out has [3,2]",
                copy(in, out));
    test.refuse(*engine, StatusCode::kOverlap, "strided_copy: out overlaps in",
                copy(upper, middle));
    test.expect(
        *engine, {odd}, copy(even, odd),
        [&](Arena& arena) { strided_copy(arena, even, odd, 1.0); },
        "interleaved");
  }
}

TEST("fill writes every element and nothing else") {
  for (unsigned seed = 0; seed < 100; ++seed) {
    Case test(seed);
    const auto dtype =
        static_cast<DType>(test.pick(0, static_cast<int>(DType::kComplex64)));
    const Tensor out = test.place(dtype, any_sizes(test), test.any_layout(),
                                  test.pick(0, 3) == 0);
    const std::uint64_t value = 0x1122334455667788ULL;
    for (Engine* engine : engines()) {
      test.expect(
          *engine, {out},
          [&](std::byte* base) {
            return engine->fill({.out = out.out(base), .value = &value});
          },
          [&](Arena& arena) {
            for (std::int64_t i = 0; i < out.count(); ++i) {
              write(arena, out, i, value);
            }
          },
          "seed " + std::to_string(seed));
    }
  }
}

TEST("fill refuses a missing value and an output that overlaps itself") {
  for (Engine* engine : engines()) {
    Case test(4);
    const Tensor out = test.place(DType::kFloat32, {3, 3});
    const Tensor folded = {DType::kFloat32, {3, 3}, {1, 1}, out.offset};
    const float value = 1.0F;
    test.refuse(*engine, StatusCode::kInvalidArgument, "fill: value is null",
                [&](std::byte* base) {
                  return engine->fill({.out = out.out(base), .value = nullptr});
                });
    test.refuse(
        *engine, StatusCode::kOverlap, "fill: out overlaps itself",
        [&](std::byte* base) {
          return engine->fill({.out = folded.out(base), .value = &value});
        });
  }
}

TEST("reduce_into equals the reference on random cases") {
  for (unsigned seed = 0; seed < 500; ++seed) {
    Case test(seed);
    const bool casts = test.pick(0, 1) == 0;
    const DType whole = static_cast<DType>(test.pick(
        static_cast<int>(DType::kFloat64), static_cast<int>(DType::kBool)));
    const DType from = casts ? any_castable(test) : whole;
    const DType to = casts ? any_castable(test) : whole;
    const bool floating = casts || whole == DType::kFloat64;
    const auto op = static_cast<ReduceOp>(test.pick(0, floating ? 3 : 6));
    const double scale = floating ? test.pick_of({1.0, 0.25, 1.0 / 3}) : 1.0;
    const bool dense = test.pick(0, 1) == 0;
    const bool misaligned = !dense && test.pick(0, 3) == 0;
    Sizes sizes = any_sizes(test);
    if (dense) sizes = {test.pick(1, 3000)};
    std::vector<Tensor> inputs;
    for (std::int64_t i = test.pick(1, 6); i > 0; --i) {
      inputs.push_back(test.input(
          from, sizes, dense ? Case::Layout::kRow : test.any_layout(),
          misaligned));
    }
    const bool in_place = from == to && test.pick(0, 3) == 0;
    const Tensor out =
        in_place ? inputs.back()
                 : test.place(to, sizes,
                              dense ? Case::Layout::kRow : test.any_layout(),
                              misaligned);
    for (Engine* engine : engines()) {
      test.expect(
          *engine, {out},
          [&](std::byte* base) {
            return engine->reduce_into({.op = op,
                                        .inputs = inputs_of(inputs, base),
                                        .out = out.out(base),
                                        .scale = scale});
          },
          [&](Arena& arena) { reduce_into(arena, op, inputs, out, scale); },
          "seed " + std::to_string(seed));
    }
  }
}

// 2048 + 1 is 2048 in f16; only a wider sum keeps the ones.
TEST("reduce_into accumulates f16 in f32 and rounds once") {
  for (Engine* engine : engines()) {
    Case test(1);
    std::vector<Tensor> inputs;
    for (const float value : {2048.0F, 1.0F, 1.0F}) {
      inputs.push_back(test.place(DType::kFloat16, {9}));
      for (std::int64_t i = 0; i < 9; ++i) {
        write(test.arena, inputs.back(), i, nearest(value, DType::kFloat16));
      }
    }
    const Tensor out = test.place(DType::kFloat16, {9});
    test.expect(
        *engine, {out},
        [&](std::byte* base) {
          return engine->reduce_into({.op = ReduceOp::kSum,
                                      .inputs = inputs_of(inputs, base),
                                      .out = out.out(base)});
        },
        [&](Arena& arena) {
          for (std::int64_t i = 0; i < 9; ++i) {
            write(arena, out, i, nearest(2050.0F, DType::kFloat16));
          }
        },
        "2050");
  }
}

TEST("reduce_into refuses what is wrong and writes nothing") {
  for (Engine* engine : engines()) {
    Case test(7);
    const Tensor a = test.input(DType::kFloat32, {2, 3});
    const Tensor b = test.input(DType::kFloat32, {3, 2});
    const Tensor half = test.input(DType::kFloat16, {2, 3});
    const Tensor complex = test.input(DType::kComplex64, {2, 3});
    const Tensor complex_out = test.place(DType::kComplex64, {2, 3});
    const Tensor out = test.place(DType::kFloat32, {2, 3});
    const Tensor shifted = {DType::kFloat32, {2, 3}, {3, 1}, a.offset + 4};
    const auto refuse = [&](ReduceOp op, const std::vector<Tensor>& inputs,
                            const Tensor& into, StatusCode code,
                            const std::string& message) {
      test.refuse(
          *engine, code, "reduce_into: " + message, [&](std::byte* base) {
            return engine->reduce_into({.op = op,
                                        .inputs = inputs_of(inputs, base),
                                        .out = into.out(base)});
          });
    };
    constexpr StatusCode kInvalid = StatusCode::kInvalidArgument;
    refuse(ReduceOp::kSum, {}, out, kInvalid, "the list of inputs is empty");
    refuse(ReduceOp::kSum, {a, half}, out, kInvalid,
           "inputs[1] is f16, inputs[0] is f32");
    refuse(ReduceOp::kSum, {a, b}, out, kInvalid,
           "inputs[1] has sizes [3,2], out has [2,3]");
    refuse(ReduceOp::kBitwiseAnd, {a, a}, out, kInvalid,
           "f32 has no bitwise and");
    refuse(ReduceOp::kSum, {complex}, complex_out, kInvalid, "c64 has no sum");
    refuse(static_cast<ReduceOp>(9), {a}, out, kInvalid,
           "op number 9 names no reduction");
    refuse(ReduceOp::kSum, {a}, shifted, StatusCode::kOverlap,
           "out overlaps inputs[0]");
  }
}

}  // namespace
}  // namespace shardprop::kernels::testing
