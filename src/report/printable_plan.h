// Replaces names that a terminal cannot show, because names come from files.
#pragma once

#include <shardprop/plan/plan.h>

namespace shardprop {

// Applies printable() to every text.
Plan printable(Plan plan);

}  // namespace shardprop
