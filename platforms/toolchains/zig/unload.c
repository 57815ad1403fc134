/* What crtbeginS.o does elsewhere, and zig leaves out: the destructors of a library's objects run when the library is
 * unloaded. Without it they would stay on the list that exit() works through, pointing into memory that is gone. */
extern void* __dso_handle __attribute__((visibility("hidden")));
extern void __cxa_finalize(void*);

/* Linked first: the array is run from its end, so this comes after every destructor that the library itself has. */
__attribute__((destructor)) static void run_destructors(void) { __cxa_finalize(&__dso_handle); }
