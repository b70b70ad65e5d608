// `ModuleText` writes the modules of a plan with their times, and its
// redistributions with their reasons.
#pragma once

#include "report/module_tree.h"
#include "report/text_lines.h"

#include <shardprop/plan/plan.h>

#include <cstddef>
#include <string>
#include <vector>

namespace shardprop {

// Returns " (x32)"; nothing for one.
std::string repeats_text(std::size_t repeats);

class ModuleText {
 public:
  // With `detail`, every module is printed, with its redistributions. `plan`
  // must outlive the object.
  ModuleText(const Plan& plan, bool detail);

  // Returns the redistributions that take the most time; empty if none takes
  // time.
  std::string expensive_moves();
  // Returns one line per module. Equal neighbours share a line.
  std::string modules();
  // Returns whether one of these texts is longer with `detail`.
  bool is_shortened() const { return is_shortened_; }

 private:
  void add_module(const Module& module, const std::string& prefix,
                  std::size_t depth);
  void add_moves(const Module& module, std::size_t depth);
  void add_move(const ModuleMove& move, std::size_t count,
                const std::string& indent);
  template <class Steps>  // of CollectiveStep, or of a class derived from it
  void add_steps(const Steps& steps, const std::string& indent,
                 const std::string& how_often = {});
  std::size_t hash_of(const ModuleMove& move) const;
  bool alike(const ModuleMove& a, const ModuleMove& b) const;
  std::string text();

  const Plan& plan_;
  bool detail_;
  std::vector<std::string> reasons_;  // by copy
  TextLines lines_;
  bool is_shortened_ = false;
};

}  // namespace shardprop
