// Types, loggers, plugin classes and their registry.
//
// Part of headrace, Apache-2.0. Written from a description of the interface; what it declares runs
// on the CPU, through the program that loads the library. See docs/cpp-engines.md.
#if !defined(HEADRACE_NV_INFER_RUNTIME_COMMON_H) && !defined(NV_INFER_RUNTIME_COMMON_H)
#define HEADRACE_NV_INFER_RUNTIME_COMMON_H
#define NV_INFER_RUNTIME_COMMON_H  // NVIDIA's own header, before or after this one, declares the
                                   // same

#include <cuda_runtime_api.h>  // sources rely on it

#include "NvInferVersion.h"
#include "headrace/registry.h"

#endif  // HEADRACE_NV_INFER_RUNTIME_COMMON_H
