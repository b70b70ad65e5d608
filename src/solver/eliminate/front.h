// Front is a table over the front (front_order.h) that holds only entries that
// can be part of a cheap assignment. For each combination of the front's
// choices, it stores the least cost of the eliminated part. It drops an entry
// if this cost plus the bound on the rest (shifted_costs.h) is not below a
// limit.
//
// If there are more entries than the front may hold, the limit falls. The
// result then covers all assignments below the new limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace shardprop::solver {

// Cost is std::int32_t, or a double that holds an integer.
template <class Cost>
class Front {
 public:
  // The costs of a newly met variable together with a variable in the front;
  // rows are the choices of the latter.
  struct Beside {
    int variable = 0;
    std::vector<Cost> costs;
  };
  // Costs must be at least 0, and the caller clips them at kMostCost.
  static constexpr Cost kMostCost =
      static_cast<Cost>(std::is_integral_v<Cost> ? 0x1p29 : 0x1p51);

  // Precondition: 0 < limit <= kMostCost.
  Front(Cost limit, std::size_t most_entries, int threads,
        std::function<bool()> stop);

  // Returns false if it was stopped, or if the front's choices no longer fit
  // into a key. The front is then invalid.
  bool meet(int variable, const std::vector<Cost>& costs,
            const std::vector<Beside>& beside);
  bool eliminate(int variable);
  // Does both in one step, without a table over both variables. `gone` must be
  // among the variables of `beside`.
  bool exchange(int gone, int variable, const std::vector<Cost>& costs,
                const std::vector<Beside>& beside);

  // Returns whether no entry is below the limit.
  bool is_empty() const { return entries_.empty(); }
  Cost limit() const { return limit_; }
  // Precondition of both: all variables are eliminated. The first function
  // returns the least cost. The second returns the choice of each variable in
  // that assignment, in reverse order of elimination. It returns an empty list
  // if too many entries were held to keep their origins.
  Cost least() const { return entries_.front().cost; }
  std::vector<std::pair<int, int>> choices() const;
  // Returns the entries touched so far.
  std::uint64_t work() const { return work_; }

 private:
  struct Entry {
    std::uint64_t key = 0;  // choices of the front, one field each
    Cost cost = 0;
    std::uint32_t origin = 0;  // entry after the last elimination
  };
  struct Field {
    int variable = 0;
    int shift = 0;
    std::uint64_t mask = 0;  // unshifted
  };
  // Trace records the origin of each entry after an elimination.
  struct Trace {
    int variable = 0;
    std::vector<std::uint32_t> origin;
    std::vector<std::uint16_t> choice;
  };

  // Parts are the entries, sorted so that entries that differ only in one field
  // are together.
  struct Parts {
    std::vector<Entry> entries;
    std::vector<std::size_t> begin;  // begin of each part, and the end
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
  // Appends the results of each part, in order, and lowers the limit if there
  // are too many. `part_entries` is the most results of one part.
  template <class Work>
  bool gather(std::size_t parts, std::size_t part_entries, std::size_t looks,
              const Work& work, std::vector<Entry>& out);
  // Lowers the limit until half of the allowed entries are left.
  void cut(std::vector<Entry>& entries);
  // `entries` are the entries after an elimination, which still contain the
  // variable's field.
  void leave(const Field& gone, std::vector<Entry> entries);

  Cost limit_;
  std::size_t most_entries_;
  std::size_t threads_;
  std::function<bool()> stop_;
  std::vector<Field> fields_;
  std::vector<Entry> entries_{Entry{}};
  std::vector<Trace> traces_;
  std::size_t traced_ = 0;  // entries, including those of dropped traces
  std::uint64_t work_ = 0;
};

}  // namespace shardprop::solver
