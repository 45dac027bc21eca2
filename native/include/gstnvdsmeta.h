/* The types of nvdsmeta.h; functions of GStreamer's buffers are not here. */
#ifndef HEADRACE_GSTNVDSMETA_H
#define HEADRACE_GSTNVDSMETA_H
#include "nvdsmeta.h"
#endif
