// Prints an SpmdProgram as text, one line per step.
#include <shardprop/program/spmd_program.h>

#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <type_traits>

namespace shardprop {
namespace {

class Printer {
 public:
  explicit Printer(const SpmdProgram& program) : program_(program) {
    for (const ProgramValue& value : program.values) {
      width_ = std::max(width_, std::min<std::size_t>(value.name.size(), 24));
    }
  }

  std::string run() {
    out_ = fmt::format("program of {} on {}\n", program_.graph_name,
                       to_string(program_.mesh));
    for (const ProgramInput& input : program_.inputs) {
      line("input", input.value, std::string(to_string(input.kind)));
    }
    for (const ProgramStep& step : program_.steps) {
      std::visit([&](const auto& action) { add(step, action); }, step.action);
    }
    for (const ProgramOutput& output : program_.outputs) {
      std::string of(to_string(output.kind));
      if (output.target) {
        of += " of " + name(program_.inputs[*output.target].value);
      }
      line("output", output.value, of);
    }
    return std::move(out_);
  }

 private:
  std::string name(ProgramValueId id) const {
    return id.valid() ? program_.value(id).name : "_";
  }

  std::string tensor(ProgramValueId id) const {
    const ProgramValue& value = program_.value(id);
    if (value.is_local()) return "local";
    return to_string(value.meta) + " " + to_string(value.layout);
  }

  void line(std::string_view what, ProgramValueId id, std::string_view rest) {
    out_ += fmt::format("{:<6} {:<{}} {}  {}\n", what, name(id), width_,
                        tensor(id), rest);
  }

  std::string end_of(const ProgramStep& step) const {
    if (step.copy) return fmt::format("  copy {}", *step.copy);
    const ProgramNode& node = program_.nodes[step.node];
    return node.name.empty() ? "" : "  node " + node.name;
  }

  void add(const ProgramStep& step, const ProgramOp& op) {
    std::string args;
    for (const auto& [given, value] : op.args) {
      if (!args.empty()) args += ", ";
      args += given + "=" +
              std::visit([&](const auto& held) { return text(held); }, value);
    }
    const std::string call = fmt::format(
        "= {}{}({})", step.is_overlapped ? "start " : "", op.op, args);
    if (op.outputs.size() == 1 && op.outputs[0].valid()) {
      line("", op.outputs[0], call + end_of(step));
      return;
    }
    out_ += fmt::format("{:<6} {} {}{}\n", "", list(op.outputs), call,
                        end_of(step));
    for (const ProgramValueId id : op.outputs) {
      if (id.valid()) line("", id, "");
    }
  }

  void add(const ProgramStep& step, const ProgramCollective& collective) {
    const CollectiveStep& planned = collective.step;
    std::string dims;
    for (const std::int32_t dim : planned.mesh_dims) {
      dims += (dims.empty() ? "" : ",") + program_.mesh.name(dim);
    }
    const std::string by =
        planned.reduce_op ? " " + std::string(to_string(*planned.reduce_op))
                          : "";
    line("", collective.output,
         fmt::format("= {}{}{} over {} ({})  {} B{}",
                     step.is_overlapped ? "start " : "",
                     to_string(planned.kind), by, dims, name(collective.input),
                     planned.bytes_per_rank, end_of(step)));
  }

  void add(const ProgramStep&, const ProgramWait& wait) {
    out_ += fmt::format("{:<6} {}\n", "wait", list(wait.values));
  }

  void add(const ProgramStep&, const ProgramFree& freed) {
    out_ += fmt::format("{:<6} {}\n", "free", list(freed.values));
  }

  std::string list(const std::vector<ProgramValueId>& ids) const {
    std::string out;
    for (const ProgramValueId id : ids) {
      out += (out.empty() ? "" : ", ") + name(id);
    }
    return out;
  }

  std::string text(ProgramValueId id) const { return name(id); }
  std::string text(const std::vector<ProgramValueId>& ids) const {
    return "[" + list(ids) + "]";
  }
  static std::string text(const RankInt& value) { return to_string(value); }
  static std::string text(const std::vector<RankInt>& values) {
    std::string out;
    for (const RankInt& value : values) {
      out += (out.empty() ? "" : ", ") + to_string(value);
    }
    return "[" + out + "]";
  }
  static std::string text(const Argument& argument) {
    return std::visit([](const auto& held) { return scalar(held); }, argument);
  }

  static std::string scalar(NoneArg) { return "None"; }
  static std::string scalar(bool value) { return value ? "True" : "False"; }
  static std::string scalar(std::int64_t value) {
    return std::to_string(value);
  }
  static std::string scalar(double value) { return fmt::format("{}", value); }
  static std::string scalar(std::complex<double> value) {
    return fmt::format("({}{:+}j)", value.real(), value.imag());
  }
  static std::string scalar(const std::string& value) {
    return "'" + value + "'";
  }
  static std::string scalar(DType value) {
    return std::string(to_string(value));
  }
  static std::string scalar(const NamedArg& value) { return value.name; }
  static std::string scalar(TensorArg) { return "_"; }
  template <class T>
  static std::string scalar(const std::vector<T>& values) {
    std::string out;
    for (const auto& value : values) {
      out += (out.empty() ? "" : ", ") + scalar(static_cast<T>(value));
    }
    return "[" + out + "]";
  }

  const SpmdProgram& program_;
  std::size_t width_ = 0;
  std::string out_;
};

}  // namespace

std::string to_string(const SpmdProgram& program) {
  return Printer(program).run();
}

}  // namespace shardprop
