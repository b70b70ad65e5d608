// Keeps Open MPI's plugins loaded until the process ends under the address
// sanitizer. Their leaks then have symbol names that lsan.supp can list.
#if defined(__SANITIZE_ADDRESS__)
extern "C" int dlclose(void*);
extern "C" int dlclose(void*) { return 0; }
#endif
