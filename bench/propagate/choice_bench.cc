// What it takes to choose a strategy of a matrix product, an attention and an
// embedding on some mesh dims, no answer remembered, in microseconds (a median):
//
//   bench_choice attention 3 moves
//
// "fits": inputs lie so that none must move; "moves": one has to. choices.py puts
// torch's DTensor beside it.
#include <shardprop/propagate/sharding_propagator.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace shardprop;  // NOLINT(google-build-using-namespace)
using Clock = std::chrono::steady_clock;

struct Operator {
  const char* name;  // in the output
  const char* op;
  std::vector<TensorMeta> metas;
  // What the first mesh dims do, of each tensor; those behind do nothing.
  std::vector<std::vector<std::string>> fits;
  std::vector<std::vector<std::string>> moves;
};

TensorMeta meta(const Dims& sizes, DType dtype) {
  return TensorMeta::contiguous(sizes, dtype).value();
}

std::vector<Operator> operators() {
  const TensorMeta heads = meta({64, 32, 1024, 128}, DType::kBF16);
  return {
      {"mm",
       "aten.mm.default",
       {meta({4096, 2048}, DType::kBF16), meta({2048, 1024}, DType::kBF16)},
       {{"S(0)"}, {"R", "S(1)"}},
       {{"S(0)", "S(1)"}, {"S(1)", "S(0)"}}},
      {"attention",
       "aten._scaled_dot_product_flash_attention.default",
       {heads, heads, heads},
       {{"S(0)", "S(1)"}, {"S(0)", "S(1)"}, {"S(0)", "S(1)"}},
       {{"S(0)", "S(1)"}, {"S(1)", "S(0)"}, {"R", "S(1)"}}},
      {"embedding",
       "aten.embedding.default",
       {meta({32'000, 4096}, DType::kBF16), meta({64, 1024}, DType::kI64)},
       {{"R", "S(1)"}, {"S(0)"}},
       {{"S(1)"}, {"S(0)", "S(1)"}}},
  };
}

std::string mesh_of(int dims) {
  std::string text = "2";
  for (int i = 1; i < dims; ++i) text += ",2";
  return text;
}

Layout layout_of(const std::vector<std::string>& first, int dims) {
  std::string text;
  for (int i = 0; i < dims; ++i) {
    const auto at = static_cast<std::size_t>(i);
    text += (i == 0 ? "" : ",") + (at < first.size() ? first[at] : "R");
  }
  return Layout::parse(text).value();
}

double microseconds(const Operator& op, int dims,
                    const std::vector<std::vector<std::string>>& layouts) {
  const auto library = OpLibrary::standard();
  const auto propagator =
      ShardingPropagator::create(DeviceMesh::parse(mesh_of(dims)).value(),
                                 default_topology(), library)
          .value();
  std::vector<GivenArgument> args;
  std::vector<Layout> given;
  for (std::size_t i = 0; i < op.metas.size(); ++i) {
    args.push_back({"", TensorArg{static_cast<std::uint32_t>(i)}});
    given.push_back(layout_of(layouts[i], dims));
  }
  const OpSchema schema =
      make_op_schema(library->find(op.op), args, op.metas).value();
  std::vector<double> times;
  const auto until = Clock::now() + std::chrono::seconds(1);
  while (times.empty() || (times.size() < 101 && Clock::now() < until)) {
    const auto begin = Clock::now();
    const auto answer = propagator.propagate(schema, given);
    times.push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - begin)
            .count());
    if (!answer) {
      std::fprintf(stderr, "%s\n", answer.error().message.c_str());
      std::exit(1);
    }
  }
  const auto middle =
      times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4) {
    for (const Operator& op : operators()) {
      if (std::string(op.name) != argv[1]) continue;
      const bool moves = std::string(argv[3]) == "moves";
      std::printf("%.1f\n", microseconds(op, std::atoi(argv[2]),
                                         moves ? op.moves : op.fits));
      return 0;
    }
  }
  std::fprintf(stderr,
               "usage: bench_choice mm|attention|embedding 1..5 fits|moves\n");
  return 2;
}
