/* See ../nvdstracker.h. */
#ifndef HEADRACE_NVMOT
#define HEADRACE_NVMOT 600
#endif
#include "../nvdstracker.h"
