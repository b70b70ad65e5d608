#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "support/fatal_signals.h"
