/* Metadata on buffers of GStreamer, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_GSTNVDSMETA_H
#define HEADRACE_GSTNVDSMETA_H

#include "headrace/gst.h"
#ifdef __has_include
#if __has_include("gst/video/video.h")
#include "gst/video/video.h"
#endif
#endif
#ifdef __has_include
#if __has_include("gst/base/gstbasetransform.h")
#include "gst/base/gstbasetransform.h"
#endif
#endif
#include "nvdsmeta.h"
#include "nvds_roi_meta.h"
#include "nvds_latency_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NVDS_META_API_TYPE (nvds_meta_api_get_type())
#define NVDS_META_INFO (nvds_meta_get_info())
#define NVDS_META_STRING "nvdsmeta"

typedef enum {
    NVDS_GST_INVALID_META = -1,
    NVDS_BATCH_GST_META = 4097,
    NVDS_DECODER_GST_META = 4098,
    NVDS_DEWARPER_GST_META = 4099,
    NVDS_BUFFER_GST_AS_FRAME_USER_META = 4100,
    NVDS_RESERVED_GST_META = 8192,
    NVDS_GST_META_FORCE32 = 2147483647
} GstNvDsMetaType;

typedef struct _NvDsMeta NvDsMeta;

struct _NvDsMeta {
    GstMeta meta;
    gpointer meta_data;
    gpointer user_data;
    gint meta_type;
    NvDsMetaCopyFunc copyfunc;
    NvDsMetaReleaseFunc freefunc;
    NvDsMetaCopyFunc gst_to_nvds_meta_transform_func;
    NvDsMetaReleaseFunc gst_to_nvds_meta_release_func;
};

NvDsMeta* gst_buffer_add_nvds_meta(GstBuffer * buffer,gpointer meta_data,gpointer user_data,NvDsMetaCopyFunc copy_func,NvDsMetaReleaseFunc release_func);
NvDsBatchMeta* gst_buffer_get_nvds_batch_meta(GstBuffer * buffer);
NvDsMeta* gst_buffer_get_nvds_meta(GstBuffer * buffer);
void nvds_copy_gst_meta_to_frame_meta(GstBuffer * src_gst_buffer,NvDsBatchMeta * batch_meta,NvDsFrameMeta * frame_meta);
GType nvds_meta_api_get_type(void);
const GstMetaInfo* nvds_meta_get_info(void);

#ifdef __cplusplus
}
#endif

#endif
