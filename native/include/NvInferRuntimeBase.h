// Types, loggers and error recorders. Part of noria, Apache-2.0.
#pragma once

#include "NvInferRuntimeCommon.h"
