#include "mesh/device_mesh_body.h"

#include "base/edit_distance.h"
#include "base/index.h"
#include "base/quantities.h"
#include "base/try.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace shardprop {
namespace {

bool is_identifier(std::string_view text) {
  if (text.empty() || text.size() > 64) return false;
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (!letter(text.front())) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9');
  });
}

}  // namespace

Result<void> check_dims(std::span<const MeshDim> dims) {
  if (dims.empty()) {
    return fail(ErrorCode::kMeshSize, "a mesh needs at least one dim",
                "write it as dp=2,tp=4");
  }
  if (dims.size() > kMaxMeshDims) {
    return fail(ErrorCode::kMeshTooManyDims,
                "a mesh of " + std::to_string(dims.size()) +
                    " dims is more than the " + std::to_string(kMaxMeshDims) +
                    " supported",
                "merge dims that always act together");
  }
  std::int64_t total = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const MeshDim& dim = dims[i];
    if (!is_identifier(dim.name)) {
      return fail(ErrorCode::kMeshDimName,
                  "`" + dim.name + "` is not a name for a mesh dim",
                  "use letters, digits and underscores, a letter first");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (dims[j].name == dim.name) {
        return fail(ErrorCode::kMeshDimName,
                    "mesh dim `" + dim.name + "` appears twice",
                    "give each mesh dim a name of its own");
      }
    }
    if (dim.size < 1) {
      return fail(
          ErrorCode::kMeshSize,
          "mesh dim `" + dim.name + "` has size " + std::to_string(dim.size),
          "every mesh dim has at least one rank");
    }
    if (dim.size > kMaxMeshRanks / total) {
      return fail(
          ErrorCode::kMeshSize,
          "the mesh has more than " + std::to_string(kMaxMeshRanks) + " ranks",
          "check the sizes of its dims");
    }
    total *= dim.size;
  }
  return {};
}

DeviceMesh::DeviceMesh(std::shared_ptr<const Body> body)
    : body_(std::move(body)) {}

DeviceMesh::DeviceMesh() {
  static const std::shared_ptr<const Body> kOneRank = [] {
    auto body = std::make_shared<Body>();
    body->dims = {{"d0", 1}};
    body->modes = {RankModes{{1, 1}}};
    body->seal();
    return body;
  }();
  body_ = kOneRank;
}

Result<DeviceMesh> DeviceMesh::create(std::span<const MeshDim> dims,
                                      std::int64_t first_rank) {
  SP_CHECK(check_dims(dims));
  if (first_rank < 0) {
    return fail(ErrorCode::kMeshRanks,
                "rank " + std::to_string(first_rank) + " is negative");
  }
  std::int64_t size = 1;
  for (const MeshDim& dim : dims) size *= dim.size;
  if (first_rank > std::numeric_limits<std::int64_t>::max() - (size - 1)) {
    return fail(ErrorCode::kMeshRanks, std::to_string(size) + " ranks from " +
                                           std::to_string(first_rank) +
                                           " on cannot be numbered");
  }
  auto body = std::make_shared<Body>();
  body->dims.assign(dims.begin(), dims.end());
  body->first = first_rank;
  body->modes.resize(dims.size());
  std::int64_t stride = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    body->modes[i] = {{dims[i].size, stride}};
    stride *= dims[i].size;
  }
  body->seal();
  return DeviceMesh(std::move(body));
}

Result<DeviceMesh> DeviceMesh::parse(std::string_view text) {
  const auto wrong = [&](const std::string& why) {
    return fail(Error{ErrorCode::kMeshSyntax,
                      "`" + std::string(text) + "` is not a mesh",
                      {},
                      {why},
                      "write it as dp=2,tp=4, or 2,4 for unnamed dims"});
  };
  // parse() reads more dims than a mesh may have, so that create() can report
  // their number.
  constexpr std::size_t kMostParsed = 32;
  std::vector<MeshDim> dims;
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const std::string_view entry = rest.substr(0, comma);
    more = comma != std::string_view::npos;
    rest = more ? rest.substr(comma + 1) : std::string_view();
    const std::size_t equals = entry.find('=');
    MeshDim dim;
    dim.name = equals == std::string_view::npos
                   ? "d" + std::to_string(dims.size())
                   : std::string(entry.substr(0, equals));
    const std::string_view digits =
        equals == std::string_view::npos ? entry : entry.substr(equals + 1);
    const auto [end, code] =
        std::from_chars(digits.data(), digits.data() + digits.size(), dim.size);
    if (code == std::errc::result_out_of_range) {
      return fail(
          ErrorCode::kMeshSize,
          "mesh dim `" + dim.name + "` has size " + std::string(digits),
          "a mesh holds at most " + std::to_string(kMaxMeshRanks) + " ranks");
    }
    if (code != std::errc() || end != digits.data() + digits.size()) {
      return wrong("the size of mesh dim `" + std::string(entry.substr(0, 80)) +
                   "` is not a whole number");
    }
    dims.push_back(std::move(dim));
    if (dims.size() > kMostParsed) return wrong("too many dims");
  }
  return create(dims);
}

Result<DeviceMesh> DeviceMesh::from_ranks(std::span<const MeshDim> dims,
                                          std::span<const std::int64_t> ranks) {
  SP_ASSIGN(const DeviceMesh plain, create(dims));
  if (static_cast<std::int64_t>(ranks.size()) != plain.size()) {
    return fail(ErrorCode::kMeshRanks,
                "a mesh of " + counted(plain.size(), "rank") + " is given " +
                    std::to_string(ranks.size()),
                "give each place of the mesh a rank, in row-major order");
  }
  std::unordered_set<std::int64_t> seen;
  for (const std::int64_t rank : ranks) {
    if (rank < 0) {
      return fail(ErrorCode::kMeshRanks,
                  "rank " + std::to_string(rank) + " is negative",
                  "number ranks from 0");
    }
    if (!seen.insert(rank).second) {
      return fail(ErrorCode::kMeshRanks,
                  "rank " + std::to_string(rank) + " appears twice",
                  "list every rank once");
    }
  }

  // A mesh is strided if one stride per dim, read along its axis, gives every
  // rank.
  auto body = std::make_shared<Body>(*plain.body_);
  body->first = ranks[0];
  std::int64_t step = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    const std::int64_t stride =
        dims[i].size > 1 ? ranks[index(step)] - ranks[0] : 1;
    body->modes[i] = {{dims[i].size, stride}};
    step *= dims[i].size;
  }
  const RankModes modes = body->all_modes();
  bool strided = std::all_of(modes.begin(), modes.end(),
                             [](const RankMode& m) { return m.stride > 0; });
  for (std::size_t i = 0; strided && i < ranks.size(); ++i) {
    strided = body->first + mode_offset(modes, static_cast<std::int64_t>(i)) ==
              ranks[i];
  }
  if (!strided) {
    *body = *plain.body_;
    body->table = std::make_shared<const RankTable>(
        std::vector<std::int64_t>(ranks.begin(), ranks.end()));
  }
  body->seal();
  return DeviceMesh(std::move(body));
}

int DeviceMesh::ndim() const { return static_cast<int>(body_->dims.size()); }
std::int64_t DeviceMesh::size() const { return body_->size; }
std::int64_t DeviceMesh::size(int dim) const {
  return body_->dims[index(dim)].size;
}
const std::string& DeviceMesh::name(int dim) const {
  return body_->dims[index(dim)].name;
}
const std::vector<MeshDim>& DeviceMesh::dims() const { return body_->dims; }
int DeviceMesh::num_active_dims() const {
  return static_cast<int>(
      std::count_if(body_->dims.begin(), body_->dims.end(),
                    [](const MeshDim& dim) { return dim.size > 1; }));
}
bool DeviceMesh::is_strided() const { return body_->table == nullptr; }

std::optional<int> DeviceMesh::find_dim(std::string_view name) const {
  for (int i = 0; i < ndim(); ++i) {
    if (this->name(i) == name) return i;
  }
  return std::nullopt;
}

Result<int> DeviceMesh::dim_index(std::string_view name) const {
  if (const auto dim = find_dim(name)) return *dim;
  std::vector<std::string_view> names;
  for (const MeshDim& dim : dims()) names.push_back(dim.name);
  return fail(Error{ErrorCode::kMeshDimUnknown,
                    "the mesh has no dim `" + std::string(name) + "`",
                    {},
                    {"the mesh is " + to_string(*this)},
                    did_you_mean(name, names)});
}

std::int64_t DeviceMesh::index_at(const Coordinate& coordinate) const {
  std::int64_t index = 0;
  for (std::size_t i = 0; i < coordinate.size(); ++i) {
    index = index * body_->dims[i].size + coordinate[i];
  }
  return index;
}

Coordinate DeviceMesh::coordinate_at_index(std::int64_t index) const {
  Coordinate coordinate(body_->dims.size());
  for (std::size_t i = coordinate.size(); i-- > 0;) {
    coordinate[i] = index % body_->dims[i].size;
    index /= body_->dims[i].size;
  }
  return coordinate;
}

std::int64_t DeviceMesh::rank_at(const Coordinate& coordinate) const {
  std::int64_t position = body_->first;
  for (std::size_t i = 0; i < coordinate.size(); ++i) {
    position += mode_offset(body_->modes[i], coordinate[i]);
  }
  return body_->rank_of_position(position);
}

std::int64_t DeviceMesh::rank_at_index(std::int64_t index) const {
  return rank_at(coordinate_at_index(index));
}

std::optional<std::int64_t> DeviceMesh::index_of(std::int64_t rank) const {
  return body_->ranks().index_of(rank);
}

std::optional<Coordinate> DeviceMesh::coordinate_of(std::int64_t rank) const {
  const auto index = index_of(rank);
  if (!index) return std::nullopt;
  return coordinate_at_index(*index);
}

bool DeviceMesh::contains(std::int64_t rank) const {
  return index_of(rank).has_value();
}

RankGroup DeviceMesh::group(std::span<const std::int32_t> dims,
                            const Coordinate& at) const {
  std::int64_t first = body_->first;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const bool spans = std::find(dims.begin(), dims.end(),
                                 static_cast<std::int32_t>(i)) != dims.end();
    if (!spans) first += mode_offset(body_->modes[i], at[i]);
  }
  RankModes modes;
  for (const std::int32_t dim : dims) {
    for (const RankMode& mode : body_->modes[index(dim)]) {
      modes.push_back(mode);
    }
  }
  return {first, std::move(modes), body_->table};
}

RankGroup DeviceMesh::group(int dim, const Coordinate& at) const {
  const std::int32_t one[] = {dim};
  return group(one, at);
}

std::int64_t DeviceMesh::group_count(int dim) const {
  return size() / size(dim);
}

RankGroup DeviceMesh::group_at(int dim, std::int64_t i) const {
  Coordinate at(body_->dims.size());
  for (std::size_t d = at.size(); d-- > 0;) {
    if (static_cast<int>(d) == dim) continue;
    at[d] = i % body_->dims[d].size;
    i /= body_->dims[d].size;
  }
  return group(dim, at);
}

bool operator==(const DeviceMesh& a, const DeviceMesh& b) {
  if (a.body_ == b.body_) return true;
  return a.body_->hash == b.body_->hash && a.body_->dims == b.body_->dims &&
         a.body_->ranks() == b.body_->ranks();
}

std::size_t DeviceMesh::hash() const { return body_->hash; }

std::string to_string(const DeviceMesh& mesh) {
  std::string out;
  for (const MeshDim& dim : mesh.dims()) {
    if (!out.empty()) out += ',';
    out += dim.name + '=' + std::to_string(dim.size);
  }
  return out;
}

}  // namespace shardprop
