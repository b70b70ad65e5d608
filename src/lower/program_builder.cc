#include "lower/program_builder.h"

#include "program/step_values.h"

#include <set>

namespace shardprop::lowering {

std::string ProgramBuilder::unique(std::string name) {
  auto [it, fresh] = taken_.try_emplace(name, 0);
  while (!fresh) {
    std::string numbered = name + "." + std::to_string(++it->second);
    if (taken_.try_emplace(numbered, 0).second) return numbered;
    it = taken_.find(name);
  }
  return name;
}

ProgramValueId ProgramBuilder::add(ProgramValue value, ProgramValueId buffer) {
  const ProgramValueId id(program_.values.size());
  value.name = unique(std::move(value.name));
  value.buffer = buffer.valid() ? program_.value(buffer).buffer : id;
  program_.values.push_back(std::move(value));
  return id;
}

ProgramValueId ProgramBuilder::value(std::string name, TensorMeta meta,
                                     Layout layout, ProgramValueId buffer) {
  return add({std::move(name), std::move(meta), std::move(layout), {}}, buffer);
}

ProgramValueId ProgramBuilder::overwriting(std::string name, TensorMeta meta,
                                           Layout layout,
                                           ProgramValueId operand) {
  return add({std::move(name), std::move(meta), std::move(layout), {}, operand},
             operand);
}

ProgramValueId ProgramBuilder::local(std::string name) {
  return add({std::move(name), {}, {}, {}}, {});
}

ProgramValueId ProgramBuilder::input(ProgramInput made, std::string name,
                                     TensorMeta meta, Layout layout) {
  made.value = value(std::move(name), std::move(meta), std::move(layout));
  program_.inputs.push_back(std::move(made));
  return program_.inputs.back().value;
}

ProgramValueId ProgramBuilder::renamed(ProgramValueId value, std::string name,
                                       const TensorMeta& meta,
                                       const Layout& layout) {
  const bool is_cast = program_.value(value).meta.dtype() != meta.dtype();
  const ProgramValueId made = this->value(std::move(name), meta, layout);
  if (is_cast) {
    op("aten._to_copy.default",
       {{"self", value}, {"dtype", Argument(meta.dtype())}}, {made});
  } else {
    op("aten.alias.default", {{"self", value}}, {made});
  }
  return made;
}

void ProgramBuilder::op(std::string name, ProgramArguments args,
                        std::vector<ProgramValueId> outputs) {
  add_step({ProgramOp{std::move(name), std::move(args), std::move(outputs)},
            node_, copy_, is_overlapped_});
}

void ProgramBuilder::collective(RedistributeStep step, ProgramValueId input,
                                ProgramValueId output) {
  add_step({ProgramCollective{std::move(step), input, output}, node_, copy_,
            is_overlapped_});
}

void ProgramBuilder::add_step(ProgramStep step) {
  if (step.is_overlapped) {
    for_each_made(step, [&](ProgramValueId id) {
      in_flight_[*step.copy].push_back(id);
      copy_of_.emplace(id, *step.copy);
    });
  } else {
    wait_for_operands(step);
  }
  program_.steps.push_back(std::move(step));
}

void ProgramBuilder::wait_for_operands(const ProgramStep& step) {
  if (copy_of_.empty()) return;
  std::set<std::size_t> copies;
  for_each_taken(step, [&](ProgramValueId id) {
    const auto found = copy_of_.find(id);
    if (found != copy_of_.end()) copies.insert(found->second);
  });
  for (const std::size_t copy : copies) wait(copy);
}

void ProgramBuilder::wait(std::size_t copy) {
  const auto found = in_flight_.find(copy);
  if (found == in_flight_.end()) return;
  for (const ProgramValueId id : found->second) copy_of_.erase(id);
  program_.steps.push_back({ProgramWait{std::move(found->second)}, node_, {}});
  in_flight_.erase(found);
}

}  // namespace shardprop::lowering
