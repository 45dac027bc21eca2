// What nvdspreprocess and the user's library exchange, in the layout of 9.1.
// Part of headrace, Apache-2.0.
#ifndef HEADRACE_NVDSPREPROCESS_INTERFACE_H
#define HEADRACE_NVDSPREPROCESS_INTERFACE_H

#include <cuda.h>
#include <cuda_runtime.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "gstnvdsmeta.h"
#include "nvbufsurface.h"
#include "nvbufsurftransform.h"
#include "nvds_roi_meta.h"
#include "nvtx3/nvToolsExt.h"

// The library's own: what it makes in initLib, and gets back with each call.
typedef struct CustomCtx CustomCtx;

typedef enum {
    NVDSPREPROCESS_SUCCESS = 0,
    NVDSPREPROCESS_CONFIG_FAILED = 1,
    NVDSPREPROCESS_CUSTOM_LIB_FAILED = 2,
    NVDSPREPROCESS_CUSTOM_TRANSFORMATION_FAILED = 3,
    NVDSPREPROCESS_CUSTOM_TENSOR_FAILED = 4,
    NVDSPREPROCESS_INVALID_PARAMS = 5,
    NVDSPREPROCESS_OUTPUT_PARSING_FAILED = 6,
    NVDSPREPROCESS_CUDA_ERROR = 7,
    NVDSPREPROCESS_TENSORRT_ERROR = 8,
    NVDSPREPROCESS_RESOURCE_ERROR = 9,
    NVDSPREPROCESS_TENSOR_NOT_READY = 10
} NvDsPreProcessStatus;

typedef enum {
    NvDsPreProcessNetworkInputOrder_kNCHW = 0,
    NvDsPreProcessNetworkInputOrder_kNHWC = 1,
    NvDsPreProcessNetworkInputOrder_CUSTOM = 2
} NvDsPreProcessNetworkInputOrder;

typedef enum {
    NvDsPreProcessFormat_RGB = 0,
    NvDsPreProcessFormat_BGR = 1,
    NvDsPreProcessFormat_GRAY = 2,
    NvDsPreProcessFormat_RGBA = 3,
    NvDsPreProcessFormat_BGRx = 4,
    NvDsPreProcessFormat_Tensor = 5,
    NvDsPreProcessFormat_Unknown = 0xFFFFFFFF
} NvDsPreProcessFormat;

typedef struct {
    NvBufSurfTransformConfigParams transform_config_params;
    NvBufSurfTransformParams transform_params;
    NvBufSurfTransformSyncObj_t sync_obj = nullptr;
} CustomTransformParams;

typedef struct {
    NvDsPreProcessNetworkInputOrder network_input_order;
    std::vector<int> network_input_shape;
    NvDsPreProcessFormat network_color_format;
    guint64 buffer_size = 1;
    NvDsDataType data_type;
    NvBufSurfaceMemType memory_type;
    std::string tensor_name;
} NvDsPreProcessTensorParams;

typedef struct {
    unsigned int width;
    unsigned int height;
    unsigned int channels;
} NvDsPreProcessNetworkSize;

typedef struct {
    std::vector<NvDsRoiMeta> roi_vector;
} CustomSeqProcTensorParams;

typedef struct {
    NvDsPreProcessTensorParams params;
    CustomSeqProcTensorParams seq_params;
} CustomTensorParams;

typedef struct {
    guint unique_id;
    NvDsPreProcessTensorParams tensor_params;
    std::unordered_map<std::string, std::string> user_configs;
    gchar *config_file_path;
} CustomInitParams;

struct NvDsPreProcessCustomBuf {
    void *memory_ptr;
};

// Lends memory for tensors. Its functions are called by their place, so it has no destructor.
class NvDsPreProcessAcquirer {
public:
    virtual NvDsPreProcessCustomBuf *acquire() = 0;
    virtual gboolean release(NvDsPreProcessCustomBuf *) = 0;
};

typedef struct {
    NvDsObjectMeta *obj_meta = nullptr;
    NvDsFrameMeta *frame_meta = nullptr;
    guint batch_index = 0;
    gulong frame_num = 0;
    NvBufSurfaceParams *input_surf_params = nullptr;
    gpointer converted_frame_ptr = nullptr;
    NvDsRoiMeta roi_meta;
} NvDsPreProcessUnit;

typedef struct {
    std::vector<NvDsPreProcessUnit> units;
    std::vector<NvBufSurfTransformSyncObj_t> sync_objects;
    GstBuffer *inbuf = nullptr;
    gulong inbuf_batch_num = 0;
    gboolean push_buffer = FALSE;
    gboolean event_marker = FALSE;
    GstBuffer *converted_buf = nullptr;
    NvDsPreProcessFormat scaling_pool_format;
    NvDsBatchMeta *batch_meta;
    uint32_t pitch;
    nvtxRangeId_t nvtx_complete_buf_range = 0;
} NvDsPreProcessBatch;

#endif
