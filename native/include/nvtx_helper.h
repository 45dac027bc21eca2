/* Marks for a profiler, under the name that elements include; they record nothing here.
 *
 * Part of headrace, Apache-2.0. */
#ifndef HEADRACE_NVTX_HELPER_H
#define HEADRACE_NVTX_HELPER_H

static inline void nvtx_helper_push_pop(char *context) { (void)context; }
static inline void nvtx_helper_start_end(char *context, unsigned long *id) {
    (void)context, (void)id;
}

#endif
