// `ProgramBuilder` appends values and steps to an SpmdProgram.
#pragma once

#include <shardprop/program/spmd_program.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace shardprop::lowering {

using ProgramArguments = std::vector<std::pair<std::string, ProgramArgument>>;

class ProgramBuilder {
 public:
  explicit ProgramBuilder(SpmdProgram& program) : program_(program) {}

  // Sets the node and the copy to which the next steps belong, and whether they
  // are overlapped. A step that is not waits for the values in flight that it
  // reads.
  void stand_at(std::size_t node, std::optional<std::size_t> copy = {},
                bool is_overlapped = false) {
    node_ = node;
    copy_ = copy;
    is_overlapped_ = is_overlapped;
  }
  // Waits for the values of a copy that are in flight.
  void wait(std::size_t copy);

  // Adds a value under this name; if the name is in use, a number is appended.
  // The value has its own memory unless `buffer` is given.
  ProgramValueId value(std::string name, TensorMeta meta, Layout layout,
                       ProgramValueId buffer = {});
  // Adds a value that its producer writes into the memory of an operand.
  ProgramValueId overwriting(std::string name, TensorMeta meta, Layout layout,
                             ProgramValueId operand);
  ProgramValueId local(std::string name);
  ProgramValueId input(ProgramInput made, std::string name, TensorMeta meta,
                       Layout layout);

  // Returns `value` under a new name and meta, cast if the dtype differs.
  ProgramValueId renamed(ProgramValueId value, std::string name,
                         const TensorMeta& meta, const Layout& layout);

  void op(std::string name, ProgramArguments args,
          std::vector<ProgramValueId> outputs);
  void collective(RedistributeStep step, ProgramValueId input,
                  ProgramValueId output);

  const ProgramValue& operator[](ProgramValueId id) const {
    return program_.value(id);
  }
  SpmdProgram& program() { return program_; }

 private:
  std::string unique(std::string name);
  ProgramValueId add(ProgramValue value, ProgramValueId buffer);
  void add_step(ProgramStep step);
  void wait_for_operands(const ProgramStep& step);

  SpmdProgram& program_;
  // The values in flight of each copy, and the copy of each value in flight.
  std::map<std::size_t, std::vector<ProgramValueId>> in_flight_;
  std::map<ProgramValueId, std::size_t> copy_of_;
  std::size_t node_ = 0;
  std::optional<std::size_t> copy_;
  bool is_overlapped_ = false;
  std::unordered_map<std::string, std::size_t> taken_;  // how often
};

}  // namespace shardprop::lowering
