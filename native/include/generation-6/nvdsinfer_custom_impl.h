/* The view that programs of generation 6.x have of nvdsinfer_custom_impl.h: this folder comes first
 * on the include path.
 *
 * Part of headrace, Apache-2.0.
 */
#ifndef HEADRACE_NVDSINFER_GENERATION
#define HEADRACE_NVDSINFER_GENERATION 6
#endif
#include "../nvdsinfer_custom_impl.h"
