/* Raw outputs of models as metadata, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_GSTNVDSINFER_H
#define HEADRACE_GSTNVDSINFER_H

#include "nvdsinfer.h"
#include "gstnvdsmeta.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct _NvDsInferTensorMeta NvDsInferTensorMeta;
typedef struct _NvDsInferSegmentationMeta NvDsInferSegmentationMeta;
typedef void (*gst_nvinfer_raw_output_generated_callback)(GstBuffer *buf, NvDsInferNetworkInfo *network_info, NvDsInferLayerInfo *layers_info, guint num_layers, guint batch_size, gpointer user_data);

struct _NvDsInferTensorMeta {
    guint unique_id;
    guint num_output_layers;
    NvDsInferLayerInfo* output_layers_info;
    void** out_buf_ptrs_host;
    void** out_buf_ptrs_dev;
    gint gpu_id;
    void* priv_data;
    NvDsInferNetworkInfo network_info;
    gboolean maintain_aspect_ratio;
    gboolean symmetric_padding;
};

struct _NvDsInferSegmentationMeta {
    guint classes;
    guint width;
    guint height;
    gint* class_map;
    gfloat* class_probabilities_map;
    void* priv_data;
    gint unique_id;
};

#ifdef __cplusplus
}
#endif

#endif
