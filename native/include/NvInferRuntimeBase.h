// Types, loggers and error recorders. Part of headrace, Apache-2.0.
#pragma once

#include "NvInferRuntimeCommon.h"
