/* Marks of the runtime of CUDA: none here. Part of headrace, Apache-2.0. */
#ifndef HEADRACE_NVTOOLSEXTCUDART_H
#define HEADRACE_NVTOOLSEXTCUDART_H

#include "cuda_runtime_api.h"
#include "nvToolsExt.h"

#endif
