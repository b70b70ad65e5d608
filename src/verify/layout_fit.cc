#include "verify/layout_fit.h"

#include "base/index.h"
#include "execute/region_elements.h"
#include "reference/elements.h"
#include "verify/host_values.h"

#include <shardprop/placement/local_region.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace shardprop::verification {
namespace {

using Element = std::complex<double>;

// A multiple is searched for only if it is at least this far from 1 and 0,
// relative.
constexpr double kLeastFactor = 1e-3;

// One of two ranks holds all maxima of this many elements by chance with
// probability 2^-15.
constexpr std::size_t kFewElements = 16;

RankValues::Elements elements(const LocalTensor& tensor) {
  const reference::Tensor held = as_reference(tensor);
  RankValues::Elements out;
  switch (reference::domain_of(tensor.dtype())) {
    case reference::Domain::kComplex:
      return reference::values<reference::Complex>(held);
    case reference::Domain::kReal:
      for (const double x : reference::values<double>(held)) {
        out.emplace_back(x);
      }
      return out;
    case reference::Domain::kInteger:
      for (const std::int64_t x : reference::values<std::int64_t>(held)) {
        out.emplace_back(static_cast<double>(x));
      }
  }
  return out;
}

double scale_of(const RankValues::Elements& elements, double scale) {
  for (const Element x : elements) {
    const double size = std::abs(x);
    if (size < kLargestScale) scale = std::max(scale, size);
  }
  return scale;
}

Element joined(ReduceOp op, Element a, Element b) {
  switch (op) {
    case ReduceOp::kProduct:
      return a * b;
    case ReduceOp::kMin:
    case ReduceOp::kBand:
      return b.real() < a.real() ? b : a;
    case ReduceOp::kMax:
    case ReduceOp::kBor:
      return b.real() > a.real() ? b : a;
    default:
      return a + b;
  }
}

DimIndices partial_dims(const Layout& layout, const DeviceMesh& mesh) {
  DimIndices out;
  for (int d = 0; d < layout.mesh_ndim(); ++d) {
    if (layout[d].is_partial() && mesh.size(d) > 1) out.push_back(d);
  }
  return out;
}

}  // namespace

double apart(std::complex<double> a, std::complex<double> b) {
  if (a == b || (a != a && b != b)) return 0;
  const double distance = std::abs(a - b);
  return std::isnan(distance) ? INFINITY : distance;
}

RankValues::RankValues(const DeviceMesh& mesh,
                       const std::vector<LocalTensor>& held,
                       const LocalTensor& whole, const Bound& bound)
    : mesh_(mesh), whole_sizes_(whole.sizes()), whole_(elements(whole)) {
  is_exact_ =
      reference::domain_of(whole.dtype()) == reference::Domain::kInteger;
  tolerance_ = is_exact_ ? 0 : bound.tolerance;
  scale_ = scale_of(whole_, is_exact_ ? 1 : bound.least_scale);
  for (const LocalTensor& tensor : held) {
    sizes_.push_back(tensor.sizes());
    held_.push_back(elements(tensor));
    scale_ = scale_of(held_.back(), scale_);
  }
}

double RankValues::bound(double factor) const {
  return tolerance_ * scale_ * std::max(1.0, std::abs(factor));
}

bool RankValues::has_sizes_of(const Layout& layout) const {
  for (std::int64_t i = 0; i < mesh_.size(); ++i) {
    const Dims sizes =
        local_shape(layout, mesh_, whole_sizes_, mesh_.coordinate_at_index(i));
    if (sizes != sizes_[index(i)]) return false;
  }
  return true;
}

RankValues::Elements RankValues::part(const Layout& layout,
                                      std::int64_t at) const {
  Elements out;
  const LocalRegion region =
      local_region(layout, mesh_, whole_sizes_, mesh_.coordinate_at_index(at));
  for (const std::int64_t e : execute::elements_of(region, whole_sizes_)) {
    out.push_back(whole_[index(e)]);
  }
  return out;
}

// Returns the values of each rank, with terms reduced over the group.
RankValues::Combined RankValues::combined(const Layout& layout) const {
  const DimIndices dims = partial_dims(layout, mesh_);
  // Without terms nothing is copied: many layouts are tried.
  if (dims.empty()) return {&held_, nullptr};
  auto reduced = std::make_shared<std::vector<Elements>>(held_.size());
  std::vector<Elements>& out = *reduced;
  for (std::int64_t i = 0; i < mesh_.size(); ++i) {
    const RankGroup group = mesh_.group(std::span(dims.data(), dims.size()),
                                        mesh_.coordinate_at_index(i));
    const std::int64_t first = *mesh_.index_of(group.rank(0));
    Elements& total = out[index(i)];
    if (first != i) {
      total = out[index(first)];
      continue;
    }
    total = held_[index(i)];
    const ReduceOp op = layout[dims[0]].reduce_op();
    for (std::int64_t r = 1; r < group.size(); ++r) {
      const Elements& term = held_[index(*mesh_.index_of(group.rank(r)))];
      for (std::size_t e = 0; e < total.size() && e < term.size(); ++e) {
        total[e] = joined(op, total[e], term[e]);
      }
    }
    double terms = 1;
    for (const std::int32_t d : dims) {
      const bool is_mean = layout[d].reduce_op() == ReduceOp::kAvg;
      terms *= is_mean ? static_cast<double>(mesh_.size(d)) : 1;
    }
    for (Element& x : total) x /= terms;
  }
  return {reduced.get(), reduced};
}

bool RankValues::agrees(const Layout& layout, double factor) const {
  if (!has_sizes_of(layout)) return false;
  const Combined terms = combined(layout);
  const std::vector<Elements>& found = *terms.values;
  const double most = bound(factor);
  for (std::int64_t i = 0; i < mesh_.size(); ++i) {
    const Elements wanted = part(layout, i);
    for (std::size_t e = 0; e < wanted.size(); ++e) {
      if (!(apart(found[index(i)][e], factor * wanted[e]) <= most)) {
        return false;
      }
    }
  }
  return true;
}

LayoutFit RankValues::in(const Layout& layout, double factor) const {
  LayoutFit out{layout, factor, {}, mesh_.rank_at_index(0)};
  const Combined terms = combined(layout);
  const std::vector<Elements>& found = *terms.values;
  const double most = bound(factor);
  for (std::int64_t i = 0; i < mesh_.size(); ++i) {
    const LocalRegion region =
        local_region(layout, mesh_, whole_sizes_, mesh_.coordinate_at_index(i));
    const auto places = execute::elements_of(region, whole_sizes_);
    for (std::size_t e = 0; e < places.size(); ++e) {
      const Element wanted = factor * whole_[index(places[e])];
      const Element own = found[index(i)][e];
      const double distance = apart(own, wanted);
      if (distance == 0) continue;
      out.difference.error = std::max(out.difference.error, distance / scale_);
      if (out.difference.beyond || distance <= most) continue;
      out.rank = mesh_.rank_at_index(i);
      out.difference.beyond = true;
      out.difference.element = places[e];
      out.difference.expected = wanted.real();
      out.difference.found = own.real();
    }
  }
  return out;
}

// Returns whether the ranks along a mesh dim hold the same.
bool RankValues::agree(int mesh_dim) const {
  const std::int32_t dims[] = {mesh_dim};
  for (std::int64_t i = 0; i < mesh_.size(); ++i) {
    const RankGroup group = mesh_.group(dims, mesh_.coordinate_at_index(i));
    const std::size_t first = index(*mesh_.index_of(group.rank(0)));
    if (sizes_[first] != sizes_[index(i)]) return false;
    for (std::size_t e = 0; e < held_[first].size(); ++e) {
      if (!(apart(held_[first][e], held_[index(i)][e]) <= bound(1))) {
        return false;
      }
    }
  }
  return true;
}

std::vector<Layout> RankValues::candidates(bool strided, TermOps ops) const {
  LayoutChoices choices;
  choices.ops = ops;
  choices.strided = strided;
  for (std::size_t d = 0; d < whole_sizes_.size(); ++d) {
    const bool is_smaller =
        std::any_of(sizes_.begin(), sizes_.end(), [&](const Dims& sizes) {
          return sizes.size() == whole_sizes_.size() &&
                 sizes[d] != whole_sizes_[d];
        });
    if (is_smaller) choices.sharded_dims.push_back(static_cast<int>(d));
  }
  for (int d = 0; d < mesh_.ndim(); ++d) {
    // Terms may be equal, such as counts of the same number of rows.
    choices.may_be_partial.push_back(ops == TermOps::kAll || !agree(d));
  }
  std::vector<Layout> out = layout_candidates(mesh_, whole_sizes_, choices);
  std::erase_if(out, [&](const Layout& layout) {
    return !has_sizes_of(layout) || (strided && !layout.has_strided());
  });
  return out;
}

// Returns whether no rank alone is right. A wrong rank beside a right one may
// leave the maximum of both right. Bools are often alike on one rank.
bool RankValues::every_rank_counts(const Layout& layout) const {
  const DimIndices dims = partial_dims(layout, mesh_);
  if (dims.empty() || is_exact_) return true;
  const ReduceOp op = layout[dims[0]].reduce_op();
  if (op == ReduceOp::kSum || op == ReduceOp::kAvg) return true;
  for (std::int64_t i = 0; i < mesh_.size(); ++i) {
    const Elements wanted = part(layout, i);
    const bool is_right = std::equal(
        wanted.begin(), wanted.end(), held_[index(i)].begin(),
        [&](Element a, Element b) { return apart(a, b) <= bound(1); });
    if (is_right && wanted.size() > kFewElements) return false;
  }
  return true;
}

std::optional<LayoutFit> RankValues::fit(TermOps ops) const {
  for (const bool strided : {false, true}) {
    for (const Layout& layout : candidates(strided, ops)) {
      if (agrees(layout, 1) && every_rank_counts(layout)) return in(layout);
    }
  }
  return std::nullopt;
}

// Returns the factor of least squares.
double RankValues::best_factor(const Layout& layout) const {
  const Combined terms = combined(layout);
  const std::vector<Elements>& found = *terms.values;
  double above = 0;
  double below = 0;
  for (std::int64_t i = 0; i < mesh_.size(); ++i) {
    const Elements wanted = part(layout, i);
    for (std::size_t e = 0; e < wanted.size(); ++e) {
      above += (found[index(i)][e] * std::conj(wanted[e])).real();
      below += std::norm(wanted[e]);
    }
  }
  return below > 0 ? above / below : 1;
}

std::optional<LayoutFit> RankValues::multiple() const {
  for (const Layout& layout : candidates(false)) {
    const double factor = best_factor(layout);
    const bool is_factor = std::isfinite(factor) &&
                           std::abs(factor) > kLeastFactor &&
                           std::abs(factor - 1) > kLeastFactor;
    if (is_factor && agrees(layout, factor)) return in(layout, factor);
  }
  return std::nullopt;
}

std::optional<LayoutFit> RankValues::nearest() const {
  std::optional<LayoutFit> best;
  const std::vector<Layout> layouts = candidates(false);
  // A wrong value is nearer to some layout with terms by chance.
  const bool needs_terms =
      std::all_of(layouts.begin(), layouts.end(),
                  [](const Layout& layout) { return layout.has_partial(); });
  for (const Layout& layout : layouts) {
    if (layout.has_partial() && !needs_terms) continue;
    LayoutFit next = in(layout);
    if (!best || next.difference.error < best->difference.error) {
      best = std::move(next);
    }
  }
  return best;
}

std::string ratio_text(double value) {
  for (int below = 1; below <= 64; ++below) {
    const double above = value * below;
    if (std::abs(above - std::round(above)) > 1e-6 * below ||
        std::round(above) == 0) {
      continue;
    }
    const auto whole = static_cast<std::int64_t>(std::round(above));
    return std::to_string(whole) +
           (below == 1 ? "" : "/" + std::to_string(below));
  }
  return std::to_string(value);
}

std::string words(const Layout& layout, const DeviceMesh& mesh) {
  std::vector<std::string> parts;
  for (int d = 0; d < layout.mesh_ndim(); ++d) {
    if (mesh.size(d) == 1) continue;
    const Placement placement = layout[d];
    const std::string over =
        " over " + mesh.name(d) + "=" + std::to_string(mesh.size(d));
    if (placement.is_shard()) {
      parts.push_back("its shard of dim " + std::to_string(placement.dim()) +
                      over);
    } else if (placement.is_partial()) {
      const std::string op(to_string(placement.reduce_op()));
      parts.push_back("a term of a " + op + over);
    }
  }
  if (parts.empty()) return "each rank holds the full tensor";
  std::string out = "each rank holds ";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    out += (i == 0 ? "" : " and ") + parts[i];
  }
  return out;
}

}  // namespace shardprop::verification
