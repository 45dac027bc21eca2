/* Included by sources for its types. Part of headrace, Apache-2.0. */
#ifndef HEADRACE_CUDA_H
#define HEADRACE_CUDA_H

#include "cuda_runtime_api.h"

#define CUDA_VERSION CUDART_VERSION
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;

#endif /* HEADRACE_CUDA_H */
