// Under the address sanitizer: Open MPI's plugins stay loaded until the process
// ends, so that what they never free has a name that lsan.supp can give.
#if defined(__SANITIZE_ADDRESS__)
extern "C" int dlclose(void*);
extern "C" int dlclose(void*) { return 0; }
#endif
