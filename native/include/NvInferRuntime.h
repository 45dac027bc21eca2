// Engines and what runs them. Part of noria, Apache-2.0.
#if !defined(NORIA_NV_INFER_RUNTIME_H) && !defined(NV_INFER_RUNTIME_H)
#define NORIA_NV_INFER_RUNTIME_H
#define NV_INFER_RUNTIME_H  // NVIDIA's own header, before or after this one, declares the same

#include "NvInferRuntimeCommon.h"
#include "noria/runtime.h"

#endif  // NORIA_NV_INFER_RUNTIME_H
