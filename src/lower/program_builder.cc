#include "lower/program_builder.h"

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
  program_.steps.push_back(
      {ProgramOp{std::move(name), std::move(args), std::move(outputs)}, node_,
       copy_});
}

void ProgramBuilder::collective(RedistributeStep step, ProgramValueId input,
                                ProgramValueId output) {
  program_.steps.push_back(
      {ProgramCollective{std::move(step), input, output}, node_, copy_});
}

}  // namespace shardprop::lowering
