// Builders, networks and engines for libraries of line 7.
#define NV_TENSORRT_MAJOR 7
#include "foreign/line7.h"

#include "foreign/facing.h"
