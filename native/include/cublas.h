/* See cublas_v2.h. Part of headrace, Apache-2.0. */
#pragma once
#include "cublas_v2.h"
