// Plugin classes and their registry. Part of headrace, Apache-2.0.
#pragma once

#include "NvInferRuntimeCommon.h"
