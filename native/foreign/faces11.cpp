// Builders, networks and engines for libraries of line 11.
#define NV_TENSORRT_MAJOR 11
#include "foreign/line11.h"

#include "foreign/facing.h"
