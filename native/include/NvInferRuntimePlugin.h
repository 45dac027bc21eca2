// Plugin classes and their registry. Part of noria, Apache-2.0.
#pragma once

#include "NvInferRuntimeCommon.h"
