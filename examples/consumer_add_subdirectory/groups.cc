// Prints the groups in which a mesh dim communicates:
//
//   groups dp=2,tp=4 tp
#include <shardprop/mesh/device_mesh.h>

#include <cstdio>
#include <string>

int main(int argc, char** argv) {
  using shardprop::DeviceMesh;
  if (argc != 3) {
    std::fputs("usage: groups MESH DIM\n", stderr);
    return 2;
  }
  const auto mesh = DeviceMesh::parse(argv[1]);
  if (!mesh) {
    std::fputs(to_string(mesh.error()).c_str(), stderr);
    return 2;
  }
  const auto dim = mesh->dim_index(argv[2]);
  if (!dim) {
    std::fputs(to_string(dim.error()).c_str(), stderr);
    return 2;
  }
  for (std::int64_t i = 0; i < mesh->group_count(*dim); ++i) {
    std::string line;
    for (const std::int64_t rank : mesh->group_at(*dim, i).ranks()) {
      if (!line.empty()) line += ' ';
      line += std::to_string(rank);
    }
    std::puts(line.c_str());
  }
  return 0;
}
