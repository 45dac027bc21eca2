// Engines and what runs them. Part of headrace, Apache-2.0.
#if !defined(HEADRACE_NV_INFER_RUNTIME_H) && !defined(NV_INFER_RUNTIME_H)
#define HEADRACE_NV_INFER_RUNTIME_H
#define NV_INFER_RUNTIME_H  // NVIDIA's own header, before or after this one, declares the same

#include "NvInferRuntimeCommon.h"
#include "headrace/runtime.h"

#endif  // HEADRACE_NV_INFER_RUNTIME_H
