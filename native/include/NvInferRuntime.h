// Engines and what runs them. Part of noria, Apache-2.0.
#ifndef NORIA_NV_INFER_RUNTIME_H
#define NORIA_NV_INFER_RUNTIME_H

#include "NvInferRuntimeCommon.h"
#include "noria/runtime.h"

#endif  // NORIA_NV_INFER_RUNTIME_H
