/* The C API, used as its header says and in all the ways it says not to. */
#include <shardprop.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define CHECK(holds)                                              \
  do {                                                            \
    if (!(holds)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #holds); \
      ++failures;                                                 \
    }                                                             \
  } while (0)

/* That the call goes well. */
static void works_at(shardprop_error* error, int line) {
  if (error == NULL) return;
  fprintf(stderr, "%s:%d: %s\n", __FILE__, line, shardprop_error_text(error));
  ++failures;
  shardprop_error_free(error);
}
#define WORKS(call) works_at((call), __LINE__)

/* That it fails with this code, in words and with help. */
static void fails_at(shardprop_error* error, int32_t code, int line) {
  if (error == NULL || shardprop_error_code(error) != code ||
      shardprop_error_message(error)[0] == '\0' ||
      shardprop_error_help(error)[0] == '\0' ||
      shardprop_error_text(error)[0] == '\0') {
    fprintf(stderr, "%s:%d: code %d, not %d: %s\n", __FILE__, line,
            (int)shardprop_error_code(error), (int)code,
            shardprop_error_text(error));
    ++failures;
  }
  shardprop_error_free(error);
}
#define FAILS(call, code) fails_at((call), (code), __LINE__)

#define INVALID 1

static shardprop_mesh* mesh_of(const char* text) {
  shardprop_mesh* mesh = NULL;
  WORKS(shardprop_mesh_parse(text, &mesh));
  return mesh;
}

static shardprop_spec* spec_of(const char* text, const shardprop_mesh* mesh) {
  shardprop_spec* spec = NULL;
  WORKS(shardprop_spec_parse(text, mesh, &spec));
  return spec;
}

static void test_values(void) {
  shardprop_mesh* mesh = mesh_of("dp=2,tp=4");
  CHECK(shardprop_mesh_ndim(mesh) == 2);
  CHECK(shardprop_mesh_size(mesh) == 8);
  CHECK(shardprop_mesh_dim_size(mesh, 1) == 4);
  CHECK(shardprop_mesh_dim_size(mesh, 2) == -1);
  CHECK(strcmp(shardprop_mesh_dim_name(mesh, 0), "dp") == 0);
  shardprop_spec* spec = spec_of("f32[5,8] S(0),S(1)", mesh);
  CHECK(strcmp(shardprop_spec_text(spec), "f32[5,8] S(0),S(1)") == 0);
  CHECK(strcmp(shardprop_spec_layout(spec), "S(0),S(1)") == 0);
  CHECK(strcmp(shardprop_spec_dtype(spec), "f32") == 0);
  CHECK(shardprop_spec_ndim(spec) == 2);
  CHECK(shardprop_spec_size(spec, 0) == 5);
  int64_t sizes[2] = {0, 0};
  WORKS(shardprop_spec_local_shape(spec, 7, sizes));
  CHECK(sizes[0] == 2 && sizes[1] == 2);
  FAILS(shardprop_spec_local_shape(spec, 8, sizes), 108);
  shardprop_spec* same = spec_of("f32[5,8] S(0),S(1)", mesh);
  CHECK(shardprop_spec_equal(spec, same) == 1);
  /* Handles keep what they need. */
  shardprop_mesh_free(mesh);
  WORKS(shardprop_spec_local_shape(spec, 0, sizes));
  shardprop_spec_free(spec);
  shardprop_spec_free(same);

  const int64_t two[] = {2, 2};
  const int64_t ranks[] = {3, 1, 2, 0};
  const int64_t twice[] = {3, 1, 2, 3};
  WORKS(shardprop_mesh_create(NULL, two, 2, ranks, 4, &mesh));
  CHECK(strcmp(shardprop_mesh_dim_name(mesh, 1), "d1") == 0);
  shardprop_mesh_free(mesh);
  FAILS(shardprop_mesh_create(NULL, two, 2, twice, 4, &mesh), 106);
  CHECK(mesh == NULL);

  shardprop_topology* topology = NULL;
  WORKS(shardprop_topology_find(NULL, &topology));
  CHECK(shardprop_topology_name(topology)[0] != '\0');
  shardprop_topology_free(topology);
  FAILS(shardprop_topology_find("no-such-machine", &topology), 109);
}

typedef struct {
  shardprop_mesh* mesh;
  shardprop_topology* topology;
  shardprop_library* library;
  shardprop_propagator* propagator;
  shardprop_cache* cache;
} Machine;

static Machine machine_of(const char* mesh) {
  Machine m = {NULL, NULL, NULL, NULL, NULL};
  m.mesh = mesh_of(mesh);
  WORKS(shardprop_topology_find(NULL, &m.topology));
  WORKS(shardprop_library_standard(&m.library));
  WORKS(shardprop_propagator_create(m.mesh, m.topology, m.library,
                                    SHARDPROP_MOVES_ALLOWED, &m.propagator));
  WORKS(shardprop_cache_create(m.propagator, 0, 0, &m.cache));
  return m;
}

static void free_machine(Machine m) {
  shardprop_mesh_free(m.mesh);
  shardprop_topology_free(m.topology);
  shardprop_library_free(m.library);
  shardprop_propagator_free(m.propagator);
  shardprop_cache_free(m.cache);
}

static shardprop_call* mm_of(const Machine* m, const char* a, const char* b) {
  shardprop_call* call = NULL;
  shardprop_spec* left = spec_of(a, m->mesh);
  shardprop_spec* right = spec_of(b, m->mesh);
  WORKS(shardprop_call_create(m->library, "aten.mm.default", &call));
  /* By name and in any order. */
  WORKS(shardprop_call_tensor(call, "mat2", right));
  WORKS(shardprop_call_tensor(call, "self", left));
  shardprop_spec_free(left);
  shardprop_spec_free(right);
  return call;
}

static void check_text(const shardprop_spec* spec, const char* text) {
  if (strcmp(shardprop_spec_text(spec), text) == 0) return;
  fprintf(stderr, "%s instead of %s\n", shardprop_spec_text(spec), text);
  ++failures;
}

static void test_propagation(void) {
  Machine m = machine_of("2");
  shardprop_call* call = mm_of(&m, "f32[16,8] S(0)", "f32[8,4] S(0)");
  shardprop_sharding* sharding = NULL;
  for (int cached = 0; cached < 3; ++cached) {
    if (cached > 0) {
      WORKS(shardprop_cache_propagate(m.cache, call, &sharding));
    } else {
      WORKS(shardprop_propagate(m.propagator, call, &sharding));
    }
    CHECK(shardprop_sharding_input_count(sharding) == 2);
    CHECK(shardprop_sharding_output_count(sharding) == 1);
    CHECK(shardprop_sharding_move_count(sharding) == 1);
    CHECK(shardprop_sharding_cost(sharding) > 0);
    CHECK(shardprop_sharding_inside_cost(sharding) == 0);
    shardprop_spec* spec = NULL;
    WORKS(shardprop_sharding_output(sharding, 0, &spec));
    check_text(spec, "f32[16,4] S(0)");
    shardprop_spec_free(spec);
    FAILS(shardprop_sharding_output(sharding, 1, &spec), INVALID);
    CHECK(spec == NULL);
    WORKS(shardprop_sharding_input(sharding, 1, &spec));
    check_text(spec, "f32[8,4] R");
    shardprop_spec_free(spec);
    int64_t input = -1;
    shardprop_redistribution* move = NULL;
    WORKS(shardprop_sharding_move(sharding, 0, &input, &move));
    CHECK(input == 1);
    CHECK(shardprop_redistribution_step_count(move) == 1);
    shardprop_step step;
    WORKS(shardprop_redistribution_step(move, 0, &step));
    CHECK(strcmp(step.kind, "all_gather") == 0);
    CHECK(step.mesh_dims == 1);
    CHECK(step.nanoseconds == shardprop_redistribution_cost(move));
    shardprop_sharding_free(sharding);
    /* The move outlives the answer. */
    CHECK(shardprop_redistribution_cost(move) > 0);
    shardprop_redistribution_free(move);
  }
  shardprop_cache_statistics seen;
  WORKS(shardprop_cache_read_statistics(m.cache, &seen));
  CHECK(seen.hits == 1 && seen.misses == 1 && seen.entries == 1);

  char* text = NULL;
  WORKS(shardprop_candidates(m.propagator, call, &text));
  CHECK(text != NULL && strstr(text, "taken") != NULL &&
        strstr(text, "more") != NULL);
  shardprop_text_free(text);

  shardprop_propagator* strict = NULL;
  WORKS(shardprop_propagator_create(m.mesh, m.topology, m.library,
                                    SHARDPROP_MOVES_FORBIDDEN, &strict));
  FAILS(shardprop_propagate(strict, call, &sharding), 201);
  shardprop_propagator_free(strict);
  FAILS(shardprop_propagator_create(m.mesh, m.topology, m.library, 7, &strict),
        INVALID);
  shardprop_call_free(call);

  /* A row of one's own. */
  shardprop_library* mine = NULL;
  WORKS(shardprop_library_add(m.library, NULL, "aten.mm",
                              "einsum m[k],[k]n->mn", &mine));
  WORKS(shardprop_cache_set_library(m.cache, mine));
  shardprop_library* more = NULL;
  WORKS(shardprop_library_add(mine, "mine::glu(Tensor x, Tensor g) -> Tensor",
                              NULL, "pointwise.promoted", &more));
  FAILS(shardprop_library_add(mine, NULL, "aten.mm", "einsum mk", &more),
        INVALID);
  shardprop_library* vision = NULL;
  WORKS(shardprop_library_read(mine, "examples/operators/torchvision.ops",
                               &vision));
  shardprop_call* align = NULL;
  WORKS(shardprop_call_create(vision, "torchvision.roi_align.default", &align));
  shardprop_call_free(align);
  shardprop_library_free(vision);
  vision = NULL;
  FAILS(shardprop_library_read(mine, "no_such_file.ops", &vision), 401);
  CHECK(vision == NULL);
  FAILS(shardprop_library_add(mine, NULL, "aten.mm", "pointwise.faster", &more),
        INVALID);
  FAILS(shardprop_library_add(mine, NULL, NULL, "pointwise", &more), INVALID);
  FAILS(shardprop_library_add(mine, "no declaration", NULL, "pointwise", &more),
        501);
  WORKS(shardprop_cache_read_statistics(m.cache, &seen));
  CHECK(seen.generation == 1 && seen.entries == 0);
  shardprop_library_free(mine);
  shardprop_library_free(more);
  free_machine(m);
}

static void test_arguments(void) {
  Machine m = machine_of("2");
  shardprop_spec* x = spec_of("f32[4,6] S(0)", m.mesh);
  shardprop_call* call = NULL;
  shardprop_sharding* sharding = NULL;
  WORKS(shardprop_call_create(m.library, "aten.view.default", &call));
  WORKS(shardprop_call_tensor(call, NULL, x));
  const int64_t sizes[] = {24};
  WORKS(shardprop_call_ints(call, "size", sizes, 1));
  WORKS(shardprop_propagate(m.propagator, call, &sharding));
  CHECK(shardprop_sharding_rank_argument_count(sharding) == 1);
  CHECK(strcmp(shardprop_sharding_rank_argument_name(sharding, 0), "size") ==
        0);
  int64_t local[4] = {0};
  int64_t count = 0;
  WORKS(shardprop_sharding_rank_argument(sharding, 0, 1, local, 4, &count));
  CHECK(count == 1 && local[0] == 12);
  FAILS(shardprop_sharding_rank_argument(sharding, 0, 2, local, 4, &count),
        108);
  shardprop_sharding_free(sharding);
  shardprop_call_free(call);

  const shardprop_spec* list[] = {x, x};
  WORKS(shardprop_call_create(m.library, "aten.cat.default", &call));
  WORKS(shardprop_call_tensors(call, NULL, list, 2));
  WORKS(shardprop_call_int(call, "dim", 1));
  WORKS(shardprop_propagate(m.propagator, call, &sharding));
  shardprop_spec* out = NULL;
  WORKS(shardprop_sharding_output(sharding, 0, &out));
  check_text(out, "f32[4,12] S(0)");
  shardprop_spec_free(out);
  shardprop_sharding_free(sharding);
  WORKS(shardprop_call_clear(call));
  FAILS(shardprop_propagate(m.propagator, call, &sharding), 504);
  CHECK(sharding == NULL);
  shardprop_call_free(call);

  WORKS(shardprop_call_create(m.library, "aten.sum.dim_IntList", &call));
  WORKS(shardprop_call_tensor(call, NULL, x));
  WORKS(shardprop_call_none(call, NULL));
  WORKS(shardprop_call_bool(call, "keepdim", 1));
  WORKS(shardprop_call_dtype(call, "dtype", "f64"));
  WORKS(shardprop_propagate(m.propagator, call, &sharding));
  WORKS(shardprop_sharding_output(sharding, 0, &out));
  check_text(out, "f64[1,1] P(sum)");
  shardprop_spec_free(out);
  shardprop_sharding_free(sharding);
  shardprop_call_free(call);

  FAILS(shardprop_call_create(m.library, "aten.mmm.default", &call), 508);
  WORKS(shardprop_call_create(m.library, "aten.mm.default", &call));
  WORKS(shardprop_call_tensor(call, NULL, x));
  FAILS(shardprop_propagate(m.propagator, call, &sharding), 504);
  WORKS(shardprop_call_tensor(call, NULL, x));
  FAILS(shardprop_propagate(m.propagator, call, &sharding), 507);
  WORKS(shardprop_call_tensor(call, NULL, x));
  FAILS(shardprop_propagate(m.propagator, call, &sharding), 503);
  FAILS(shardprop_call_dtype(call, "dtype", "f77"), 309);
  shardprop_call_free(call);

  /* A partial is not to be written by what is not linear. */
  shardprop_spec* sum = spec_of("f32[4,6] P(sum)", m.mesh);
  WORKS(shardprop_call_create(m.library, "aten.relu_.default", &call));
  WORKS(shardprop_call_tensor(call, NULL, sum));
  FAILS(shardprop_propagate(m.propagator, call, &sharding), 201);
  shardprop_call_free(call);
  shardprop_spec_free(sum);

  /* Tensors of another mesh. */
  shardprop_mesh* other = mesh_of("4");
  shardprop_spec* far = spec_of("f32[4,6] S(0)", other);
  WORKS(shardprop_call_create(m.library, "aten.add.Tensor", &call));
  WORKS(shardprop_call_tensor(call, NULL, x));
  WORKS(shardprop_call_tensor(call, NULL, far));
  FAILS(shardprop_propagate(m.propagator, call, &sharding), 605);
  FAILS(shardprop_cache_propagate(m.cache, call, &sharding), 605);
  shardprop_call_free(call);
  shardprop_redistribution* plan = NULL;
  FAILS(shardprop_redistribution_plan(x, far, m.topology, &plan), 605);
  shardprop_spec_free(far);
  shardprop_mesh_free(other);

  shardprop_spec* whole = spec_of("f32[4,6] R", m.mesh);
  WORKS(shardprop_redistribution_plan(x, whole, m.topology, &plan));
  CHECK(shardprop_redistribution_step_count(plan) == 1);
  shardprop_redistribution_free(plan);
  shardprop_spec_free(whole);
  shardprop_spec_free(x);
  free_machine(m);
}

static int64_t inputs_of(const Machine* m, shardprop_call* call) {
  shardprop_sharding* sharding = NULL;
  WORKS(shardprop_propagate(m->propagator, call, &sharding));
  const int64_t count = shardprop_sharding_input_count(sharding);
  shardprop_sharding_free(sharding);
  return count;
}

/* Functions that fail leave what they were to change as it was. */
static void test_failures_change_nothing(void) {
  Machine m = machine_of("2");
  shardprop_spec* x = spec_of("f32[4,6] S(0)", m.mesh);
  shardprop_spec* freed = spec_of("f32[4,6] R", m.mesh);
  shardprop_spec_free(freed);
  shardprop_call* call = NULL;
  WORKS(shardprop_call_create(m.library, "aten.cat.default", &call));
  const shardprop_spec* good[] = {x, x, x};
  WORKS(shardprop_call_tensors(call, NULL, good, 3));
  CHECK(inputs_of(&m, call) == 3);
  const shardprop_spec* bad[] = {x, freed};
  FAILS(shardprop_call_tensors(call, "tensors", bad, 2), INVALID);
  CHECK(inputs_of(&m, call) == 3);
  FAILS(shardprop_call_tensors(call, "tensors", good, -1), INVALID);
  FAILS(shardprop_call_tensors(call, "tensors", NULL, 2), INVALID);
  FAILS(shardprop_call_tensor(call, "tensors", freed), INVALID);
  FAILS(shardprop_call_tensor(call, "tensors", NULL), INVALID);
  FAILS(shardprop_call_string(call, "dim", NULL), INVALID);
  FAILS(shardprop_call_dtype(call, "dim", "f33"), 309);
  FAILS(shardprop_call_dtype(call, "dim", NULL), INVALID);
  FAILS(shardprop_call_ints(call, "dim", NULL, 1), INVALID);
  FAILS(shardprop_call_floats(call, "dim", NULL, 1), INVALID);
  CHECK(inputs_of(&m, call) == 3);
  WORKS(shardprop_call_int(call, "dim", 1));
  CHECK(inputs_of(&m, call) == 3);
  /* An answer that fails, and one that has no place. */
  shardprop_sharding* sharding = NULL;
  FAILS(shardprop_propagate(NULL, call, &sharding), INVALID);
  FAILS(shardprop_propagate(m.propagator, call, NULL), INVALID);
  CHECK(inputs_of(&m, call) == 3);
  FAILS(shardprop_cache_set_library(m.cache, NULL), INVALID);
  WORKS(shardprop_cache_propagate(m.cache, call, &sharding));
  shardprop_sharding_free(sharding);

  shardprop_options* options = NULL;
  WORKS(shardprop_options_create(&options));
  static const char* const kSettings[][3] = {{"memory", "1GiB", "much"},
                                             {"overlap", "0.5", "2"},
                                             {"seed", "7", "x"},
                                             {"recipe", "fsdp=dp", "nope=dp"},
                                             {"pin", "w=R", "w"}};
  for (size_t i = 0; i < sizeof kSettings / sizeof kSettings[0]; ++i) {
    const char* name = kSettings[i][0];
    WORKS(shardprop_options_set(options, name, kSettings[i][1]));
    char* before = NULL;
    char* after = NULL;
    WORKS(shardprop_options_get(options, name, &before));
    shardprop_error* error =
        shardprop_options_set(options, name, kSettings[i][2]);
    CHECK(error != NULL);
    shardprop_error_free(error);
    FAILS(shardprop_options_set(options, name, NULL), INVALID);
    WORKS(shardprop_options_get(options, name, &after));
    CHECK(before != NULL && after != NULL && strcmp(before, after) == 0);
    shardprop_text_free(before);
    shardprop_text_free(after);
  }
  FAILS(shardprop_options_set_stop(options, (shardprop_stop*)freed), INVALID);
  FAILS(shardprop_options_set_start_from(options, (shardprop_plan*)freed),
        INVALID);
  FAILS(shardprop_options_set_like(options, (shardprop_plan*)freed), INVALID);
  shardprop_options_free(options);
  shardprop_call_free(call);
  shardprop_spec_free(x);
  free_machine(m);
}

static void test_bad_handles(void) {
  shardprop_mesh* mesh = mesh_of("2");
  shardprop_mesh* freed = mesh;
  shardprop_mesh_free(mesh);
  shardprop_mesh_free(freed);          /* nothing happens */
  shardprop_mesh* next = mesh_of("4"); /* perhaps in its place */
  CHECK(shardprop_mesh_ndim(freed) == 0);
  CHECK(shardprop_mesh_size(NULL) == 0);
  shardprop_spec* spec = NULL;
  FAILS(shardprop_spec_parse("f32[4] R", freed, &spec), INVALID);
  FAILS(shardprop_spec_parse("f32[4] R", NULL, &spec), INVALID);
  FAILS(shardprop_spec_parse(NULL, next, &spec), INVALID);
  FAILS(shardprop_spec_parse("f32[4] R", next, NULL), INVALID);
  FAILS(shardprop_spec_parse("f32[4] R", (const shardprop_mesh*)(void*)&spec,
                             &spec),
        INVALID);
  FAILS(shardprop_spec_parse("f32[4] S(1)", next, &spec), 303);
  spec = spec_of("f32[4] R", next);
  /* Of another type. */
  CHECK(shardprop_mesh_ndim((const shardprop_mesh*)(const void*)spec) == 0);
  shardprop_mesh_free((shardprop_mesh*)(void*)spec);
  CHECK(shardprop_spec_ndim(spec) == 1);
  shardprop_spec_free(spec);
  CHECK(shardprop_spec_text(spec)[0] == '\0');
  CHECK(shardprop_sharding_cost(NULL) == -1);
  CHECK(shardprop_error_code(NULL) == 0);
  CHECK(shardprop_plan_status(NULL)[0] == '\0');
  shardprop_error_free(NULL);
  shardprop_text_free(NULL);
  shardprop_plan* plan = NULL;
  FAILS(shardprop_plan_make(NULL, next, NULL, NULL, NULL, &plan), INVALID);
  shardprop_sharding* sharding = NULL;
  FAILS(shardprop_propagate(NULL, NULL, &sharding), INVALID);
  FAILS(shardprop_call_int(NULL, NULL, 1), INVALID);
  FAILS(shardprop_mesh_parse(NULL, &mesh), INVALID);
  FAILS(shardprop_mesh_parse("dp=0", &mesh), 102);
  shardprop_mesh_free(next);
}

typedef struct {
  int calls;
  const shardprop_stop* stop;
} Watch;

static void watch(const shardprop_progress* now, void* user) {
  Watch* w = (Watch*)user;
  ++w->calls;
  CHECK(now->seconds >= 0 && now->phase[0] != '\0');
  if (w->stop != NULL) WORKS(shardprop_stop_request(w->stop));
}

static void test_planning(const char* file) {
  Machine m = machine_of("dp=2,tp=2");
  shardprop_graph* graph = NULL;
  FAILS(shardprop_load("no such file", m.library, &graph), 401);
  WORKS(shardprop_load(file, m.library, &graph));
  CHECK(shardprop_graph_node_count(graph) > 0);
  CHECK(shardprop_graph_name(graph)[0] != '\0');

  shardprop_options* options = NULL;
  WORKS(shardprop_options_create(&options));
  WORKS(shardprop_options_set(options, "memory", "80GiB"));
  WORKS(shardprop_options_set(options, "time_limit", "20"));
  FAILS(shardprop_options_set(options, "memory", "much"), INVALID);
  FAILS(shardprop_options_set(options, "speed", "1"), INVALID);
  char* value = NULL;
  WORKS(shardprop_options_get(options, "time_limit", &value));
  CHECK(value != NULL && strcmp(value, "20") == 0);
  shardprop_text_free(value);
  Watch seen = {0, NULL};
  WORKS(shardprop_options_set_progress(options, watch, &seen));

  shardprop_plan* plan = NULL;
  WORKS(shardprop_plan_make(graph, m.mesh, m.topology, m.library, options,
                            &plan));
  CHECK(seen.calls > 0);
  CHECK(strcmp(shardprop_plan_status(plan), "optimal") == 0 ||
        strcmp(shardprop_plan_status(plan), "feasible") == 0);
  char* text = NULL;
  WORKS(shardprop_plan_explain(plan, &text));
  CHECK(text != NULL && strlen(text) > 100);
  shardprop_text_free(text);
  char* json = NULL;
  WORKS(shardprop_plan_to_json(plan, &json));
  CHECK(json != NULL && strstr(json, "shardprop.plan/") != NULL);
  shardprop_plan_free(plan);
  WORKS(shardprop_plan_from_json(json, &plan));
  char* again = NULL;
  WORKS(shardprop_plan_to_json(plan, &again));
  CHECK(json != NULL && again != NULL && strcmp(json, again) == 0);
  shardprop_text_free(json);
  shardprop_text_free(again);

  /* A search that starts from the plan, which may then be freed. */
  WORKS(shardprop_options_get(options, "gap", &value));
  CHECK(value != NULL && strcmp(value, "0.01") == 0);
  shardprop_text_free(value);
  WORKS(shardprop_options_set_start_from(options, plan));
  shardprop_plan_free(plan);
  WORKS(shardprop_plan_make(graph, m.mesh, m.topology, m.library, options,
                            &plan));
  WORKS(shardprop_plan_to_json(plan, &json));
  CHECK(json != NULL && strstr(json, "earlier_plan") != NULL);
  shardprop_text_free(json);
  WORKS(shardprop_options_set_start_from(options, NULL));

  /* A plan that is laid out as another one. */
  WORKS(shardprop_options_set_like(options, plan));
  shardprop_plan_free(plan);
  WORKS(shardprop_plan_make(graph, m.mesh, m.topology, m.library, options,
                            &plan));
  WORKS(shardprop_plan_to_json(plan, &json));
  CHECK(json != NULL && strstr(json, "\"stored:") != NULL);
  shardprop_text_free(json);
  WORKS(shardprop_options_set_like(options, NULL));
  shardprop_plan_free(plan);
  FAILS(shardprop_plan_from_json("{", &plan), 706);
  CHECK(plan == NULL);

  /* A stop before there is a search. */
  shardprop_stop* stop = NULL;
  WORKS(shardprop_stop_create(&stop));
  WORKS(shardprop_stop_request(stop));
  WORKS(shardprop_options_set_stop(options, stop));
  FAILS(
      shardprop_plan_make(graph, m.mesh, m.topology, m.library, options, &plan),
      5);
  shardprop_stop_free(stop);
  shardprop_options_free(options);
  shardprop_graph_free(graph);
  free_machine(m);
}

int main(int argc, char** argv) {
  CHECK(shardprop_version() == SHARDPROP_VERSION);
  test_values();
  test_propagation();
  test_arguments();
  test_bad_handles();
  test_failures_change_nothing();
  test_planning(argc > 1 ? argv[1] : "examples/graphs/tiny/vit_infer.json.gz");
  if (failures == 0) puts("all as it should be");
  return failures == 0 ? 0 : 1;
}
