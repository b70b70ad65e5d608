// The same test as a C++ program: the header is both languages'.
#include "c_api_test.c"
