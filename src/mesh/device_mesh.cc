#include <shardprop/mesh/device_mesh.h>

#include "base/edit_distance.h"
#include "base/try.h"
#include "mesh/rank_modes.h"

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

// The modes of one dim dealt out to the parts it splits into, fastest first;
// a mode is cut where a part ends in it. Nothing if a part has no strides.
std::optional<std::vector<RankModes>> split_modes(
    const RankModes& modes, std::span<const MeshDim> into) {
  RankModes left = coalesced(modes);
  std::vector<RankModes> parts(into.size());
  for (std::size_t p = into.size(); p-- > 0;) {
    std::int64_t wanted = into[p].size;
    while (wanted > 1) {
      RankMode& last = left.back();
      if (wanted % last.size == 0) {
        wanted /= last.size;
        parts[p].insert(parts[p].begin(), last);
        left.pop_back();
      } else if (last.size % wanted == 0) {
        parts[p].insert(parts[p].begin(), {wanted, last.stride});
        last = {last.size / wanted, last.stride * wanted};
        wanted = 1;
      } else {
        return std::nullopt;
      }
    }
    if (parts[p].empty()) parts[p].push_back({1, 1});
  }
  return parts;
}

}  // namespace

struct DeviceMesh::Body {
  std::vector<MeshDim> dims;
  std::int64_t size = 1;
  std::int64_t first = 0;        // position of the origin
  std::vector<RankModes> modes;  // per dim
  // Positions are places in it; null: they are ranks.
  std::shared_ptr<const RankTable> table;
  std::size_t hash = 0;

  std::int64_t rank_of_position(std::int64_t position) const {
    return table ? table->rank(position) : position;
  }
  RankModes all_modes() const {
    RankModes all;
    for (const RankModes& of_dim : modes) {
      for (const RankMode& mode : of_dim) all.push_back(mode);
    }
    return all;
  }
  RankGroup ranks() const { return {first, all_modes(), table}; }

  void seal() {
    size = 1;
    for (const MeshDim& dim : dims) size *= dim.size;
    hash = 0;
    for (const MeshDim& dim : dims) {
      hash = hash_combine(hash, dim.name);
      hash = hash_combine(hash, dim.size);
    }
    // Equal meshes may be held differently, so only the ends are hashed.
    const RankGroup all = ranks();
    hash = hash_combine(hash, all.rank(0));
    hash = hash_combine(hash, all.rank(size - 1));
  }
};

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
  // Some more than fit, so that create() can say how many there are.
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
    return fail(ErrorCode::kMeshRanks, std::to_string(ranks.size()) +
                                           " ranks are given for a mesh of " +
                                           std::to_string(plain.size()));
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

  // Strided if one stride a dim, read off the axes, explains every rank.
  auto body = std::make_shared<Body>(*plain.body_);
  body->first = ranks[0];
  std::int64_t step = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    const std::int64_t stride =
        dims[i].size > 1 ? ranks[static_cast<std::size_t>(step)] - ranks[0] : 1;
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
  return body_->dims[static_cast<std::size_t>(dim)].size;
}
const std::string& DeviceMesh::name(int dim) const {
  return body_->dims[static_cast<std::size_t>(dim)].name;
}
const std::vector<MeshDim>& DeviceMesh::dims() const { return body_->dims; }
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
    for (const RankMode& mode : body_->modes[static_cast<std::size_t>(dim)]) {
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

Result<DeviceMesh> DeviceMesh::slice(
    std::span<const std::string_view> names,
    const std::optional<Coordinate>& at) const {
  if (names.empty()) {
    return fail(ErrorCode::kMeshReshape, "a slice names no mesh dim");
  }
  Coordinate origin = at.value_or(Coordinate(body_->dims.size()));
  if (origin.size() != body_->dims.size()) {
    return fail(ErrorCode::kMeshCoordinate,
                "a coordinate of " + std::to_string(origin.size()) +
                    " entries does not fit " + to_string(*this));
  }
  for (std::size_t i = 0; i < origin.size(); ++i) {
    if (origin[i] < 0 || origin[i] >= body_->dims[i].size) {
      return fail(ErrorCode::kMeshCoordinate,
                  "index " + std::to_string(origin[i]) + " lies outside dim `" +
                      body_->dims[i].name + "` of " + to_string(*this));
    }
  }
  auto body = std::make_shared<Body>();
  body->table = body_->table;
  body->first = body_->first;
  for (const std::string_view name : names) {
    SP_ASSIGN(const int dim, dim_index(name));
    body->dims.push_back(body_->dims[static_cast<std::size_t>(dim)]);
    body->modes.push_back(body_->modes[static_cast<std::size_t>(dim)]);
    origin[static_cast<std::size_t>(dim)] = 0;
  }
  SP_CHECK(check_dims(body->dims));
  for (std::size_t i = 0; i < origin.size(); ++i) {
    body->first += mode_offset(body_->modes[i], origin[i]);
  }
  body->seal();
  return DeviceMesh(std::move(body));
}

Result<DeviceMesh> DeviceMesh::submesh(std::string_view dim,
                                       std::int64_t index) const {
  SP_ASSIGN(const int fixed, dim_index(dim));
  if (ndim() == 1) {
    return fail(ErrorCode::kMeshReshape,
                "fixing `" + std::string(dim) + "` would leave no mesh dim");
  }
  std::vector<std::string_view> kept;
  Coordinate at(body_->dims.size());
  for (int i = 0; i < ndim(); ++i) {
    if (i != fixed) kept.push_back(name(i));
  }
  at[static_cast<std::size_t>(fixed)] = index;
  return slice(kept, at);
}

Result<DeviceMesh> DeviceMesh::flatten(std::span<const std::int32_t> dims,
                                       std::string name) const {
  std::vector<bool> merged(body_->dims.size(), false);
  for (const std::int32_t dim : dims) {
    if (dim < 0 || dim >= ndim() || merged[static_cast<std::size_t>(dim)]) {
      return fail(
          ErrorCode::kMeshReshape,
          "mesh dim " + std::to_string(dim) + " is out of range or named twice",
          "name distinct dims of " + to_string(*this));
    }
    merged[static_cast<std::size_t>(dim)] = true;
  }
  if (dims.empty()) {
    return fail(ErrorCode::kMeshReshape, "flatten names no mesh dim");
  }
  MeshDim whole{std::move(name), 1};
  RankModes whole_modes;
  for (const std::int32_t dim : dims) {
    const auto d = static_cast<std::size_t>(dim);
    whole.size *= body_->dims[d].size;
    for (const RankMode& mode : body_->modes[d]) whole_modes.push_back(mode);
  }
  auto body = std::make_shared<Body>();
  body->first = body_->first;
  body->table = body_->table;
  const auto place =
      static_cast<std::size_t>(*std::min_element(dims.begin(), dims.end()));
  for (std::size_t i = 0; i < merged.size(); ++i) {
    if (i == place) {
      body->dims.push_back(whole);
      body->modes.push_back(whole_modes);
    } else if (!merged[i]) {
      body->dims.push_back(body_->dims[i]);
      body->modes.push_back(body_->modes[i]);
    }
  }
  SP_CHECK(check_dims(body->dims));
  body->seal();
  return DeviceMesh(std::move(body));
}

Result<DeviceMesh> DeviceMesh::unflatten(int dim,
                                         std::span<const MeshDim> into) const {
  if (dim < 0 || dim >= ndim()) {
    return fail(ErrorCode::kMeshReshape,
                "mesh dim " + std::to_string(dim) + " is out of range");
  }
  SP_CHECK(check_dims(into));
  std::int64_t product = 1;
  for (const MeshDim& part : into) product *= part.size;
  if (product != size(dim)) {
    return fail(ErrorCode::kMeshReshape,
                "sizes that multiply to " + std::to_string(product) +
                    " do not split mesh dim `" + name(dim) + "` of " +
                    std::to_string(size(dim)));
  }
  std::vector<MeshDim> dims = body_->dims;
  dims.erase(dims.begin() + dim);
  dims.insert(dims.begin() + dim, into.begin(), into.end());
  SP_CHECK(check_dims(dims));
  auto parts = split_modes(body_->modes[static_cast<std::size_t>(dim)], into);
  // Cut across the seams of what the dim was flattened from: the ranks keep
  // their order but have no strides any more.
  if (!parts) return from_ranks(dims, body_->ranks().ranks());
  auto body = std::make_shared<Body>();
  body->first = body_->first;
  body->table = body_->table;
  body->dims = std::move(dims);
  body->modes = body_->modes;
  body->modes.erase(body->modes.begin() + dim);
  body->modes.insert(body->modes.begin() + dim, parts->begin(), parts->end());
  body->seal();
  return DeviceMesh(std::move(body));
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
