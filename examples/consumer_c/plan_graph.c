/* Plans an exported program from C and prints what the plan does:
 *
 *   plan_graph model.pt2 dp=2,tp=4
 */
#include <shardprop.h>

#include <stdio.h>

/* Prints an error, if there is one, and says whether there was none. */
static int ok(shardprop_error* error) {
  if (error == NULL) return 1;
  fputs(shardprop_error_text(error), stderr);
  shardprop_error_free(error);
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fputs("usage: plan_graph MODEL MESH\n", stderr);
    return 2;
  }
  shardprop_library* library = NULL;
  shardprop_topology* topology = NULL;
  shardprop_mesh* mesh = NULL;
  shardprop_graph* graph = NULL;
  shardprop_options* options = NULL;
  shardprop_plan* plan = NULL;
  char* text = NULL;
  const int done =
      ok(shardprop_library_standard(&library)) &&
      ok(shardprop_topology_find(NULL, &topology)) &&
      ok(shardprop_mesh_parse(argv[2], &mesh)) &&
      ok(shardprop_load(argv[1], library, &graph)) &&
      ok(shardprop_options_create(&options)) &&
      ok(shardprop_options_set(options, "time_limit", "10")) &&
      ok(shardprop_plan_make(graph, mesh, topology, library, options, &plan)) &&
      ok(shardprop_plan_explain(plan, &text));
  if (done) {
    printf("%s: %s\n%s", shardprop_graph_name(graph),
           shardprop_plan_status(plan), text);
  }
  /* Freeing NULL does nothing. */
  shardprop_text_free(text);
  shardprop_plan_free(plan);
  shardprop_options_free(options);
  shardprop_graph_free(graph);
  shardprop_mesh_free(mesh);
  shardprop_topology_free(topology);
  shardprop_library_free(library);
  return done ? 0 : 1;
}
