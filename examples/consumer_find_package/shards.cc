// Prints what every rank of a mesh holds of a tensor:
//
//   shards dp=2,tp=2 'f32[5,8] S(0),S(1)'
#include <shardprop/placement/local_region.h>

#include <cstdio>
#include <string>

namespace {

using shardprop::DeviceMesh;
using shardprop::Error;
using shardprop::Result;
using shardprop::TensorSpec;

int refuse(const Error& error) {
  std::fputs(to_string(error).c_str(), stderr);
  return 2;
}

std::string runs_of(const shardprop::Intervals& dim) {
  std::string out;
  for (const shardprop::Interval& run : dim) {
    if (!out.empty()) out += '+';
    out +=
        '[' + std::to_string(run.begin) + ':' + std::to_string(run.end) + ')';
  }
  return out.empty() ? "nothing" : out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: shards MESH 'TENSOR PLACEMENTS'\n", stderr);
    return 2;
  }
  const Result<DeviceMesh> mesh = DeviceMesh::parse(argv[1]);
  if (!mesh) return refuse(mesh.error());
  const Result<TensorSpec> spec = TensorSpec::parse(argv[2], *mesh);
  if (!spec) return refuse(spec.error());

  std::printf("%s on %s, at most %lld bytes a rank\n", to_string(*spec).c_str(),
              to_string(*mesh).c_str(),
              static_cast<long long>(max_local_bytes(*spec)));
  for (std::int64_t i = 0; i < mesh->size(); ++i) {
    const auto place = mesh->coordinate_at_index(i);
    std::string line = "rank " + std::to_string(mesh->rank_at(place)) + ":";
    for (const auto& dim : local_region(*spec, place).dims()) {
      line += ' ' + runs_of(dim);
    }
    std::puts(line.c_str());
  }
  return 0;
}
