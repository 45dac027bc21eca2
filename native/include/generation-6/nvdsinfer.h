/* The view that programs of generation 6.x have of nvdsinfer.h: this folder comes first on the
 * include path.
 *
 * Part of headrace, Apache-2.0.
 */
#ifndef HEADRACE_NVDSINFER_GENERATION
#define HEADRACE_NVDSINFER_GENERATION 6
#endif
#include "../nvdsinfer.h"
