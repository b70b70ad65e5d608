#include "report/module_tree.h"

#include "base/index.h"
#include "base/name_folding.h"

#include <shardprop/base/hash.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace shardprop {
namespace {

// Modules found so far, by path.
class ModuleFinder {
 public:
  ModuleFinder() : found_(1) {}

  // The result stays valid until the next call.
  Module& at(std::string_view path) { return found_[find(path)].module; }

  // Returns the root, which contains all other modules.
  Module take() && { return nested(0); }

 private:
  struct Found {
    Module module;
    std::vector<std::size_t> children;
  };

  std::size_t find(std::string_view path) {
    if (path.empty()) return 0;
    if (const auto known = by_path_.find(path); known != by_path_.end()) {
      return known->second;
    }
    std::size_t at = 0;
    std::size_t begin = 0;
    for (int depth = 1; begin < path.size(); ++depth) {
      const std::size_t dot =
          depth < kMostLevels ? path.find('.', begin) : path.npos;
      const std::size_t end = std::min(dot, path.size());
      const auto [entry, fresh] =
          by_path_.try_emplace(path.substr(0, end), found_.size());
      if (fresh) {
        found_.emplace_back().module.name = path.substr(begin, end - begin);
        found_[at].children.push_back(entry->second);
      }
      at = entry->second;
      begin = end + 1;
    }
    return at;
  }

  Module nested(std::size_t at) {
    Module module = std::move(found_[at].module);
    for (const std::size_t child : found_[at].children) {
      module.children.push_back(nested(child));
    }
    return module;
  }

  // Beyond this level, the rest of the path is one name.
  static constexpr int kMostLevels = 100;

  std::vector<Found> found_;  // the root first
  std::unordered_map<std::string_view, std::size_t> by_path_;
};

std::size_t phase_of(const PlannedNode& node) {
  return node.phase == Phase::kForward ? 0 : 1;
}

std::int64_t sum(const std::vector<CollectiveStep>& steps) {
  std::int64_t total = 0;
  for (const CollectiveStep& step : steps) total += step.nanoseconds;
  return total;
}

constexpr std::size_t kNone = ~std::size_t{0};

// Assigns copies of updated parameters to the last node of the parameter's
// module.
void set_users_of_updates(const Plan& plan, std::vector<std::size_t>& users) {
  if (plan.updates.empty() || plan.nodes.empty()) return;
  std::unordered_map<std::string_view, std::size_t> last_of;
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    last_of[plan.nodes[n].module_path] = n;
  }
  std::unordered_map<std::string_view, std::size_t> node_of;
  for (const PlannedUpdate& update : plan.updates) {
    const auto last = last_of.find(update.module_path);
    node_of[update.result.name] =
        last == last_of.end() ? plan.nodes.size() - 1 : last->second;
  }
  for (std::size_t c = 0; c < users.size(); ++c) {
    const auto found = node_of.find(plan.copies[c].of);
    if (found != node_of.end()) users[c] = found->second;
  }
}

// Returns the first user of each copy. A copy for a result of the program
// counts as used by the node before it.
std::vector<std::size_t> first_users(const Plan& plan) {
  std::vector<std::size_t> users(plan.copies.size(), kNone);
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    for (const PlannedInput& input : plan.nodes[n].inputs) {
      if (input.copy && users[*input.copy] == kNone) users[*input.copy] = n;
    }
  }
  // The source of a copy is used when the copy is used.
  for (std::size_t c = users.size(); c-- > 0;) {
    const auto& source = plan.copies[c].source;
    if (source) users[*source] = std::min(users[*source], users[c]);
  }
  set_users_of_updates(plan, users);
  for (std::size_t c = 0; c < users.size(); ++c) {
    if (users[c] != kNone) continue;
    const auto at = index(plan.copies[c].produced_at);
    users[c] = at == 0 ? 0 : at - 1;
  }
  return users;
}

// Returns the module of each node. A node without a module, such as a sum of
// gradients, belongs to the module of the first producer that it reads.
std::vector<std::string_view> homes(const Plan& plan) {
  std::unordered_map<std::string_view, std::string_view> home_of_value;
  std::vector<std::string_view> out;
  for (const PlannedNode& node : plan.nodes) {
    std::string_view home = node.module_path;
    for (const PlannedInput& input : node.inputs) {
      if (!home.empty()) break;
      const auto maker = home_of_value.find(input.from);
      if (maker != home_of_value.end()) home = maker->second;
    }
    for (const PlannedResult& result : node.outputs) {
      home_of_value[result.name] = home;
    }
    out.push_back(home);
  }
  return out;
}

std::size_t signature(const PlannedNode& node) {
  std::size_t seed = std::hash<std::string>{}(node.op);
  for (const PlannedInput& input : node.inputs) {
    seed = hash_combine(seed, input.layout);
    seed = hash_mix(seed, input.copy.has_value() ? 1 : 0);
  }
  for (const PlannedResult& output : node.outputs) {
    seed = hash_combine(seed, output.tensor.layout);
    seed = hash_range(seed, output.tensor.shape);
  }
  return seed;
}

std::size_t signature(const PlannedCopy& copy) {
  std::size_t seed = hash_combine(hash_combine(0, copy.src), copy.dst);
  seed = hash_mix(seed, static_cast<std::uint64_t>(copy.cut_nanoseconds));
  for (const CollectiveStep& step : copy.steps) {
    seed = hash_mix(seed, static_cast<std::uint64_t>(step.nanoseconds));
  }
  return seed;
}

// Hashes the operators and moves of the module itself.
std::size_t own_signature(const Module& module, const Plan& plan) {
  std::size_t seed = module.nodes.size();
  for (const std::size_t n : module.nodes) {
    seed = hash_mix(seed, signature(plan.nodes[n]));
  }
  for (const ModuleMove& move : module.moves) {
    seed = hash_mix(seed, move.inside ? 1 : signature(plan.copies[move.copy]));
  }
  return seed;
}

void add_own_times(Module& module, const Plan& plan) {
  for (const std::size_t n : module.nodes) {
    module.times.compute[phase_of(plan.nodes[n])] +=
        plan.nodes[n].compute_nanoseconds;
  }
  for (const ModuleMove& move : module.moves) {
    const PlannedNode& node = plan.nodes[move.node];
    module.times.communication[phase_of(node)] +=
        move.inside ? sum(node.inside) : plan.copies[move.copy].nanoseconds();
  }
}

// Sorts the moves, sums the times from the leaves up, and folds equal
// neighbours. The returned hash is equal for modules with equal plans and does
// not depend on the names of their values.
std::size_t finish(Module& module, const Plan& plan) {
  std::stable_sort(
      module.moves.begin(), module.moves.end(),
      [](const ModuleMove& a, const ModuleMove& b) { return a.node < b.node; });
  add_own_times(module, plan);
  struct Run {
    std::size_t signature;
    std::vector<std::int64_t> numbers;
  };
  std::vector<Run> runs;
  std::vector<Module> folded;
  for (Module& child : module.children) {
    const std::size_t of_child = finish(child, plan);
    for (std::size_t phase = 0; phase < 2; ++phase) {
      module.times.compute[phase] += child.times.compute[phase];
      module.times.communication[phase] += child.times.communication[phase];
    }
    Run run{of_child, {}};
    if (is_number(child.name)) run.numbers = {std::stoll(child.name)};
    if (!run.numbers.empty() && !folded.empty() &&
        !runs.back().numbers.empty() && runs.back().signature == of_child &&
        runs.back().numbers.back() + 1 == run.numbers[0]) {
      runs.back().numbers.push_back(run.numbers[0]);
      ++folded.back().repeats;
      continue;
    }
    folded.push_back(std::move(child));
    runs.push_back(std::move(run));
  }
  std::size_t seed = own_signature(module, plan);
  for (std::size_t i = 0; i < folded.size(); ++i) {
    if (folded[i].repeats > 1) folded[i].name = runs_text(runs[i].numbers);
    seed = hash_combine(seed, folded[i].name);
    seed = hash_mix(seed, runs[i].signature);
  }
  module.children = std::move(folded);
  return seed;
}

// Adds the time of kernel boundaries that copies cause. It counts as compute of
// the module that reads the copy.
void add_cuts(const Plan& plan, const std::vector<std::string_view>& home,
              ModuleFinder& modules) {
  const std::vector<std::size_t> users = first_users(plan);
  for (std::size_t c = 0; c < users.size(); ++c) {
    const std::size_t user = users[c];
    if (user >= plan.nodes.size()) continue;
    modules.at(home[user]).times.compute[phase_of(plan.nodes[user])] +=
        plan.copies[c].cut_nanoseconds;
  }
}

}  // namespace

std::vector<ModuleMove> all_moves(const Plan& plan) {
  const std::vector<std::string_view> home = homes(plan);
  std::vector<ModuleMove> out;
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    if (!plan.nodes[n].inside.empty()) out.push_back({n, true, 0, home[n]});
  }
  const std::vector<std::size_t> users = first_users(plan);
  for (std::size_t c = 0; c < users.size(); ++c) {
    if (users[c] >= plan.nodes.size()) continue;
    // A copy that only views another value moves nothing.
    if (plan.copies[c].steps.empty()) continue;
    out.push_back({users[c], false, c, home[users[c]]});
  }
  return out;
}

std::vector<ModuleNodes> nodes_by_module(const Plan& plan) {
  std::vector<ModuleNodes> out;
  std::unordered_map<std::string_view, std::size_t> at;
  for (const PlannedNode& node : plan.nodes) {
    const auto [known, is_new] = at.emplace(node.module_path, out.size());
    if (is_new) out.push_back({node.module_path, {}});
    out[known->second].nodes.push_back(&node);
  }
  return out;
}

Module module_tree(const Plan& plan) {
  const std::vector<std::string_view> home = homes(plan);
  ModuleFinder modules;
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    modules.at(home[n]).nodes.push_back(n);
  }
  for (const ModuleMove& move : all_moves(plan)) {
    modules.at(move.home).moves.push_back(move);
  }
  add_cuts(plan, home, modules);
  Module root = std::move(modules).take();
  finish(root, plan);
  return root;
}

}  // namespace shardprop
