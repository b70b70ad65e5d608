// Tests chunk_cat and split_with_sizes_copy: worked examples, random cases,
// limits.

#include "case.h"

namespace shardprop::kernels::testing {
namespace {

using Sizes = std::vector<std::int64_t>;
using Layout = Case::Layout;

constexpr DType kCastable[] = {DType::kFloat32, DType::kFloat16,
                               DType::kBFloat16, DType::kFloat8E4M3FN,
                               DType::kFloat8E5M2};

struct Types {
  DType from;
  DType to;
  double scale;
};

Types any_types(Case& test) {
  if (test.pick(0, 2) == 0) {
    const auto dtype = static_cast<DType>(test.pick(0, kDTypeCount - 1));
    // The reference reads an element as one integer.
    const DType narrow = size_of(dtype) > 8 ? DType::kInt64 : dtype;
    return {narrow, narrow, 1.0};
  }
  return {kCastable[test.pick(0, 4)], kCastable[test.pick(0, 4)],
          test.pick_of({1.0, 0.125, 1.0 / 3})};
}

// Returns the columns that tensors with shard dims `dims` take in a packed
// buffer.
std::int64_t columns_of(const std::vector<Tensor>& tensors, const Sizes& dims,
                        std::int64_t num_chunks, std::size_t lead) {
  std::int64_t columns = 0;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    std::int64_t width = 1;
    for (std::size_t d = lead; d < tensors[t].sizes.size(); ++d) {
      const std::int64_t size = tensors[t].sizes[d];
      width *= static_cast<std::int64_t>(d) == dims[t]
                   ? (size + num_chunks - 1) / num_chunks
                   : size;
    }
    columns += width;
  }
  return columns;
}

void expect_chunk_cat(Case& test, Engine& engine,
                      const std::vector<Tensor>& tensors, std::int64_t dim,
                      std::int64_t num_chunks, const Tensor& out, double scale,
                      const std::string& what) {
  test.expect(
      engine, {out},
      [&](std::byte* base) {
        return engine.chunk_cat({.tensors = inputs_of(tensors, base),
                                 .dim = dim,
                                 .num_chunks = num_chunks,
                                 .out = out.out(base),
                                 .scale = scale});
      },
      [&](Arena& arena) {
        chunk_cat(arena, tensors, dim, num_chunks, out, scale);
      },
      what);
}

// Returns a tensor whose bytes spell its name.
Tensor named(Case& test, char name, Sizes sizes) {
  Tensor tensor = test.place(DType::kUInt8, std::move(sizes));
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    write(test.arena, tensor, i, static_cast<std::uint8_t>(name));
  }
  return tensor;
}

// Packs A, B and C for some ranks. Returns the rows as text, with 0 for
// padding.
std::string packed_text(Engine& engine, std::int64_t num_chunks,
                        std::int64_t columns, Sizes a, Sizes b, Sizes c) {
  Case test(1);
  const std::vector<Tensor> tensors = {named(test, 'A', std::move(a)),
                                       named(test, 'B', std::move(b)),
                                       named(test, 'C', std::move(c))};
  const Tensor out = test.place(DType::kUInt8, {num_chunks, columns});
  Arena arena = test.arena;
  std::byte* const base = engine.enter(arena);
  const Status status = engine.chunk_cat({.tensors = inputs_of(tensors, base),
                                          .dim = 0,
                                          .num_chunks = num_chunks,
                                          .out = out.out(base)});
  engine.leave(arena);
  CHECK_FOR(status.ok(), status.message());
  std::string text;
  for (std::int64_t i = 0; i < out.count(); ++i) {
    if (i > 0 && i % columns == 0) text += '/';
    const auto letter = static_cast<char>(read(arena, out, i));
    text += letter == 0 ? '0' : letter;
  }
  return text;
}

TEST("chunk_cat packs the three-rank reduce-scatter of pytorch#121081") {
  for (Engine* engine : engines()) {
    CHECK_FOR(packed_text(*engine, 3, 9, {2, 4}, {3, 3}, {1, 2}) ==
                  "AAAABBBCC/AAAABBB00/0000BBB00",
              engine->name());
  }
}

TEST("chunk_cat packs for two ranks, padding odd rows") {
  for (Engine* engine : engines()) {
    CHECK_FOR(packed_text(*engine, 2, 12, {2, 4}, {3, 3}, {1, 2}) ==
                  "AAAABBBBBBCC/AAAABBB00000",
              engine->name());
  }
}

TEST("chunk_cat equals the reference on random cases") {
  for (unsigned seed = 0; seed < 400; ++seed) {
    Case test(seed);
    const Types types = any_types(test);
    const std::int64_t num_chunks = test.pick(1, 9);
    const std::int64_t dim = test.pick(0, 2);
    const bool misaligned = test.pick(0, 4) == 0;
    Sizes lead;
    for (std::int64_t d = 0; d < dim; ++d) lead.push_back(test.pick(1, 4));
    std::vector<Tensor> tensors;
    for (std::int64_t t = test.pick(1, 5); t > 0; --t) {
      Sizes sizes = lead;
      sizes.push_back(test.pick(1, 20));
      for (std::int64_t d = test.pick(0, 2); d > 0; --d) {
        sizes.push_back(test.pick_of<std::int64_t>({1, 3, 8, 17, 40}));
      }
      tensors.push_back(
          test.input(types.from, sizes, test.any_layout(), misaligned));
    }
    Sizes shape = lead;
    shape.push_back(num_chunks);
    shape.push_back(columns_of(tensors, Sizes(tensors.size(), dim), num_chunks,
                               static_cast<std::size_t>(dim)));
    const Tensor out =
        test.place(types.to, shape,
                   test.pick_of({Layout::kRow, Layout::kRow, Layout::kPadded,
                                 Layout::kColumn}),
                   misaligned);
    for (Engine* engine : engines()) {
      expect_chunk_cat(test, *engine, tensors, dim, num_chunks, out,
                       types.scale, "seed " + std::to_string(seed));
    }
  }
}

TEST("shard_dims pack and unpack as the reference on random cases") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Case test(seed);
    const Types types = any_types(test);
    const std::int64_t num_chunks = test.pick(1, 8);
    const bool unpack = seed % 2 == 0;
    std::vector<Tensor> tensors;
    Sizes dims;
    Sizes widths;
    for (std::int64_t t = test.pick(1, 5); t > 0; --t) {
      Sizes sizes;
      for (std::int64_t d = test.pick(1, 4); d > 0; --d) {
        sizes.push_back(test.pick_of<std::int64_t>({1, 2, 5, 8, 24}));
      }
      dims.push_back(test.pick(0, static_cast<std::int64_t>(sizes.size()) - 1));
      tensors.push_back(unpack
                            ? test.place(types.to, sizes, test.any_layout())
                            : test.input(types.from, sizes, test.any_layout()));
      widths.push_back(
          columns_of({tensors.back()}, {dims.back()}, num_chunks, 0));
    }
    const Sizes shape = {num_chunks,
                         std::accumulate(widths.begin(), widths.end(), 0L)};
    const Tensor packed =
        unpack ? test.input(types.from, shape) : test.place(types.to, shape);
    for (Engine* engine : engines()) {
      test.expect(
          *engine, unpack ? tensors : std::vector<Tensor>{packed},
          [&](std::byte* base) {
            if (unpack) {
              return engine->split_with_sizes_copy(
                  {.in = packed.in(base),
                   .sizes = widths,
                   .dim = 1,
                   .outs = outputs_of(tensors, base),
                   .shard_dims = dims,
                   .scale = types.scale});
            }
            return engine->chunk_cat({.tensors = inputs_of(tensors, base),
                                      .num_chunks = num_chunks,
                                      .out = packed.out(base),
                                      .shard_dims = dims,
                                      .scale = types.scale});
          },
          [&](Arena& arena) {
            sharded(arena, tensors, dims, packed, types.scale, unpack);
          },
          "seed " + std::to_string(seed));
    }
  }
}

TEST("split_with_sizes_copy equals the reference on random cases") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Case test(seed);
    const Types types = any_types(test);
    Sizes sizes;
    for (std::int64_t d = test.pick(1, 4); d > 0; --d) {
      sizes.push_back(test.pick_of<std::int64_t>({1, 3, 8, 30}));
    }
    const std::int64_t dim =
        test.pick(0, static_cast<std::int64_t>(sizes.size()) - 1);
    const Tensor in = test.input(types.from, sizes, test.any_layout());
    Sizes parts;
    std::vector<Tensor> outs;
    std::int64_t left = sizes[static_cast<std::size_t>(dim)];
    do {
      parts.push_back(parts.size() == 5 ? left : test.pick(0, left));
      left -= parts.back();
      sizes[static_cast<std::size_t>(dim)] = parts.back();
      outs.push_back(test.place(
          types.to, sizes,
          test.pick_of({Layout::kRow, Layout::kRow, Layout::kPadded})));
    } while (left > 0);
    for (Engine* engine : engines()) {
      test.expect(
          *engine, outs,
          [&](std::byte* base) {
            return engine->split_with_sizes_copy(
                {.in = in.in(base),
                 .sizes = parts,
                 .dim = dim,
                 .outs = outputs_of(outs, base),
                 .scale = types.scale});
          },
          [&](Arena& arena) { split(arena, in, dim, outs, types.scale); },
          "seed " + std::to_string(seed));
    }
  }
}

TEST("more than 65,535 chunks, and a chunk for every element") {
  Case test(1);
  const std::vector<Tensor> tensors = {test.input(DType::kFloat32, {70000, 2}),
                                       test.input(DType::kFloat32, {3, 5})};
  const Tensor out = test.place(DType::kBFloat16, {70000, 7});
  for (Engine* engine : engines()) {
    expect_chunk_cat(test, *engine, tensors, 0, 70000, out, 1.0, "70,000");
  }
}

// The tensors exceed any last-level cache, so that the CPU streams its stores.
// Their addresses are not aligned to vectors.
TEST("large tensors off the beat of cache lines") {
  for (const auto& [from, to] :
       {std::pair{DType::kFloat32, DType::kFloat32},
        std::pair{DType::kFloat32, DType::kBFloat16},
        std::pair{DType::kFloat8E5M2, DType::kFloat32}}) {
    Case test(3);
    const std::vector<Tensor> tensors = {
        test.input(from, {3001, 1237}), test.input(from, {5, 3}),
        test.input(from, {1000, 1001}, Layout::kColumn)};
    const Tensor out = test.place(to, {4, 751 * 1237 + 2 * 3 + 250 * 1001});
    for (Engine* engine : engines()) {
      expect_chunk_cat(test, *engine, tensors, 0, 4, out, 1.0,
                       std::string(to_string(to)));
    }
  }
}

// Tensors as large, in short rows that go to all chunks in turn. Their last
// block is partial.
TEST("large tensors cut along their rows") {
  Case test(4);
  const std::vector<Tensor> tensors = {
      test.input(DType::kInt32, {9001, 488}), test.input(DType::kInt32, {8, 3}),
      test.input(DType::kInt32, {3, 500, 64}, Layout::kPadded)};
  const Sizes dims = {1, 0, 2};
  const Tensor out =
      test.place(DType::kInt32, {8, 9001 * 61 + 3 + 3 * 500 * 8});
  for (Engine* engine : engines()) {
    test.expect(
        *engine, {out},
        [&](std::byte* base) {
          return engine->chunk_cat({.tensors = inputs_of(tensors, base),
                                    .num_chunks = 8,
                                    .out = out.out(base),
                                    .shard_dims = dims});
        },
        [&](Arena& arena) { sharded(arena, tensors, dims, out, 1.0, false); },
        "int32");
  }
}

// The inverse: adjacent rows come from all chunks, or from more chunks than are
// read at once. The rows of the last tensor are not entire cache lines.
TEST("large tensors put together from their chunks") {
  for (const std::int64_t chunks : {8, 20}) {
    Case test(5);
    const Sizes dims = {1, 1, 0};
    const std::vector<Tensor> tensors = {
        test.place(DType::kInt32, {12000, 48 * chunks}),
        test.place(DType::kInt32, {1500, 61 * chunks}),
        test.place(DType::kInt32, {chunks, 3})};
    const Sizes sizes = {12000 * 48, 1500 * 61, 3};
    const Tensor in =
        test.input(DType::kInt32, {chunks, 12000 * 48 + 1500 * 61 + 3});
    for (Engine* engine : engines()) {
      test.expect(
          *engine, tensors,
          [&](std::byte* base) {
            return engine->split_with_sizes_copy(
                {.in = in.in(base),
                 .sizes = sizes,
                 .dim = 1,
                 .outs = outputs_of(tensors, base),
                 .shard_dims = dims});
          },
          [&](Arena& arena) { sharded(arena, tensors, dims, in, 1.0, true); },
          "int32");
    }
  }
}

TEST("chunk_cat refuses what is wrong and writes nothing") {
  for (Engine* engine : engines()) {
    Case test(5);
    const Tensor a = test.input(DType::kFloat32, {4, 3});
    const Tensor b = test.input(DType::kFloat32, {5, 3});
    const Tensor flat = test.input(DType::kFloat32, {6});
    const Tensor half = test.input(DType::kFloat16, {4, 3});
    const Tensor empty = test.place(DType::kFloat32, {4, 0});
    const Tensor scalar = test.input(DType::kFloat32, {});
    const Tensor whole = test.input(DType::kInt32, {4, 3});
    const Tensor out = test.place(DType::kFloat32, {2, 6});
    const Tensor folded = {DType::kFloat32, {2, 6}, {0, 1}, out.offset};
    const Tensor inside = {DType::kFloat32, {2, 6}, {6, 1}, a.offset + 4};
    using Lists = std::vector<Tensor>;
    const auto refuse = [&](const Lists& tensors, std::int64_t dim,
                            std::int64_t num_chunks, const Tensor& into,
                            StatusCode code, const std::string& message,
                            const Sizes& shard_dims = {}, double scale = 1.0) {
      test.refuse(*engine, code, "chunk_cat: " + message, [&](std::byte* base) {
        return engine->chunk_cat({.tensors = inputs_of(tensors, base),
                                  .dim = dim,
                                  .num_chunks = num_chunks,
                                  .out = into.out(base),
                                  .shard_dims = shard_dims,
                                  .scale = scale});
      });
    };
    constexpr StatusCode kInvalid = StatusCode::kInvalidArgument;
    refuse({a}, 0, 0, out, kInvalid, "num_chunks is 0, must be positive");
    refuse({a}, 0, -2, out, kInvalid, "num_chunks is -2, must be positive");
    refuse({}, 0, 2, out, kInvalid, "the list of tensors is empty");
    refuse({a, empty}, 0, 2, out, kInvalid,
           "tensors[1] of sizes [4,0] is empty");
    refuse({scalar}, 0, 2, out, kInvalid, "tensors[0] has no dims to cut");
    refuse({a, half}, 0, 2, out, kInvalid,
           "tensors[1] is f16, tensors[0] is f32");
    refuse({a, flat}, -1, 2, out, kInvalid,
           "dim -1 is negative, but the tensors differ in ndim");
    refuse({a, flat}, 1, 2, out, kInvalid,
           "dim 1 is out of range for tensors[1] of sizes [6]");
    refuse({a}, 2, 2, out, kInvalid, "dim 2 is out of range for 2-D tensors");
    refuse({a, b}, 1, 2, out, kInvalid,
           "tensors[1] has size 5 in dim 0, tensors[0] has 4");
    refuse({b}, 0, 2, out, kInvalid, "out has sizes [2,6], must have [2,9]");
    refuse({whole}, 0, 2, out, StatusCode::kUnsupported,
           "no cast from i32 to f32");
    refuse({a}, 0, 2, folded, StatusCode::kOverlap, "out overlaps itself");
    refuse({a}, 0, 2, inside, StatusCode::kOverlap, "out overlaps tensors[0]");
    refuse({a, a}, 0, 2, out, kInvalid, "1 shard_dims for 2 tensors", {0});
    refuse({a}, 0, 2, out, kInvalid,
           "shard_dims[0] is 2, out of range for tensors[0] of sizes [4,3]",
           {2});
    refuse({a}, 1, 2, out, kInvalid, "dim is 1, must be 0 with shard_dims",
           {0});
  }
}

TEST("split_with_sizes_copy refuses what is wrong and writes nothing") {
  for (Engine* engine : engines()) {
    Case test(6);
    const Tensor in = test.input(DType::kFloat32, {2, 6});
    const Tensor left = test.place(DType::kFloat32, {2, 2});
    const Tensor right = test.place(DType::kFloat32, {2, 4});
    const Tensor half = test.place(DType::kFloat16, {2, 4});
    const Tensor shadow = {DType::kFloat32, {2, 4}, {4, 1}, left.offset + 4};
    const Tensor shadow_of_in = {DType::kFloat32, {2, 4}, {4, 1}, in.offset};
    const Tensor scalar = test.input(DType::kFloat32, {});
    const auto refuse = [&](const Tensor& from, const Sizes& sizes,
                            std::int64_t dim, const std::vector<Tensor>& outs,
                            StatusCode code, const std::string& message,
                            const Sizes& shard_dims = {}) {
      test.refuse(*engine, code, "split_with_sizes_copy: " + message,
                  [&](std::byte* base) {
                    return engine->split_with_sizes_copy(
                        {.in = from.in(base),
                         .sizes = sizes,
                         .dim = dim,
                         .outs = outputs_of(outs, base),
                         .shard_dims = shard_dims});
                  });
    };
    constexpr StatusCode kInvalid = StatusCode::kInvalidArgument;
    refuse(scalar, {1}, 0, {left}, kInvalid, "in has no dims to split");
    refuse(in, {2, 4}, 2, {left, right}, kInvalid,
           "dim 2 is out of range for in of sizes [2,6]");
    refuse(in, {2, 3}, 1, {left, right}, kInvalid,
           "the sizes sum to 5, but in has size 6 in dim 1");
    refuse(in, {8, -2}, 1, {left, right}, kInvalid,
           "sizes[1] is -2, must not be negative");
    refuse(in, {2, 4}, 1, {left}, kInvalid, "1 outs for 2 sizes");
    refuse(in, {2, 4}, 1, {left, half}, kInvalid,
           "outs[1] is f16, outs[0] is f32");
    refuse(in, {4, 2}, 1, {left, right}, kInvalid,
           "outs[0] has sizes [2,2], must have [2,4]");
    refuse(in, {2, 4}, 1, {left, shadow}, StatusCode::kOverlap,
           "outs[0] overlaps outs[1]");
    refuse(in, {2, 4}, 1, {left, shadow_of_in}, StatusCode::kOverlap,
           "outs[1] overlaps in");
    refuse(in, {1, 5}, 1, {left, right}, kInvalid,
           "outs[0] of sizes [2,2] cut along dim 0 takes 2 of each row, but "
           "sizes[0] is 1",
           {0, 0});
    refuse(in, {1, 1}, 0, {left, right}, kInvalid,
           "shard_dims take an in of 2 dims split along dim 1; in has sizes "
           "[2,6] and dim is 0",
           {0, 0});
  }
}

}  // namespace
}  // namespace shardprop::kernels::testing
