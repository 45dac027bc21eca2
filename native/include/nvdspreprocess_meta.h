// Regions and tensors of nvdspreprocess, in the layout of 9.1. Part of headrace, Apache-2.0.
#ifndef HEADRACE_NVDSPREPROCESS_META_H
#define HEADRACE_NVDSPREPROCESS_META_H

#include <string>
#include <vector>

#include "nvds_roi_meta.h"
#include "nvdsinfer.h"

typedef struct {
    void *raw_tensor_buffer;
    guint64 buffer_size;
    std::vector<int> tensor_shape;
    NvDsDataType data_type;
    std::string tensor_name;
    guint gpu_id;
    void *private_data;
    guint meta_id;
    gboolean maintain_aspect_ratio;
} NvDsPreProcessTensorMeta;

typedef struct {
    std::vector<guint64> target_unique_ids;
    NvDsPreProcessTensorMeta *tensor_meta;
    std::vector<NvDsRoiMeta> roi_vector;
    void *private_data;
} GstNvDsPreProcessBatchMeta;

#endif
