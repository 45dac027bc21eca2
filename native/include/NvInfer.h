// Networks, layers and builders, source-compatible with what custom libraries include.
//
// Part of headrace, Apache-2.0. Written from a description of the interface; see
// docs/cpp-engines.md. -DNV_TENSORRT_MAJOR=5 … 11 chooses the generation; 10 is the default.
#if !defined(HEADRACE_NV_INFER_H) && !defined(NV_INFER_H)
#define HEADRACE_NV_INFER_H
#define NV_INFER_H  // NVIDIA's own header, before or after this one, declares the same

// Generous on purpose: existing sources rely on these coming along.
#include <cstring>
#include <string>
#include <vector>

#include "NvInferRuntime.h"
#include "headrace/builder.h"

#endif  // HEADRACE_NV_INFER_H
