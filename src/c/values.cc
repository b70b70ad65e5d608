// Implements the meshes, topologies and specs of the C API.

#include "c/boundary.h"

#include <shardprop/io/topology_file.h>
#include <shardprop/placement/local_region.h>

#include <string>
#include <vector>

using namespace shardprop;     // NOLINT(google-build-using-namespace)
using namespace shardprop::c;  // NOLINT(google-build-using-namespace)

shardprop_error* shardprop_mesh_parse(const char* text, shardprop_mesh** mesh) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(mesh, "mesh"));
    SP_ASSIGN(const char* given, text_of(text, "text"));
    SP_ASSIGN(DeviceMesh made, DeviceMesh::parse(given));
    return give(mesh, std::move(made));
  });
}

shardprop_error* shardprop_mesh_create(const char* const* names,
                                       const int64_t* sizes, int32_t ndim,
                                       const int64_t* ranks, int64_t rank_count,
                                       shardprop_mesh** mesh) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(mesh, "mesh"));
    SP_ASSIGN(const std::size_t dims, count_of(sizes, ndim, "sizes"));
    SP_ASSIGN(const std::size_t count, count_of(ranks, rank_count, "ranks"));
    std::vector<MeshDim> made;
    for (std::size_t i = 0; i < dims; ++i) {
      std::string name = "d" + std::to_string(i);
      if (names != nullptr) {
        SP_ASSIGN(name, text_of(names[i], "names"));
      }
      made.push_back({std::move(name), sizes[i]});
    }
    SP_ASSIGN(DeviceMesh out, DeviceMesh::from_ranks(made, {ranks, count}));
    return give(mesh, std::move(out));
  });
}

int32_t shardprop_mesh_ndim(const shardprop_mesh* mesh) {
  const DeviceMesh* found = peek(mesh);
  return found == nullptr ? 0 : found->ndim();
}
int64_t shardprop_mesh_size(const shardprop_mesh* mesh) {
  const DeviceMesh* found = peek(mesh);
  return found == nullptr ? 0 : found->size();
}
int64_t shardprop_mesh_dim_size(const shardprop_mesh* mesh, int32_t dim) {
  const DeviceMesh* found = peek(mesh);
  if (found == nullptr || dim < 0 || dim >= found->ndim()) return -1;
  return found->size(dim);
}
const char* shardprop_mesh_dim_name(const shardprop_mesh* mesh, int32_t dim) {
  const DeviceMesh* found = peek(mesh);
  if (found == nullptr || dim < 0 || dim >= found->ndim()) return "";
  return found->name(dim).c_str();
}
void shardprop_mesh_free(shardprop_mesh* mesh) { release(mesh); }

shardprop_error* shardprop_topology_find(const char* name_or_file,
                                         shardprop_topology** topology) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(topology, "topology"));
    if (name_or_file == nullptr) return give(topology, default_topology());
    SP_ASSIGN(Topology found, load_topology(name_or_file));
    return give(topology, std::move(found));
  });
}
const char* shardprop_topology_name(const shardprop_topology* topology) {
  const Topology* found = peek(topology);
  return found == nullptr ? "" : found->name.c_str();
}
void shardprop_topology_free(shardprop_topology* topology) {
  release(topology);
}

shardprop_error* shardprop_spec_parse(const char* text,
                                      const shardprop_mesh* mesh,
                                      shardprop_spec** spec) {
  return barrier([&]() -> Result<void> {
    SP_CHECK(clear(spec, "spec"));
    SP_ASSIGN(const char* given, text_of(text, "text"));
    SP_ASSIGN(const DeviceMesh* on, get(mesh));
    SP_ASSIGN(TensorSpec made, TensorSpec::parse(given, *on));
    return give(spec, spec_object(std::move(made)));
  });
}
const char* shardprop_spec_text(const shardprop_spec* spec) {
  const SpecObject* found = peek(spec);
  return found == nullptr ? "" : found->text.c_str();
}
const char* shardprop_spec_layout(const shardprop_spec* spec) {
  const SpecObject* found = peek(spec);
  return found == nullptr ? "" : found->layout.c_str();
}
const char* shardprop_spec_dtype(const shardprop_spec* spec) {
  const SpecObject* found = peek(spec);
  // Names of dtypes are literals.
  return found == nullptr ? "" : to_string(found->spec.meta().dtype()).data();
}
int32_t shardprop_spec_ndim(const shardprop_spec* spec) {
  const SpecObject* found = peek(spec);
  return found == nullptr ? 0 : found->spec.meta().rank();
}
int64_t shardprop_spec_size(const shardprop_spec* spec, int32_t dim) {
  const SpecObject* found = peek(spec);
  if (found == nullptr || dim < 0 || dim >= found->spec.meta().rank())
    return -1;
  return found->spec.meta().size(dim);
}
shardprop_error* shardprop_spec_local_shape(const shardprop_spec* spec,
                                            int64_t rank, int64_t* sizes) {
  return barrier([&]() -> Result<void> {
    SP_ASSIGN(const SpecObject* found, get(spec));
    const TensorSpec& of = found->spec;
    const auto at = of.mesh().coordinate_of(rank);
    if (!at) {
      return fail(ErrorCode::kMeshCoordinate,
                  "rank " + std::to_string(rank) + " is not on mesh " +
                      to_string(of.mesh()),
                  "ask for a rank of the mesh");
    }
    SP_ASSIGN(const std::size_t count,
              count_of(sizes, of.meta().rank(), "sizes"));
    for (std::size_t d = 0; d < count; ++d) {
      sizes[d] = 0;
      for (const Interval& piece :
           local_intervals(of.layout(), of.mesh(), static_cast<int>(d),
                           of.meta().size(static_cast<int>(d)), *at)) {
        sizes[d] += piece.size();
      }
    }
    return {};
  });
}
int32_t shardprop_spec_equal(const shardprop_spec* a, const shardprop_spec* b) {
  const SpecObject* left = peek(a);
  const SpecObject* right = peek(b);
  if (left == nullptr || right == nullptr) return 0;
  return left->spec == right->spec ? 1 : 0;
}
void shardprop_spec_free(shardprop_spec* spec) { release(spec); }
