// The layout in which the values of ranks are right.
#include "verify/layout_fit.h"

#include "support/result_checks.h"
#include "verify/host_values.h"

#include <shardprop/placement/local_region.h>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace shardprop::verification {
namespace {

using testing::value_of;

LocalTensor numbers(const Dims& shape, double scale = 1) {
  LocalTensor out = value_of(LocalTensor::empty(shape, DType::kF64));
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    // No two elements are alike, and none is zero.
    out.data_as<double>()[i] = scale * (1 + 0.37 * static_cast<double>(i));
  }
  return out;
}

DeviceMesh mesh_of(const char* text) {
  return value_of(DeviceMesh::parse(text));
}

// Returns the parts of a layout without terms. Each rank of a mesh dim with
// terms holds an equal share of them.
std::vector<LocalTensor> parts(const DeviceMesh& mesh, const Layout& layout,
                               const Dims& shape) {
  double share = 1;
  for (int d = 0; d < mesh.ndim(); ++d) {
    const bool is_sum =
        layout[d].is_partial() && layout[d].reduce_op() == ReduceOp::kSum;
    if (is_sum) share *= static_cast<double>(mesh.size(d));
  }
  const LocalTensor whole = numbers(shape);
  std::vector<LocalTensor> out;
  for (std::int64_t i = 0; i < mesh.size(); ++i) {
    const Coordinate at = mesh.coordinate_at_index(i);
    LocalTensor part =
        value_of(part_of(whole, local_region(layout, mesh, shape, at)));
    double own = 1 / share;
    for (int d = 0; d < mesh.ndim(); ++d) {
      // The terms differ: -1/share and 3/share for two ranks.
      if (!layout[d].is_partial() || mesh.size(d) != 2) continue;
      own *= at[static_cast<std::size_t>(d)] == 0 ? -1 : 3;
    }
    for (std::int64_t e = 0; e < part.numel(); ++e) {
      part.data_as<double>()[e] *= own;
    }
    out.push_back(part);
  }
  return out;
}

std::string fit_of(const RankValues& values) {
  const auto found = values.fit();
  return found ? to_string(found->layout) : "none";
}

TEST_CASE("a layout is inferred from the values of all ranks") {
  const DeviceMesh two = mesh_of("tp=2");
  const DeviceMesh four = mesh_of("dp=2,tp=2");
  const Dims shape{8, 5};
  for (const char* text : {"R", "S(0)", "S(1)", "P(sum)"}) {
    CAPTURE(text);
    const Layout layout = value_of(Layout::parse(text));
    CHECK(fit_of({two, parts(two, layout, shape), numbers(shape), {}}) == text);
  }
  for (const char* text : {"R,R", "S(0),R", "R,S(1)", "S(1),S(0)", "S(0),S(0)",
                           "S(0)@1,S(0)@0", "P(sum),S(0)", "S(1),P(sum)"}) {
    CAPTURE(text);
    const Layout layout = value_of(Layout::parse(text));
    CHECK(fit_of({four, parts(four, layout, shape), numbers(shape), {}}) ==
          text);
  }
}

TEST_CASE("a strided shard is inferred") {
  const DeviceMesh two = mesh_of("tp=2");
  const Dims shape{8};
  const Layout layout = value_of(Layout::parse("SS(0,2)"));
  CHECK(fit_of({two, parts(two, layout, shape), numbers(shape), {}}) ==
        "SS(0,2)");
}

TEST_CASE("terms of means and of maxima are inferred") {
  const DeviceMesh two = mesh_of("tp=2");
  const Dims shape{20};
  const LocalTensor whole = numbers(shape);
  const std::vector<LocalTensor> means = {numbers(shape, 3),
                                          numbers(shape, -1)};
  CHECK(fit_of({two, means, whole, {}}) == "P(avg)");
  std::vector<LocalTensor> maxima = {numbers(shape), numbers(shape)};
  maxima[0].data_as<double>()[1] = maxima[1].data_as<double>()[4] = -2;
  const RankValues values(two, maxima, whole, {});
  CHECK_FALSE(values.fit());
  const auto found = values.fit(TermOps::kAll);
  REQUIRE(found);
  CHECK(to_string(found->layout) == "P(max)");
  // Rank 0 alone is right, so rank 1 is wrong.
  maxima[0] = numbers(shape);
  CHECK_FALSE(RankValues(two, maxima, whole, {}).fit(TermOps::kAll));
}

TEST_CASE("equal terms are terms only if a graph may have them") {
  const DeviceMesh two = mesh_of("tp=2");
  const LocalTensor half = numbers({6}, 0.5);
  const RankValues values(two, {half, half}, numbers({6}), {});
  CHECK_FALSE(values.fit());
  const auto found = values.fit(TermOps::kAll);
  REQUIRE(found);
  CHECK(to_string(found->layout) == "P(sum)");
}

TEST_CASE("a factor is found if no layout fits") {
  const DeviceMesh two = mesh_of("tp=2");
  const Dims shape{6};
  const std::vector<LocalTensor> held = {numbers(shape, 2), numbers(shape, 2)};
  const RankValues values(two, held, numbers(shape), {});
  CHECK_FALSE(values.fit());
  const auto found = values.multiple();
  REQUIRE(found);
  CHECK(found->factor == doctest::Approx(2));
  CHECK(to_string(found->layout) == "R");
  CHECK(ratio_text(found->factor) == "2");
  CHECK(ratio_text(0.25) == "1/4");
}

TEST_CASE("parts in another order of ranks are found") {
  const DeviceMesh two = mesh_of("tp=2");
  const Dims shape{6};
  const Layout layout = value_of(Layout::parse("S(0)"));
  std::vector<LocalTensor> held = parts(two, layout, shape);
  std::swap(held[0], held[1]);
  const RankValues values(two, held, numbers(shape), {});
  CHECK_FALSE(values.fit());
  CHECK(values.wrong_order() ==
        "The ranks hold the parts of the layout S(0) in another order: rank 0 "
        "holds the part of rank 1.");
}

TEST_CASE("gathered shards in another order are found") {
  const DeviceMesh two = mesh_of("tp=2");
  const Dims shape{3, 4};
  LocalTensor swapped = numbers(shape);
  auto* elements = swapped.data_as<double>();
  for (int row = 0; row < 3; ++row) {
    std::swap(elements[4 * row], elements[4 * row + 2]);
    std::swap(elements[4 * row + 1], elements[4 * row + 3]);
  }
  const RankValues values(two, {swapped, swapped}, numbers(shape), {});
  CHECK_FALSE(values.fit());
  CHECK(values.wrong_order() ==
        "The shards of dim 1 over tp=2 are in the order 1,0.");
  elements[0] += 1;
  CHECK(RankValues(two, {swapped, swapped}, numbers(shape), {})
            .wrong_order()
            .empty());
}

TEST_CASE("the nearest layout names the first wrong element") {
  const DeviceMesh two = mesh_of("tp=2");
  const Dims shape{2, 3};
  std::vector<LocalTensor> held = {numbers(shape), numbers(shape)};
  held[1].data_as<double>()[4] = 9;
  const RankValues values(two, held, numbers(shape), {});
  CHECK_FALSE(values.fit());
  const auto found = values.nearest();
  REQUIRE(found);
  CHECK(to_string(found->layout) == "R");
  CHECK(found->rank == 1);
  CHECK(place_in(found->difference.element, shape) == "[1,1]");
  CHECK(found->difference.found == 9);
  CHECK(words(found->layout, two) == "each rank holds the full tensor");
}

TEST_CASE("sizes that no layout gives fit nothing") {
  const DeviceMesh two = mesh_of("tp=2");
  const std::vector<LocalTensor> held = {numbers({5}), numbers({5})};
  const RankValues values(two, held, numbers({6}), {});
  CHECK_FALSE(values.fit());
  CHECK_FALSE(values.multiple());
  CHECK_FALSE(values.nearest());
}

TEST_CASE("integers must be equal, and masks are no scale of rounding") {
  const DeviceMesh one = mesh_of("tp=1");
  LocalTensor whole = value_of(LocalTensor::zeros({2}, DType::kI64));
  LocalTensor held = value_of(LocalTensor::zeros({2}, DType::kI64));
  held.data_as<std::int64_t>()[1] = 1;
  CHECK_FALSE(RankValues(one, {held}, whole, {}).fit());
  LocalTensor mask = numbers({2});
  LocalTensor other = numbers({2});
  mask.data_as<double>()[0] = other.data_as<double>()[0] = -3.4e38;
  other.data_as<double>()[1] += 0.5;
  CHECK_FALSE(RankValues(one, {other}, mask, {}).fit());
}

}  // namespace
}  // namespace shardprop::verification
