// Plugins of TensorRT are not needed to compile parsers.
//
// Part of noria, Apache-2.0.
#pragma once

#include "NvInfer.h"
