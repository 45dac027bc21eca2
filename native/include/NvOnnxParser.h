// Named by the custom-library headers since 7.1.
//
// Part of noria, Apache-2.0.
#pragma once

#include "NvInfer.h"

namespace nvonnxparser {
class IParser;
}
