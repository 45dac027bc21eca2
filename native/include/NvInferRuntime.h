// The run-time half of NvInfer.h.
//
// Part of noria, Apache-2.0.
#pragma once

#include "NvInfer.h"
