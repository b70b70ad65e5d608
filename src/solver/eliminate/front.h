// A table over the front (front_order.h) that holds only what can still be part
// of something cheap: for each combination of the front's choices the least
// cost of what has been eliminated, where that and the bound on the rest
// (shifted_costs.h) stay below a limit.
//
// Where that is more than the front may hold, the limit comes down: what is
// found below it then is all there is below it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace shardprop::solver {

// Cost: std::int32_t, or a double that holds an integer.
template <class Cost>
class Front {
 public:
  // Costs of a variable that is met now beside the choices of one that is in
  // the front, rows: choices of the latter.
  struct Beside {
    int variable = 0;
    std::vector<Cost> costs;
  };
  // No cost is below 0; whoever adds them clips them at kMostCost.
  static constexpr Cost kMostCost =
      static_cast<Cost>(std::is_integral_v<Cost> ? 0x1p29 : 0x1p51);

  // 0 < limit <= kMostCost.
  Front(Cost limit, std::size_t most_entries, int threads,
        std::function<bool()> stop);

  // False when it was stopped, or when the front's choices no longer fit into a
  // key; nothing it says means anything then.
  bool meet(int variable, const std::vector<Cost>& costs,
            const std::vector<Beside>& beside);
  bool eliminate(int variable);
  // The same in one step, without a table over both: `gone` is one of those
  // beside.
  bool exchange(int gone, int variable, const std::vector<Cost>& costs,
                const std::vector<Beside>& beside);

  // Nothing is left below the limit.
  bool is_empty() const { return entries_.empty(); }
  Cost limit() const { return limit_; }
  // Once all are eliminated: the least cost, and which choice each variable has
  // there, in the order of elimination, last first. No choices where too much
  // has been held to keep them in mind.
  Cost least() const { return entries_.front().cost; }
  std::vector<std::pair<int, int>> choices() const;
  // Entries touched so far.
  std::uint64_t work() const { return work_; }

 private:
  struct Entry {
    std::uint64_t key = 0;  // choices of the front, a field each
    Cost cost = 0;
    std::uint32_t origin = 0;  // entry after the last elimination
  };
  struct Field {
    int variable = 0;
    int shift = 0;
    std::uint64_t mask = 0;  // unshifted
  };
  // How each entry after an elimination came about.
  struct Trace {
    int variable = 0;
    std::vector<std::uint32_t> origin;
    std::vector<std::uint16_t> choice;
  };

  // The entries, those together that are the same without a field.
  struct Parts {
    std::vector<Entry> entries;
    std::vector<std::size_t> begin;  // of each part, and the end
    std::size_t size() const { return begin.size() - 1; }
  };
  class Exchange;
  struct Groups;
  struct Meeting;

  const Field& field(int variable) const;
  std::optional<Field> free_field(int variable, std::size_t choices) const;
  Meeting meeting(const Field& mine, const std::vector<Cost>& costs,
                  const std::vector<Beside>& beside) const;
  Parts part(std::uint64_t kept);
  // Appends what each part becomes, in order; the limit comes down where that
  // is too much. `part_entries`: at most so many of a part.
  template <class Work>
  bool gather(std::size_t parts, std::size_t part_entries, std::size_t looks,
              const Work& work, std::vector<Entry>& out);
  // Lowers the limit until half of what may be held is left.
  void cut(std::vector<Entry>& entries);
  // `entries` are what is left without a variable, its field still in them.
  void leave(const Field& gone, std::vector<Entry> entries);

  Cost limit_;
  std::size_t most_entries_;
  std::size_t threads_;
  std::function<bool()> stop_;
  std::vector<Field> fields_;
  std::vector<Entry> entries_{Entry{}};
  std::vector<Trace> traces_;
  std::size_t traced_ = 0;  // entries, those of traces that are gone included
  std::uint64_t work_ = 0;
};

}  // namespace shardprop::solver
