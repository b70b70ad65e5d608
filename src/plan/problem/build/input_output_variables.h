// InputOutputVariables adds the variables of the graph's inputs and outputs, and
// lists the layouts that they may have.
#pragma once

#include "plan/problem/build/buffer_forest.h"
#include "plan/problem/choices/trained_parameter.h"
#include "plan/problem/constraints/pinned_choices.h"
#include "plan/problem/constraints/recipe_choices.h"
#include "plan/problem/problem_data.h"

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

namespace shardprop {

class InputOutputVariables {
 public:
  // `data` and `forest` must outlive the object.
  InputOutputVariables(ProblemData& data, BufferForest& forest);

  // Adds a variable without choices for each input. A gradient or an update of
  // the input is a use of it.
  void add_inputs();
  // Sets the choices of the inputs. An input has R, or any layout without
  // partials and strides in which a user reads it or a known recipe stores it.
  // With `recipe`, which may be null, it has the layout in which that recipe
  // stores it. A pin or given choices take precedence. Precondition: all
  // operators have their variables. Error: kStopped.
  Result<void> choose_input_layouts(PinnedChoices& pinned,
                                    const RecipeChoices* recipe);
  // Adds a variable for each output that is not bound to an input. It has R, or
  // a layout without partials and strides in which its value is produced.
  // Precondition: all inputs and operators have their choices.
  void add_outputs(const PinnedChoices& pinned);

 private:
  LayoutId replicated() const {
    return data_.layouts.intern(Layout::replicated(data_.mesh.ndim()));
  }
  // Returns the layouts of the known recipes in the space, which are found once
  // for all inputs.
  std::vector<RecipeLayouts> known_recipes() const;
  // Adds the layouts without partials, and those with strided shards only if
  // `may_be_strided`.
  void add_plain_layouts(const std::vector<LayoutId>& from, bool may_be_strided,
                         std::vector<LayoutId>& to) const;
  Result<std::shared_ptr<const ChoiceSet>> choices_of_input(
      const PlanVariable& variable, const TrainedLayouts& layouts);
  bool is_trained(const PlanVariable& variable) const;
  std::vector<OutputKind> kinds_of_ties(ValueId input) const;

  ProblemData& data_;
  const Graph& graph_;
  BufferForest& forest_;
  // By input: the outputs that are bound to it.
  std::map<ValueId, std::vector<GraphOutput>> ties_;
  // The choices by layouts of input and state, bound outputs and, for trained
  // parameters, their class.
  std::map<std::tuple<std::vector<LayoutId>, std::vector<LayoutId>,
                      std::vector<OutputKind>, std::uint32_t>,
           std::shared_ptr<const ChoiceSet>>
      input_choices_;
};

}  // namespace shardprop
