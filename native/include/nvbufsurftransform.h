/* Scaling and conversion of images, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_NVBUFSURFTRANSFORM_H
#define HEADRACE_NVBUFSURFTRANSFORM_H

#include "nvbufsurface.h"
#include "cuda_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NVBUFSURF_MAX_SYNCOBJ 5

typedef enum {
    NvBufSurfTransformCompute_Default = 0,
    NvBufSurfTransformCompute_GPU = 1,
    NvBufSurfTransformCompute_VIC = 2
} NvBufSurfTransform_Compute;

typedef enum {
    NvBufSurfTransform_None = 0,
    NvBufSurfTransform_Rotate90 = 1,
    NvBufSurfTransform_Rotate180 = 2,
    NvBufSurfTransform_Rotate270 = 3,
    NvBufSurfTransform_FlipX = 4,
    NvBufSurfTransform_FlipY = 5,
    NvBufSurfTransform_Transpose = 6,
    NvBufSurfTransform_InvTranspose = 7
} NvBufSurfTransform_Flip;

typedef enum {
    NvBufSurfTransformInter_Nearest = 0,
    NvBufSurfTransformInter_Bilinear = 1,
    NvBufSurfTransformInter_Algo1 = 2,
    NvBufSurfTransformInter_Algo2 = 3,
    NvBufSurfTransformInter_Algo3 = 4,
    NvBufSurfTransformInter_Algo4 = 5,
    NvBufSurfTransformInter_Default = 6
} NvBufSurfTransform_Inter;

typedef enum {
    NVBUFSURF_TRANSFORM_CROP_SRC = 1,
    NVBUFSURF_TRANSFORM_CROP_DST = 2,
    NVBUFSURF_TRANSFORM_FILTER = 4,
    NVBUFSURF_TRANSFORM_FLIP = 8,
    NVBUFSURF_TRANSFORM_NORMALIZE = 16,
    NVBUFSURF_TRANSFORM_ALLOW_ODD_CROP = 32
} NvBufSurfTransform_Transform_Flag;

typedef enum {
    NVBUFSURF_TRANSFORM_COMPOSITE = 1,
    NVBUFSURF_TRANSFORM_BLEND = 2,
    NVBUFSURF_TRANSFORM_COMPOSITE_FILTER = 4
} NvBufSurfTransform_Composite_Flag;

typedef enum {
    NvBufSurfTransformError_ROI_Error = -4,
    NvBufSurfTransformError_Invalid_Params = -3,
    NvBufSurfTransformError_Execution_Error = -2,
    NvBufSurfTransformError_Unsupported = -1,
    NvBufSurfTransformError_Success = 0
} NvBufSurfTransform_Error;

typedef struct _NvBufSurfTransformRect NvBufSurfTransformRect;
typedef struct _NvBufSurfTransform_ColorParams NvBufSurfTransform_ColorParams;
typedef struct _NvBufSurfTransformConfigParams NvBufSurfTransformConfigParams;
typedef struct _NvBufSurfTransformParams NvBufSurfTransformParams;
typedef struct _NvBufSurfTransformCompositeParams NvBufSurfTransformCompositeParams;
typedef struct _NvBufSurfTransformCompositeBlendParams NvBufSurfTransformCompositeBlendParams;
typedef struct _NvBufSurfTransformCompositeBlendParamsEx NvBufSurfTransformCompositeBlendParamsEx;
typedef struct NvBufSurfTransformSyncObj* NvBufSurfTransformSyncObj_t;

struct _NvBufSurfTransformRect {
    uint32_t top;
    uint32_t left;
    uint32_t width;
    uint32_t height;
    void* reserved[4];
};

struct _NvBufSurfTransform_ColorParams {
    double red;
    double green;
    double blue;
    double alpha;
    void* reserved[4];
};

struct _NvBufSurfTransformConfigParams {
    NvBufSurfTransform_Compute compute_mode;
    int32_t gpu_id;
    cudaStream_t cuda_stream;
    void* reserved[4];
};

struct _NvBufSurfTransformParams {
    uint32_t transform_flag;
    NvBufSurfTransform_Flip transform_flip;
    NvBufSurfTransform_Inter transform_filter;
    NvBufSurfTransformRect* src_rect;
    NvBufSurfTransformRect* dst_rect;
    void* reserved[4];
};

struct _NvBufSurfTransformCompositeParams {
    uint32_t composite_flag;
    uint32_t input_buf_count;
    NvBufSurfTransformRect* src_comp_rect;
    NvBufSurfTransformRect* dst_comp_rect;
    NvBufSurfTransform_Inter composite_filter;
    void* reserved[4];
};

struct _NvBufSurfTransformCompositeBlendParams {
    uint32_t composite_blend_flag;
    uint32_t input_buf_count;
    NvBufSurfTransform_Inter composite_blend_filter;
    NvBufSurfTransform_ColorParams* color_bg;
    uint32_t* perform_blending;
    void* reserved[4];
};

struct _NvBufSurfTransformCompositeBlendParamsEx {
    NvBufSurfTransformCompositeBlendParams params;
    NvBufSurfTransformRect* src_comp_rect;
    NvBufSurfTransformRect* dst_comp_rect;
    NvBufSurfTransform_Inter* composite_blend_filter;
    float* alpha;
    void* reserved[4];
};

NvBufSurfTransform_Error NvBufSurfTransform(NvBufSurface * src,NvBufSurface * dst,NvBufSurfTransformParams * transform_params);
NvBufSurfTransform_Error NvBufSurfTransformAsync(NvBufSurface * src,NvBufSurface * dst,NvBufSurfTransformParams * transform_params,NvBufSurfTransformSyncObj_t * sync_obj);
NvBufSurfTransform_Error NvBufSurfTransformComposite(NvBufSurface * src,NvBufSurface * dst,NvBufSurfTransformCompositeParams * composite_params);
NvBufSurfTransform_Error NvBufSurfTransformCompositeAsync(NvBufSurface * src,NvBufSurface * dst,NvBufSurfTransformCompositeParams * composite_params,NvBufSurfTransformSyncObj_t * sync_obj);
NvBufSurfTransform_Error NvBufSurfTransformCompositeBlend(NvBufSurface * src0,NvBufSurface * src1,NvBufSurface * alpha,NvBufSurface * dst,NvBufSurfTransformCompositeBlendParams * blend_params);
NvBufSurfTransform_Error NvBufSurfTransformGetSessionParams(NvBufSurfTransformConfigParams * config_params);
NvBufSurfTransform_Error NvBufSurfTransformMultiInputBufCompositeBlend(NvBufSurface ** src,NvBufSurface * dst,NvBufSurfTransformCompositeBlendParamsEx * composite_blend_params);
NvBufSurfTransform_Error NvBufSurfTransformMultiInputBufCompositeBlendAsync(NvBufSurface ** src,NvBufSurface * dst,NvBufSurfTransformCompositeBlendParamsEx * composite_blend_params,NvBufSurfTransformSyncObj_t * sync_obj);
NvBufSurfTransform_Error NvBufSurfTransformSetDefaultSession(void);
NvBufSurfTransform_Error NvBufSurfTransformSetSessionParams(NvBufSurfTransformConfigParams * config_params);
NvBufSurfTransform_Error NvBufSurfTransformSyncObjDestroy(NvBufSurfTransformSyncObj_t * sync_obj);
NvBufSurfTransform_Error NvBufSurfTransformSyncObjFromFile(int file,NvBufSurfTransformSyncObj_t * sync_obj,unsigned int * num_sync_objs);
NvBufSurfTransform_Error NvBufSurfTransformSyncObjWait(NvBufSurfTransformSyncObj_t sync_obj,uint32_t time_out);

#ifdef __cplusplus
}
#endif

#endif
