#include "solver/eliminate/front.h"

#include "base/index.h"
#include "base/parallel.h"
#include "solver/model/rng.h"
#include "solver/presolve/min_plus.h"
#include "solver/tuning.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace shardprop::solver {
namespace {

constexpr int kKeyBits = 64;
constexpr int kMostBits = 16;  // of a field
// The low bits of a key's digest that select its part; the higher bits select
// the slot in the part's table.
constexpr int kPartBits = 24;

}  // namespace

// Meeting is a variable that is met, as each entry sees it.
template <class Cost>
struct Front<Cost>::Meeting {
  struct Side {
    Field field;
    const Cost* costs;
  };
  const Field& mine;
  const std::vector<Cost>& costs;
  std::vector<Side> sides;

  std::size_t choices() const { return costs.size(); }
  // Computes the cost of each choice in addition to the entry's cost.
  void add(std::uint64_t key, Cost* sum) const {
    const std::size_t k = choices();
    std::copy(costs.begin(), costs.end(), sum);
    for (const Side& side : sides) {
      const Cost* row =
          side.costs + (key >> side.field.shift & side.field.mask) * k;
      for (std::size_t c = 0; c < k; ++c) {
        sum[c] = std::min<Cost>(sum[c] + row[c], kMostCost);
      }
    }
  }
};

// Groups are the entries of a part that differ only in one field.
template <class Cost>
struct Front<Cost>::Groups {
  // The group of each entry, numbered in order of appearance.
  std::vector<std::uint32_t> group;
  std::uint32_t count = 0;

  void find(const Entry* entries, std::size_t n, std::uint64_t kept) {
    const std::size_t size = std::bit_ceil(2 * n + 1);
    first_.clear();
    slots_.assign(size, kNone);
    group.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t key = entries[i].key & kept;
      std::size_t at = mixed(key) >> kPartBits & (size - 1);
      while (slots_[at] != kNone && first_[slots_[at]] != key) {
        at = (at + 1) & (size - 1);
      }
      if (slots_[at] == kNone) {
        slots_[at] = static_cast<std::uint32_t>(first_.size());
        first_.push_back(key);
      }
      group[i] = slots_[at];
    }
    count = static_cast<std::uint32_t>(first_.size());
  }

 private:
  static constexpr std::uint32_t kNone =
      std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint64_t> first_;  // keys of the groups
  std::vector<std::uint32_t> slots_;
};

template <class Cost>
Front<Cost>::Front(Cost limit, std::size_t most_entries, int threads,
                   std::function<bool()> stop)
    : limit_(limit),
      most_entries_(most_entries),
      threads_(index(std::max(1, threads))),
      stop_(std::move(stop)) {}

template <class Cost>
const typename Front<Cost>::Field& Front<Cost>::field(int variable) const {
  return *std::find_if(fields_.begin(), fields_.end(),
                       [&](const Field& f) { return f.variable == variable; });
}

template <class Cost>
std::optional<typename Front<Cost>::Field> Front<Cost>::free_field(
    int variable, std::size_t choices) const {
  const int bits = std::max(1, static_cast<int>(std::bit_width(choices - 1)));
  if (bits > kMostBits) return std::nullopt;
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  std::uint64_t used = 0;
  for (const Field& f : fields_) used |= f.mask << f.shift;
  for (int shift = 0; shift + bits <= kKeyBits; ++shift) {
    if ((used & (mask << shift)) == 0) return Field{variable, shift, mask};
  }
  return std::nullopt;
}

template <class Cost>
typename Front<Cost>::Meeting Front<Cost>::meeting(
    const Field& mine, const std::vector<Cost>& costs,
    const std::vector<Beside>& beside) const {
  Meeting out{mine, costs, {}};
  for (const Beside& b : beside) {
    out.sides.push_back({field(b.variable), b.costs.data()});
  }
  return out;
}

template <class Cost>
void Front<Cost>::cut(std::vector<Entry>& entries) {
  std::vector<Cost> costs;
  costs.reserve(entries.size());
  for (const Entry& e : entries) costs.push_back(e.cost);
  const auto half =
      costs.begin() + static_cast<std::ptrdiff_t>(most_entries_ / 2);
  std::nth_element(costs.begin(), half, costs.end());
  limit_ = *half;
  std::erase_if(entries, [&](const Entry& e) { return e.cost >= limit_; });
}

template <class Cost>
template <class Work>
bool Front<Cost>::gather(std::size_t parts, std::size_t part_entries,
                         std::size_t looks, const Work& work,
                         std::vector<Entry>& out) {
  work_ += looks;
  const std::size_t at_once = std::max<std::size_t>(
      1, most_entries_ / tuning::kHeldShareBetweenChecks / part_entries);
  for (std::size_t from = 0; from < parts; from += at_once) {
    if (stop_()) return false;
    const std::size_t count = std::min(at_once, parts - from);
    const std::size_t threads =
        looks / parts * count < tuning::kCostsForOneThread
            ? 1
            : std::min(threads_, count);
    std::vector<std::vector<Entry>> found(threads);
    parallel(threads, [&](std::size_t t) {
      work(from + count * t / threads, from + count * (t + 1) / threads,
           found[t]);
    });
    for (std::vector<Entry>& some : found) {
      if (out.empty()) {
        out = std::move(some);
      } else {
        out.insert(out.end(), some.begin(), some.end());
      }
    }
    if (out.size() > most_entries_) cut(out);
  }
  return true;
}

template <class Cost>
bool Front<Cost>::meet(int variable, const std::vector<Cost>& costs,
                       const std::vector<Beside>& beside) {
  const std::optional<Field> mine = free_field(variable, costs.size());
  if (!mine) return false;
  const Meeting met = meeting(*mine, costs, beside);
  const std::size_t k = costs.size();
  const auto extend = [&](std::size_t from, std::size_t to,
                          std::vector<Entry>& out) {
    std::vector<Cost> sum(k);
    std::vector<Entry> kept(k);
    for (std::size_t i = from; i < to; ++i) {
      const Entry& entry = entries_[i];
      const Cost room = limit_ - entry.cost;
      met.add(entry.key, sum.data());
      std::size_t n = 0;
      for (std::size_t c = 0; c < k; ++c) {
        kept[n] = {entry.key | std::uint64_t{c} << mine->shift,
                   entry.cost + sum[c], entry.origin};
        n += sum[c] < room ? 1 : 0;
      }
      out.insert(out.end(), kept.begin(),
                 kept.begin() + static_cast<std::ptrdiff_t>(n));
    }
  };
  std::vector<Entry> out;
  if (!entries_.empty() &&
      !gather(entries_.size(), k, entries_.size() * k, extend, out)) {
    return false;
  }
  entries_ = std::move(out);
  fields_.push_back(*mine);
  return true;
}

// The result is stable: the entries of a part stay in order.
template <class Cost>
typename Front<Cost>::Parts Front<Cost>::part(std::uint64_t kept) {
  const std::size_t parts = std::bit_ceil(
      (entries_.size() + tuning::kEntriesInPart - 1) / tuning::kEntriesInPart);
  const auto part_of = [&](const Entry& e) {
    return mixed(e.key & kept) & (parts - 1);
  };
  Parts out{std::vector<Entry>(entries_.size()),
            std::vector<std::size_t>(parts + 1, 0)};
  for (const Entry& e : entries_) ++out.begin[part_of(e) + 1];
  for (std::size_t p = 0; p < parts; ++p) out.begin[p + 1] += out.begin[p];
  std::vector<std::size_t> next(out.begin.begin(), out.begin.end() - 1);
  for (const Entry& e : entries_) out.entries[next[part_of(e)]++] = e;
  entries_ = {};
  return out;
}

template <class Cost>
bool Front<Cost>::eliminate(int variable) {
  const Field gone = field(variable);
  const std::uint64_t kept = ~(gone.mask << gone.shift);
  const Parts parts = part(kept);
  // Keeps the cheapest entry of each group; on a tie the first one.
  const auto cheapest = [&](std::size_t from, std::size_t to,
                            std::vector<Entry>& out) {
    Groups groups;
    for (std::size_t p = from; p < to; ++p) {
      const Entry* entries = parts.entries.data() + parts.begin[p];
      const std::size_t n = parts.begin[p + 1] - parts.begin[p];
      groups.find(entries, n, kept);
      const std::size_t before = out.size();
      out.resize(before + groups.count,
                 Entry{0, std::numeric_limits<Cost>::max(), 0});
      for (std::size_t i = 0; i < n; ++i) {
        Entry& best = out[before + groups.group[i]];
        if (entries[i].cost < best.cost) best = entries[i];
      }
    }
  };
  std::vector<Entry> out;
  if (!gather(parts.size(), tuning::kEntriesInPart,
              parts.entries.size() * tuning::kLookUpCosts, cheapest, out)) {
    return false;
  }
  leave(gone, std::move(out));
  return true;
}

// Exchange replaces one variable by another. It works on each group of entries
// that differ only in the variable that leaves.
template <class Cost>
class Front<Cost>::Exchange {
 public:
  Exchange(const Field& leaves, const Cost* tables, const Meeting& rest,
           Cost limit)
      : leaves_(leaves),
        tables_(tables),
        rest_(rest),
        limit_(limit),
        cost_(leaves.mask + 1),
        beside_(rest.choices()),
        least_(rest.choices()) {}

  void part(const Entry* entries, std::size_t n, std::vector<Entry>& out) {
    groups_.find(entries, n, ~(leaves_.mask << leaves_.shift));
    sort(n);
    std::size_t begin = 0;
    for (std::uint32_t g = 0; g < groups_.count; begin = end_[g++]) {
      group(entries, begin, end_[g], out);
    }
  }

 private:
  int choice(const Entry& entry) const {
    return static_cast<int>(entry.key >> leaves_.shift & leaves_.mask);
  }

  // Sorts by group; the entries of a group stay in order.
  void sort(std::size_t n) {
    end_.assign(groups_.count + 1, 0);
    for (const std::uint32_t g : groups_.group) ++end_[g + 1];
    for (std::uint32_t g = 0; g < groups_.count; ++g) end_[g + 1] += end_[g];
    sorted_.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      sorted_[end_[groups_.group[i]]++] = static_cast<std::uint32_t>(i);
    }
  }

  void group(const Entry* entries, std::size_t begin, std::size_t end,
             std::vector<Entry>& out) {
    choices_.clear();
    for (std::size_t i = begin; i < end; ++i) {
      const Entry& entry = entries[sorted_[i]];
      choices_.push_back(choice(entry));
      cost_[index(choices_.back())] = entry.cost;
    }
    rest_.add(entries[sorted_[begin]].key, beside_.data());
    const std::size_t k = rest_.choices();
    min_plus_of(cost_.data(), choices_.data(), static_cast<int>(end - begin),
                tables_, static_cast<int>(k), limit_, least_.data());
    for (std::size_t c = 0; c < k; ++c) {
      const Cost cost = least_[c] + beside_[c];
      if (cost >= limit_) continue;
      // Finds the first choice with this cost.
      std::size_t i = 0;
      while (cost_[index(choices_[i])] + tables_[index(choices_[i]) * k + c] >
             least_[c]) {
        ++i;
      }
      const Entry& from = entries[sorted_[begin + i]];
      out.push_back(
          {from.key | std::uint64_t{c} << rest_.mine.shift, cost, from.origin});
    }
  }

  const Field& leaves_;
  const Cost* tables_;   // rows: choices of the leaving variable
  const Meeting& rest_;  // the new variable, with all other neighbours
  Cost limit_;
  Groups groups_;
  std::vector<std::uint32_t> end_;     // end of each group
  std::vector<std::uint32_t> sorted_;  // entries by group
  std::vector<int> choices_;           // of the leaving variable, in a group
  std::vector<Cost> cost_;             // of a group's entry, by that choice
  std::vector<Cost> beside_;           // by choice of the new variable
  std::vector<Cost> least_;
};

template <class Cost>
bool Front<Cost>::exchange(int gone, int variable,
                           const std::vector<Cost>& costs,
                           const std::vector<Beside>& beside) {
  const std::optional<Field> mine = free_field(variable, costs.size());
  if (!mine) return false;
  const Field leaves = field(gone);
  Meeting rest = meeting(*mine, costs, beside);
  const auto its = std::find_if(
      rest.sides.begin(), rest.sides.end(),
      [&](const auto& side) { return side.field.variable == gone; });
  const Cost* const tables = its->costs;
  rest.sides.erase(its);
  const Parts parts = part(~(leaves.mask << leaves.shift));
  const auto exchanged = [&](std::size_t from, std::size_t to,
                             std::vector<Entry>& out) {
    Exchange exchange(leaves, tables, rest, limit_);
    for (std::size_t p = from; p < to; ++p) {
      exchange.part(parts.entries.data() + parts.begin[p],
                    parts.begin[p + 1] - parts.begin[p], out);
    }
  };
  std::vector<Entry> out;
  if (!gather(parts.size(), tuning::kEntriesInPart * costs.size(),
              parts.entries.size() * (tuning::kLookUpCosts + costs.size()),
              exchanged, out)) {
    return false;
  }
  leave(leaves, std::move(out));
  fields_.push_back(*mine);
  return true;
}

template <class Cost>
void Front<Cost>::leave(const Field& gone, std::vector<Entry> entries) {
  entries_ = std::move(entries);
  Trace trace{gone.variable, {}, {}};
  trace.origin.reserve(entries_.size());
  trace.choice.reserve(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& e = entries_[i];
    trace.origin.push_back(e.origin);
    trace.choice.push_back(
        static_cast<std::uint16_t>(e.key >> gone.shift & gone.mask));
    e.key &= ~(gone.mask << gone.shift);
    e.origin = static_cast<std::uint32_t>(i);
  }
  traced_ += entries_.size();
  traces_.push_back(std::move(trace));
  if (traced_ > tuning::kMostTracedEntries) traces_.clear();
  std::erase_if(fields_,
                [&](const Field& f) { return f.variable == gone.variable; });
}

template <class Cost>
std::vector<std::pair<int, int>> Front<Cost>::choices() const {
  std::vector<std::pair<int, int>> out;
  if (traced_ > tuning::kMostTracedEntries) return out;
  std::size_t at = 0;
  for (std::size_t t = traces_.size(); t-- > 0;) {
    out.emplace_back(traces_[t].variable, traces_[t].choice[at]);
    at = traces_[t].origin[at];
  }
  return out;
}

template class Front<std::int32_t>;
template class Front<double>;

}  // namespace shardprop::solver
