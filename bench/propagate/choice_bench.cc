// Measures the choice of a strategy for a call without a cache, in
// microseconds: the median, and the first call on the mesh.
//
//   bench_choice 2,2 aten.mm.default 'bf16[64,32] S(0),R' 'bf16[32,64] R,S(1)'
//
// choices.py compares this with torch's DTensor.
#include <shardprop/propagate/sharding_propagator.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace shardprop;  // NOLINT(google-build-using-namespace)
using Clock = std::chrono::steady_clock;

struct Took {
  double median;
  double first;
};

Result<Took> microseconds(const ShardingPropagator& propagator,
                          const OpSchema& op,
                          const std::vector<Layout>& given) {
  std::vector<double> times;
  const auto until = Clock::now() + std::chrono::seconds(1);
  while (times.empty() || (times.size() < 101 && Clock::now() < until)) {
    const auto begin = Clock::now();
    const auto answer = propagator.propagate(op, given);
    times.push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - begin)
            .count());
    if (!answer) return tl::unexpected(answer.error());
  }
  const double first = times.front();
  const auto middle =
      times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return Took{*middle, first};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: bench_choice MESH OP 'META LAYOUT'...\n");
    return 2;
  }
  const auto library = OpLibrary::standard();
  const auto propagator =
      ShardingPropagator::create(DeviceMesh::parse(argv[1]).value(),
                                 default_topology(), library)
          .value();
  std::vector<TensorMeta> metas;
  std::vector<GivenArgument> args;
  std::vector<Layout> given;
  for (int i = 3; i < argc; ++i) {
    const std::string_view operand = argv[i];
    const std::size_t blank = operand.find(' ');
    metas.push_back(TensorMeta::parse(operand.substr(0, blank)).value());
    given.push_back(Layout::parse(operand.substr(blank + 1)).value());
    args.push_back({"", TensorArg{i - 3}});
  }
  const OpSchema op =
      make_op_schema(library->find(argv[2]), args, metas).value();
  const auto took = microseconds(propagator, op, given);
  if (!took) {
    std::fprintf(stderr, "%s\n", took.error().message.c_str());
    return 1;
  }
  std::printf("%.1f %.1f\n", took->median, took->first);
  return 0;
}
