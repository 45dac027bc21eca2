/* See cublas_v2.h. Part of noria, Apache-2.0. */
#pragma once
#include "cublas_v2.h"
