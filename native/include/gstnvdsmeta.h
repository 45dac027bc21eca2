/* The types of nvdsmeta.h; functions of GStreamer's buffers are not here. */
#ifndef NORIA_GSTNVDSMETA_H
#define NORIA_GSTNVDSMETA_H
#include "nvdsmeta.h"
#endif
