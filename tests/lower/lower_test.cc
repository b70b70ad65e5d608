#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/lower/lower.h>

namespace shardprop {
namespace {}  // namespace
}  // namespace shardprop
