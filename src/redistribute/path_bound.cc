#include "redistribute/path_bound.h"

#include "base/index.h"
#include "base/saturating.h"

#include <algorithm>
#include <cmath>

namespace shardprop::redistribute {

PathBound::PathBound(const SearchProblem& problem, const State& target)
    : problem_(problem),
      target_(target),
      bounded_(!problem.alphabet.has_strided() && problem.meta.numel() > 0) {
  if (!bounded_) return;
  const GroupTimes& times = problem.times;
  const int count = problem.active.count;
  for (Mask set = 1; set <= times.all(); ++set) {
    cover_[set] = kUnreached;
    const Mask first = set & (~set + 1);
    for (Mask group = 1; group <= times.all(); ++group) {
      if ((group & first) == 0) continue;
      const Label least = label_of(times.least_nanoseconds(group), 1);
      cover_[set] = std::min(cover_[set], cover_[set & ~group] + least);
    }
  }
  if (count == 0) return;
  const bool reduces =
      problem.alphabet.first_partial() < problem.alphabet.size();
  const auto item = static_cast<double>(item_size(problem.meta.dtype()));
  const CutList cuts = cuts_of(target);
  const auto probe = [&](Mask outer) {
    const double cost = item * times.least_per_byte(outer, reduces);
    for (const Mask last : {Mask{0x55555555}, Mask{0xaaaaaaaa}}) {
      Probe& made = probes_[probe_count_++];
      made = {outer, last, cost, {}};
      wanted_by(cuts, made);
      for (const Interval& want : made.wanted) {
        made.needed *= static_cast<double>(want.size());
      }
    }
  };
  probe(times.all());
  if (times.crossing() != 0 && times.crossing() != times.all()) {
    probe(times.crossing());
  }
}

Label PathBound::latencies(const State& state) const {
  return covering(unsettled(state));
}

Mask PathBound::unsettled(const State& state) const {
  const int count = problem_.active.count;
  Mask open = 0;
  for (int i = 0; i < count; ++i) {
    if (state.symbol[i] == 0) continue;
    const Alphabet& alphabet = problem_.alphabet;
    // Sums and averages convert into one another without a collective.
    const bool settled = alphabet[state.symbol[i]].partial
                             ? alphabet[target_.symbol[i]].partial
                             : state.symbol[i] == target_.symbol[i] &&
                                   state.order[i] == target_.order[i];
    if (!settled) open |= Mask{1} << i;
  }
  if (open == 0) return 0;
  Mask behind = 0;
  for (int i = 0; i < count; ++i) {
    const std::int16_t dim = problem_.alphabet[state.symbol[i]].dim;
    if ((open >> i & 1U) == 0 || dim < 0) continue;
    for (int j = 0; j < count; ++j) {
      if (problem_.alphabet[state.symbol[j]].dim == dim &&
          state.order[j] > state.order[i]) {
        behind |= Mask{1} << j;
      }
    }
  }
  return open | behind;
}

Label PathBound::operator()(const State& state) const {
  if (!bounded_) return 0;
  Mask terms = 0;  // mesh dims with partials that must be reduced
  for (int i = 0; i < problem_.active.count; ++i) {
    if (problem_.alphabet[state.symbol[i]].partial &&
        !problem_.alphabet[target_.symbol[i]].partial) {
      terms |= Mask{1} << i;
    }
  }
  const CutList cuts = cuts_of(state);
  double most = 0;
  for (std::size_t p = 0; p < probe_count_; ++p) {
    const Probe& probe = probes_[p];
    const double kept = (terms & probe.outer) != 0 ? 0 : kept_by(cuts, probe);
    most = std::max(most, (probe.needed - kept) * probe.per_element);
  }
  // The bound is rounded down by more than the rounding of times can add.
  const double least = most * (1 - 1e-9) - 64;
  const Label bytes =
      least > 0 ? label_of(whole_nanoseconds(std::floor(least),
                                             kMostTransferNanoseconds),
                           0)
                : 0;
  return latencies(state) + bytes;
}

PathBound::CutList PathBound::cuts_of(const State& state) const {
  CutList cuts;
  const int count = problem_.active.count;
  for (int place = 0; place < count; ++place) {
    for (int i = 0; i < count; ++i) {
      const std::int16_t dim = problem_.alphabet[state.symbol[i]].dim;
      if (dim < 0 || state.order[i] != place) continue;
      const auto at = index(cuts.count++);
      cuts.mesh_dim[at] = static_cast<std::int8_t>(i);
      cuts.dim[at] = dim;
    }
  }
  return cuts;
}

Interval PathBound::part_of(Interval whole, int mesh_dim,
                            const Probe& probe) const {
  const std::int64_t parts = problem_.active.sizes[index(mesh_dim)];
  const bool last = (probe.last >> mesh_dim & 1U) != 0;
  const Interval part = chunk(whole.size(), parts, last ? parts - 1 : 0);
  return {whole.begin + part.begin, whole.begin + part.end};
}

void PathBound::wanted_by(const CutList& cuts, Probe& probe) const {
  for (const std::int64_t size : problem_.meta.shape()) {
    probe.wanted.push_back({0, size});
  }
  for (int k = 0; k < cuts.count; ++k) {
    const auto at = index(k);
    bool outer = (probe.outer >> cuts.mesh_dim[at] & 1U) != 0;
    // The union over the cell undoes an inner cut. An inner cut before an outer
    // one would leave holes in the union, so it counts as the part of one rank.
    for (int later = k + 1; later < cuts.count; ++later) {
      const auto behind = index(later);
      outer = outer || (cuts.dim[behind] == cuts.dim[at] &&
                        (probe.outer >> cuts.mesh_dim[behind] & 1U) != 0);
    }
    if (!outer) continue;
    Interval& want = probe.wanted[index(cuts.dim[at])];
    want = part_of(want, cuts.mesh_dim[at], probe);
  }
}

double PathBound::kept_by(const CutList& cuts, const Probe& probe) const {
  InlineVector<Interval, 6> held;
  for (const std::int64_t size : problem_.meta.shape()) {
    held.push_back({0, size});
  }
  std::uint64_t blurred = 0;  // dims whose union may have holes after this cut
  for (int k = 0; k < cuts.count; ++k) {
    const auto at = index(k);
    const std::uint64_t dim = std::uint64_t{1} << cuts.dim[at];
    if ((probe.outer >> cuts.mesh_dim[at] & 1U) == 0) {
      blurred |= dim;
    } else if ((blurred & dim) == 0) {
      Interval& have = held[index(cuts.dim[at])];
      have = part_of(have, cuts.mesh_dim[at], probe);
    }
  }
  double kept = 1;
  for (std::size_t d = 0; d < held.size(); ++d) {
    const Interval& want = probe.wanted[d];
    kept *= static_cast<double>(std::max(
        std::int64_t{0},
        std::min(want.end, held[d].end) - std::max(want.begin, held[d].begin)));
  }
  return kept;
}

}  // namespace shardprop::redistribute
