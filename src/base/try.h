// Macros that return errors early. They are for source files only, because
// users include public headers.
//
//   SP_ASSIGN(const DeviceMesh mesh, DeviceMesh::parse(text));
//   SP_CHECK(validate(layout));
#pragma once

#include <shardprop/base/result.h>

#include <utility>

// NOLINTBEGIN(bugprone-macro-parentheses): declarations and types take none.
#define SP_CONCAT_(a, b) a##b
#define SP_CONCAT(a, b) SP_CONCAT_(a, b)

#define SP_ASSIGN(lhs, expr) \
  SP_ASSIGN_(SP_CONCAT(sp_result_, __LINE__), lhs, expr)
#define SP_ASSIGN_(tmp, lhs, expr)                            \
  auto tmp = (expr);                                          \
  if (!tmp) return ::shardprop::fail(std::move(tmp).error()); \
  lhs = *std::move(tmp)

#define SP_CHECK(expr) SP_CHECK_(SP_CONCAT(sp_result_, __LINE__), expr)
#define SP_CHECK_(tmp, expr) \
  if (auto tmp = (expr); !tmp) return ::shardprop::fail(std::move(tmp).error())
// NOLINTEND(bugprone-macro-parentheses)
