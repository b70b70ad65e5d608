// Memory stays below 64 MiB + 10 times the size of the JSON, for any JSON. The
// test replaces the allocator to record the peak.
#include <doctest/doctest.h>
#include <malloc.h>
#include <shardprop/io/load_graph.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include "support/standard_library.h"

namespace {

std::atomic<std::size_t> held{0};
std::atomic<std::size_t> most{0};

void* counted(std::size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  const std::size_t now = held += malloc_usable_size(memory);
  if (now > most) most = now;
  return memory;
}

void uncounted(void* memory) {
  if (memory == nullptr) return;
  held -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return counted(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return counted(size);
}
void operator delete(void* memory) noexcept { uncounted(memory); }
void operator delete[](void* memory) noexcept { uncounted(memory); }
void operator delete(void* memory, std::size_t) noexcept { uncounted(memory); }
void operator delete[](void* memory, std::size_t) noexcept {
  uncounted(memory);
}

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::size_t kSize = std::size_t{24} << 20;
constexpr std::size_t kSlack = std::size_t{64} << 20;

// Returns `before`, then `part` repeated (a "#" becomes a number), then
// `after`.
std::string repeated(const std::string& before, const std::string& part,
                     const std::string& after) {
  std::string out = before;
  out.reserve(kSize + 1024);
  for (std::size_t i = 0; out.size() < kSize; ++i) {
    if (i > 0) out += ',';
    const std::size_t mark = part.find('#');
    if (mark == std::string::npos) {
      out += part;
    } else {
      out += part.substr(0, mark) + std::to_string(i) + part.substr(mark + 1);
    }
  }
  return out + after;
}

// A program whose graph is `graph`, with one input x: f32[4].
std::string with_graph(const std::string& nodes, const std::string& tensors) {
  return R"({"schema_version":{"major":8,"minor":1},"graph_module":{"graph":{)"
         R"("inputs":[{"as_tensor":{"name":"x"}}],"outputs":[],)"
         R"("nodes":[)" +
         nodes +
         R"(],"tensor_values":{"x":{"dtype":7,"sizes":[{"as_int":4}],)"
         R"("strides":[{"as_int":1}]})" +
         tensors +
         R"(}},"signature":{"input_specs":[{"user_input":{"arg":)"
         R"({"as_tensor":{"name":"x"}}}}],"output_specs":[]}}})";
}

void check_bound(const std::string& what, const std::string& json) {
  CAPTURE(what);
  const OpLibrary& library = testing::standard_library();
  const std::size_t before = held;
  most = before;
  const auto graph = read_graph(json, "hostile", library);
  const std::size_t used = most - before + json.size();
  MESSAGE(what << ": " << used / (1 << 20) << " MiB for "
               << json.size() / (1 << 20) << " MiB of JSON"
               << std::string(graph ? ", read" : ", refused"));
  CHECK(used < kSlack + 10 * json.size());
}

}  // namespace

TEST_CASE("texts made to take memory") {
  check_bound("unknown fields", repeated("{\"x\":[", "[]", "]}"));
  check_bound("an object of many keys", repeated("{", "\"k#\":0", "}"));
  check_bound("escaped keys", repeated("{\"x\":{", "\"\\u0041\":0", "}}"));
  check_bound("empty nodes",
              with_graph(repeated("", R"({"target":"t"})", ""), ""));
  check_bound("nodes of absent arguments",
              with_graph(repeated(R"({"target":"t","inputs":[)",
                                  R"({"arg":{"as_none":1}})", "]}"),
                         ""));
  check_bound("short lists",
              with_graph(repeated(R"({"target":"t","inputs":[)",
                                  R"({"arg":{"as_ints":[0,0,0,0,0]}})", "]}"),
                         ""));
  check_bound("tensors that nobody makes",
              with_graph("", repeated(",",
                                      R"("#":{"dtype":7,"sizes":[],)"
                                      R"("strides":[]})",
                                      "")));
  check_bound("symbolic sizes",
              with_graph("", repeated(",",
                                      R"("#":{"dtype":7,"sizes":[{"as_expr":)"
                                      R"({"expr_str":"s#"}}],"strides":[]})",
                                      "")));
}

TEST_CASE("graphs made to take memory") {
  std::string nodes;
  std::string tensors;
  for (int i = 0; nodes.size() + tensors.size() < kSize; ++i) {
    const std::string name = std::to_string(i);
    nodes += (i > 0 ? "," : "") +
             std::string(R"({"target":"torch.ops.aten.relu.default",)"
                         R"("inputs":[{"arg":{"as_tensor":{"name":"x"}}}],)"
                         R"("outputs":[{"as_tensor":{"name":")") +
             name + R"("}}]})";
    tensors +=
        ",\"" + name +
        R"(":{"dtype":7,"sizes":[{"as_int":4}],"strides":[{"as_int":1}]})";
  }
  check_bound("many small operators", with_graph(nodes, tensors));
  const std::string bad = R"(,{"target":"t","outputs":[{"as_none":1}]})";
  const std::size_t good = nodes.size() / 2;
  nodes.resize(nodes.find(",{\"target\"", good));
  while (nodes.size() < 2 * good) nodes += bad;
  check_bound("half of them unknown", with_graph(nodes, tensors));
  std::string list = R"({"name":"x"})";
  for (int i = 0; i < 5000; ++i) list += R"(,{"name":"x"})";
  check_bound(
      "operators of many operands",
      with_graph(
          repeated("",
                   R"({"target":"torch.ops.aten.cat.default","name":"n#",)"
                   R"("inputs":[{"name":"tensors","arg":{"as_tensors":[)" +
                       list + R"(]}}],"outputs":[{"as_none":true}]})",
                   ""),
          ""));
}
