// A plan whose names can be shown on a terminal: they come from files.
#pragma once

#include <shardprop/plan/plan.h>

namespace shardprop {

// printable() of every text.
Plan printable(Plan plan);

}  // namespace shardprop
