/* Regions of preprocessing, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_NVDS_ROI_META_H
#define HEADRACE_NVDS_ROI_META_H

#include "nvdsmeta.h"
#include "nvbufsurface.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DS_MAX_POLYGON_POINTS 8

typedef enum {
    NvDsDataType_FP32 = 0,
    NvDsDataType_UINT8 = 1,
    NvDsDataType_INT8 = 2,
    NvDsDataType_UINT32 = 3,
    NvDsDataType_INT32 = 4,
    NvDsDataType_INT64 = 5,
    NvDsDataType_UINT64 = 6,
    NvDsDataType_FP16 = 7
} NvDsDataType;

typedef enum {
    NvDsUnitType_FullFrame = 0,
    NvDsUnitType_ROI = 1,
    NvDsUnitType_Object = 2
} NvDsUnitType;

typedef struct _NvDsRoiMeta NvDsRoiMeta;

struct _NvDsRoiMeta {
    NvOSD_RectParams roi;
    guint roi_polygon[8][2];
    NvBufSurfaceParams* converted_buffer;
    NvDsFrameMeta* frame_meta;
    gdouble scale_ratio_x;
    gdouble scale_ratio_y;
    gdouble offset_left;
    gdouble offset_top;
    NvDsClassifierMetaList* classifier_meta_list;
    NvDsUserMetaList* roi_user_meta_list;
    NvDsObjectMeta* object_meta;
};

#ifdef __cplusplus
}
#endif

#endif
