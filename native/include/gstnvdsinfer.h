/* Outputs of a model as metadata: the types, for sources of parsers that include their header. */
#ifndef HEADRACE_GSTNVDSINFER_H
#define HEADRACE_GSTNVDSINFER_H

#include "nvdsinfer.h"
#include "nvdsmeta.h"

typedef struct {
    guint unique_id, num_output_layers;
    NvDsInferLayerInfo *output_layers_info;
    void **out_buf_ptrs_host, **out_buf_ptrs_dev;
    gint gpu_id;
    void *priv_data;
    NvDsInferNetworkInfo network_info;
    gboolean maintain_aspect_ratio;
} NvDsInferTensorMeta;

typedef struct {
    guint classes, width, height;
    gint *class_map;
    gfloat *class_probabilities_map;
    void *priv_data;
} NvDsInferSegmentationMeta;

#endif
