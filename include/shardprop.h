/* shardprop.h: the C API. Compiles as C11 and as C++; link with -lshardprop.
 *
 * These rules hold for all functions.
 *
 * Errors. A function that can fail returns a shardprop_error*: NULL on success,
 * else an error that the caller frees. After a failure outputs are NULL or 0.
 * No function throws, prints or exits, even if memory runs out.
 *
 * Ownership. A handle that is returned through a pointer belongs to the caller,
 * who frees it with the free function of its type. Handles may be freed in any
 * order, since a handle keeps the data that it needs alive. Handles that are
 * passed in stay the caller's. A returned `const char*` belongs to the handle
 * passed to the function, and is valid until that handle is freed. Text that is
 * returned through a `char**` belongs to the caller, who frees it with
 * shardprop_text_free(). Freeing NULL has no effect.
 *
 * Handles. A handle that is NULL, freed, or of another type is an error
 * (SP0001) if the function can return one. Other functions then return 0, -1 or
 * "". Freeing a handle twice has no effect.
 *
 * Threads. Several threads may use a handle at once, except a shardprop_call
 * and a shardprop_options, which are for one thread at a time. A thread must
 * not free a handle that another thread uses.
 *
 * Texts are UTF-8. Specs are written as "bf16[8,2048] S(0),R". Times are
 * nanoseconds, unless a name states another unit.
 *
 *   shardprop_mesh* mesh = NULL;
 *   shardprop_error* error = shardprop_mesh_parse("dp=2,tp=4", &mesh);
 *   if (error != NULL) fputs(shardprop_error_text(error), stderr);
 *   shardprop_error_free(error);
 *   shardprop_mesh_free(mesh);
 */
#ifndef SHARDPROP_H
#define SHARDPROP_H

#include <stddef.h>
#include <stdint.h>

#if defined(SHARDPROP_BUILDING)
#define SHARDPROP_API __attribute__((visibility("default")))
#else
#define SHARDPROP_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --- version --- */

/* The version of this header: 10000 major + 100 minor + patch. A program runs
 * with any library that is not older than its header, within one major version
 * (before 1.0: within one minor version). */
#define SHARDPROP_VERSION 100
/* Returns the version of the library that is running. */
SHARDPROP_API int32_t shardprop_version(void);

typedef struct shardprop_error shardprop_error;
typedef struct shardprop_mesh shardprop_mesh;
typedef struct shardprop_topology shardprop_topology;
typedef struct shardprop_spec shardprop_spec;
typedef struct shardprop_library shardprop_library;
typedef struct shardprop_call shardprop_call;
typedef struct shardprop_propagator shardprop_propagator;
typedef struct shardprop_cache shardprop_cache;
typedef struct shardprop_sharding shardprop_sharding;
typedef struct shardprop_redistribution shardprop_redistribution;
typedef struct shardprop_graph shardprop_graph;
typedef struct shardprop_options shardprop_options;
typedef struct shardprop_stop shardprop_stop;
typedef struct shardprop_plan shardprop_plan;

/* --- errors and texts --- */

/* Returns the number of the code: 102 for SP0102, 0 for NULL. */
SHARDPROP_API int32_t shardprop_error_code(const shardprop_error* error);
SHARDPROP_API const char* shardprop_error_message(const shardprop_error* error);
/* Returns a file, a JSON path, a flag or an operator; may be empty. */
SHARDPROP_API const char* shardprop_error_place(const shardprop_error* error);
/* Returns advice on how to fix the error; may be empty. */
SHARDPROP_API const char* shardprop_error_help(const shardprop_error* error);
/* Returns the whole error with notes, as the command line prints it. */
SHARDPROP_API const char* shardprop_error_text(const shardprop_error* error);
SHARDPROP_API void shardprop_error_free(shardprop_error* error);

SHARDPROP_API void shardprop_text_free(char* text);

/* --- meshes, topologies, specs --- */

/* Parses "dp=2,tp=4", or "2,4". */
SHARDPROP_API shardprop_error* shardprop_mesh_parse(const char* text,
                                                    shardprop_mesh** mesh);
/* Makes a mesh of any ranks in row-major order. `names` may be NULL (d0, d1,
 * ...). */
SHARDPROP_API shardprop_error* shardprop_mesh_create(
    const char* const* names, const int64_t* sizes, int32_t ndim,
    const int64_t* ranks, int64_t rank_count, shardprop_mesh** mesh);
SHARDPROP_API int32_t shardprop_mesh_ndim(const shardprop_mesh* mesh);
SHARDPROP_API int64_t shardprop_mesh_size(const shardprop_mesh* mesh);
SHARDPROP_API int64_t shardprop_mesh_dim_size(const shardprop_mesh* mesh,
                                              int32_t dim);
SHARDPROP_API const char* shardprop_mesh_dim_name(const shardprop_mesh* mesh,
                                                  int32_t dim);
SHARDPROP_API void shardprop_mesh_free(shardprop_mesh* mesh);

/* Finds a preset ("dgx-h100"), a topology file (.toml), or the default if the
 * argument is NULL. */
SHARDPROP_API shardprop_error* shardprop_topology_find(
    const char* name_or_file, shardprop_topology** topology);
SHARDPROP_API const char* shardprop_topology_name(
    const shardprop_topology* topology);
SHARDPROP_API void shardprop_topology_free(shardprop_topology* topology);

/* Parses "bf16[8,2048] S(0),R" on a mesh. */
SHARDPROP_API shardprop_error* shardprop_spec_parse(const char* text,
                                                    const shardprop_mesh* mesh,
                                                    shardprop_spec** spec);
SHARDPROP_API const char* shardprop_spec_text(const shardprop_spec* spec);
SHARDPROP_API const char* shardprop_spec_layout(const shardprop_spec* spec);
SHARDPROP_API const char* shardprop_spec_dtype(const shardprop_spec* spec);
SHARDPROP_API int32_t shardprop_spec_ndim(const shardprop_spec* spec);
SHARDPROP_API int64_t shardprop_spec_size(const shardprop_spec* spec,
                                          int32_t dim);
/* Writes the local shape of a rank, which has shardprop_spec_ndim() sizes. */
SHARDPROP_API shardprop_error* shardprop_spec_local_shape(
    const shardprop_spec* spec, int64_t rank, int64_t* sizes);
/* Returns 1 if both are the same tensor with the same layout on the same mesh.
 */
SHARDPROP_API int32_t shardprop_spec_equal(const shardprop_spec* a,
                                           const shardprop_spec* b);
SHARDPROP_API void shardprop_spec_free(shardprop_spec* spec);

/* --- operators --- */

SHARDPROP_API shardprop_error* shardprop_library_standard(
    shardprop_library** library);
/* Returns a library with one more operator, or with another definition for an
 * operator that it has.
 *
 * declaration  as in torch.library, "mylib::swiglu(Tensor x, Tensor gate) ->
 *              Tensor"; NULL if the operator is declared already
 * name         of the definition, "aten.mm"; NULL: that of the declaration
 * form         a rule such as "mk,kn->mn", "pointwise().promoted()",
 *              "reduction(sum)" or "along(dim)"; docs/row_language.md has the
 *              language, which --rule and Python share */
SHARDPROP_API shardprop_error* shardprop_library_add(
    const shardprop_library* library, const char* declaration, const char* name,
    const char* form, shardprop_library** with);
/* Returns a library with the operators of a file: declarations and rules, as in
 * docs/add_an_operator.md. */
SHARDPROP_API shardprop_error* shardprop_library_read(
    const shardprop_library* library, const char* file,
    shardprop_library** with);
SHARDPROP_API void shardprop_library_free(shardprop_library* library);

/* Creates a call of an operator without arguments. Add arguments by name, or in
 * declared order if `name` is NULL. Arguments that are not set have their
 * defaults. A function that fails does not change the call. */
SHARDPROP_API shardprop_error* shardprop_call_create(
    const shardprop_library* library, const char* op, shardprop_call** call);
/* Removes all arguments of the call. */
SHARDPROP_API shardprop_error* shardprop_call_clear(shardprop_call* call);
SHARDPROP_API shardprop_error* shardprop_call_tensor(
    shardprop_call* call, const char* name, const shardprop_spec* spec);
/* Adds a list of tensors; NULL in `specs` is an absent tensor. */
SHARDPROP_API shardprop_error* shardprop_call_tensors(
    shardprop_call* call, const char* name, const shardprop_spec* const* specs,
    int64_t count);
SHARDPROP_API shardprop_error* shardprop_call_none(shardprop_call* call,
                                                   const char* name);
SHARDPROP_API shardprop_error* shardprop_call_bool(shardprop_call* call,
                                                   const char* name,
                                                   int32_t value);
SHARDPROP_API shardprop_error* shardprop_call_int(shardprop_call* call,
                                                  const char* name,
                                                  int64_t value);
SHARDPROP_API shardprop_error* shardprop_call_float(shardprop_call* call,
                                                    const char* name,
                                                    double value);
SHARDPROP_API shardprop_error* shardprop_call_string(shardprop_call* call,
                                                     const char* name,
                                                     const char* value);
/* Adds a dtype argument, such as "bf16". */
SHARDPROP_API shardprop_error* shardprop_call_dtype(shardprop_call* call,
                                                    const char* name,
                                                    const char* dtype);
SHARDPROP_API shardprop_error* shardprop_call_ints(shardprop_call* call,
                                                   const char* name,
                                                   const int64_t* values,
                                                   int64_t count);
SHARDPROP_API shardprop_error* shardprop_call_floats(shardprop_call* call,
                                                     const char* name,
                                                     const double* values,
                                                     int64_t count);
SHARDPROP_API void shardprop_call_free(shardprop_call* call);

/* --- propagation --- */

/* These values say whether inputs of a call may be redistributed. If moves are
 * forbidden and an input must move, the call fails. */
enum { SHARDPROP_MOVES_ALLOWED = 0, SHARDPROP_MOVES_FORBIDDEN = 2 };

SHARDPROP_API shardprop_error* shardprop_propagator_create(
    const shardprop_mesh* mesh, const shardprop_topology* topology,
    const shardprop_library* library, int32_t moves,
    shardprop_propagator** propagator);
SHARDPROP_API shardprop_error* shardprop_propagate(
    const shardprop_propagator* propagator, shardprop_call* call,
    shardprop_sharding** sharding);
/* Returns every strategy with its cost and the reason why it was not chosen,
 * one per line. */
SHARDPROP_API shardprop_error* shardprop_candidates(
    const shardprop_propagator* propagator, shardprop_call* call, char** text);
SHARDPROP_API void shardprop_propagator_free(shardprop_propagator* propagator);

/* Makes a cache of answers with a maximum of entries and bytes; 0 means the
 * default. */
SHARDPROP_API shardprop_error* shardprop_cache_create(
    const shardprop_propagator* propagator, int64_t most_entries,
    int64_t most_bytes, shardprop_cache** cache);
/* Replaces the operators and starts an empty generation of the cache. */
SHARDPROP_API shardprop_error* shardprop_cache_set_library(
    shardprop_cache* cache, const shardprop_library* library);
typedef struct shardprop_cache_statistics {
  uint64_t hits;
  uint64_t shared_hits; /* for a call with other sizes */
  uint64_t misses;
  uint64_t waits; /* for another thread's miss */
  uint64_t evictions;
  uint64_t entries;
  uint64_t bytes;
  uint64_t generation;
} shardprop_cache_statistics;
SHARDPROP_API shardprop_error* shardprop_cache_read_statistics(
    const shardprop_cache* cache, shardprop_cache_statistics* statistics);
SHARDPROP_API shardprop_error* shardprop_cache_propagate(
    const shardprop_cache* cache, shardprop_call* call,
    shardprop_sharding** sharding);
SHARDPROP_API void shardprop_cache_free(shardprop_cache* cache);

/* A shardprop_sharding describes how an operator runs: the required specs of
 * its inputs and the specs of its outputs. */
SHARDPROP_API int64_t
shardprop_sharding_input_count(const shardprop_sharding* sharding);
SHARDPROP_API int64_t
shardprop_sharding_output_count(const shardprop_sharding* sharding);
SHARDPROP_API shardprop_error* shardprop_sharding_input(
    const shardprop_sharding* sharding, int64_t i, shardprop_spec** spec);
SHARDPROP_API shardprop_error* shardprop_sharding_output(
    const shardprop_sharding* sharding, int64_t i, shardprop_spec** spec);
/* Returns the number of inputs that must be redistributed first. */
SHARDPROP_API int64_t
shardprop_sharding_move_count(const shardprop_sharding* sharding);
SHARDPROP_API shardprop_error* shardprop_sharding_move(
    const shardprop_sharding* sharding, int64_t i, int64_t* input,
    shardprop_redistribution** redistribution);
/* Returns the number of arguments that differ between ranks, such as the sizes
 * of a view. */
SHARDPROP_API int64_t
shardprop_sharding_rank_argument_count(const shardprop_sharding* sharding);
SHARDPROP_API const char* shardprop_sharding_rank_argument_name(
    const shardprop_sharding* sharding, int64_t i);
/* Writes up to `capacity` values; `count` receives their total number. */
SHARDPROP_API shardprop_error* shardprop_sharding_rank_argument(
    const shardprop_sharding* sharding, int64_t i, int64_t rank,
    int64_t* values, int64_t capacity, int64_t* count);
/* Returns the cost of moves and of collectives inside the operator, in
 * nanoseconds. The inside cost is that of the collectives only. */
SHARDPROP_API int64_t
shardprop_sharding_cost(const shardprop_sharding* sharding);
SHARDPROP_API int64_t
shardprop_sharding_inside_cost(const shardprop_sharding* sharding);
SHARDPROP_API void shardprop_sharding_free(shardprop_sharding* sharding);

/* --- redistribution --- */

SHARDPROP_API shardprop_error* shardprop_redistribution_plan(
    const shardprop_spec* src, const shardprop_spec* dst,
    const shardprop_topology* topology,
    shardprop_redistribution** redistribution);
typedef struct shardprop_step {
  const char* kind;       /* "all_gather", "slice", ... */
  uint32_t mesh_dims;     /* one bit per mesh dim */
  int64_t bytes_per_rank; /* maximum over ranks of the sent bytes */
  int64_t nanoseconds;
} shardprop_step;
SHARDPROP_API int64_t
shardprop_redistribution_step_count(const shardprop_redistribution* plan);
SHARDPROP_API shardprop_error* shardprop_redistribution_step(
    const shardprop_redistribution* plan, int64_t i, shardprop_step* step);
SHARDPROP_API int64_t
shardprop_redistribution_cost(const shardprop_redistribution* plan);
SHARDPROP_API void shardprop_redistribution_free(
    shardprop_redistribution* plan);

/* --- planning a graph --- */

/* Loads an exported program: .pt2, its JSON, or the gzip of the JSON. */
SHARDPROP_API shardprop_error* shardprop_load(const char* file,
                                              const shardprop_library* library,
                                              shardprop_graph** graph);
/* Loads a program with the options "rule" (rules for operators of your own), "bound",
 * "size", "other_size" (the path of the same program at other sizes), "blocks" and "program" of
 * `options`, as the command line does. An error about one of them has its text as
 * the location. Plans of the graph record these options. */
SHARDPROP_API shardprop_error* shardprop_load_with(
    const char* file, const shardprop_options* options,
    shardprop_graph** graph);
SHARDPROP_API const char* shardprop_graph_name(const shardprop_graph* graph);
SHARDPROP_API int64_t shardprop_graph_node_count(const shardprop_graph* graph);
SHARDPROP_API void shardprop_graph_free(shardprop_graph* graph);

SHARDPROP_API shardprop_error* shardprop_options_create(
    shardprop_options** options);
/* Sets an option. Names, values and defaults are those of the command line:
 * "memory", "80GiB". A list, such as "pin" or "rule", gets one value more. An error
 * does not change the options. */
SHARDPROP_API shardprop_error* shardprop_options_set(shardprop_options* options,
                                                     const char* name,
                                                     const char* value);
SHARDPROP_API shardprop_error* shardprop_options_get(
    const shardprop_options* options, const char* name, char** value);
typedef struct shardprop_progress {
  const char* phase; /* "setup", "search" or "report" */
  double seconds;
  int64_t objective;   /* nanoseconds; -1: none yet */
  int64_t lower_bound; /* -1: none yet */
} shardprop_progress;
/* Sets a function that the planning thread calls at most a few times a second.
 */
SHARDPROP_API shardprop_error* shardprop_options_set_progress(
    shardprop_options* options,
    void (*progress)(const shardprop_progress*, void* user), void* user);
/* Sets the stop; once it is requested, planning ends with the best plan so far.
 * NULL removes it. */
SHARDPROP_API shardprop_error* shardprop_options_set_stop(
    shardprop_options* options, const shardprop_stop* stop);
/* Sets a plan that the search starts from: of the same graph, or of one whose names
 * mostly agree. NULL removes it. The options keep a copy of the plan. */
SHARDPROP_API shardprop_error* shardprop_options_set_start_from(
    shardprop_options* options, const shardprop_plan* plan);
/* Lays parameters and buffers out as a plan of the same model and mesh does. NULL
 * removes it. The options keep a copy of the plan. */
SHARDPROP_API shardprop_error* shardprop_options_set_like(
    shardprop_options* options, const shardprop_plan* plan);
SHARDPROP_API void shardprop_options_free(shardprop_options* options);

SHARDPROP_API shardprop_error* shardprop_stop_create(shardprop_stop** stop);
/* Requests the stop; any thread may call this. */
SHARDPROP_API shardprop_error* shardprop_stop_request(
    const shardprop_stop* stop);
SHARDPROP_API void shardprop_stop_free(shardprop_stop* stop);

/* Makes a plan. If `library` is NULL, it is the one that the graph was loaded with. If
 * `options` is NULL, the defaults are those of `shardprop explain`. An infeasible problem is not an error: the status of the plan
 * reports it. */
SHARDPROP_API shardprop_error* shardprop_plan_make(
    const shardprop_graph* graph, const shardprop_mesh* mesh,
    const shardprop_topology* topology, const shardprop_library* library,
    const shardprop_options* options, shardprop_plan** plan);
/* Returns "optimal", "feasible", "infeasible" or "unknown". */
SHARDPROP_API const char* shardprop_plan_status(const shardprop_plan* plan);
/* Returns the text that `shardprop explain` prints. */
SHARDPROP_API shardprop_error* shardprop_plan_explain(
    const shardprop_plan* plan, char** text);
/* These write and read a plan as JSON in the form shardprop.plan/3.
 * Files of schema 2 can still be read. */
SHARDPROP_API shardprop_error* shardprop_plan_to_json(
    const shardprop_plan* plan, char** json);
SHARDPROP_API shardprop_error* shardprop_plan_from_json(const char* json,
                                                        shardprop_plan** plan);
SHARDPROP_API void shardprop_plan_free(shardprop_plan* plan);

#ifdef __cplusplus
}
#endif

#endif /* SHARDPROP_H */
