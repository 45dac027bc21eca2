/* Optical flow, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_NVDS_OPTICALFLOW_META_H
#define HEADRACE_NVDS_OPTICALFLOW_META_H

#include "headrace/glib.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct _NvDsOpticalFlowMeta NvDsOpticalFlowMeta;
typedef struct _NvOFFlowVector NvOFFlowVector;

struct _NvDsOpticalFlowMeta {
    unsigned int rows;
    unsigned int cols;
    unsigned int mv_size;
    unsigned int cost_size;
    unsigned long frame_num;
    void* data;
    void* cost;
    void* priv;
    void* reserved;
};

struct _NvOFFlowVector {
    short flowx;
    short flowy;
};

#ifdef __cplusplus
}
#endif

#endif
