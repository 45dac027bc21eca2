// Fields, creators and the base of plugins, which 10.x has in a header of its own. Part of
// headrace, Apache-2.0.
#pragma once

#include "NvInferRuntimeCommon.h"
