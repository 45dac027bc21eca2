// Builders, networks and engines for libraries of line 8.
#define NV_TENSORRT_MAJOR 8
#include "foreign/line8.h"

#include "foreign/facing.h"
