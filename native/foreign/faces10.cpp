// Builders, networks and engines for libraries of line 10.
#define NV_TENSORRT_MAJOR 10
#include "foreign/line10.h"

#include "foreign/facing.h"
