/* Pools of buffers whose memory is an NvBufSurface.
 *
 * The configuration names caps, and batch-size, the number of images (uint). Part of headrace,
 * Apache-2.0. */
#ifndef HEADRACE_GSTNVDSBUFFERPOOL_H
#define HEADRACE_GSTNVDSBUFFERPOOL_H

#include <gst/gst.h>

G_BEGIN_DECLS

#define GST_NVDS_MEMORY_TYPE "nvds"
#define GST_BUFFER_POOL_OPTION_NVDS_META "GstBufferPoolOptionNvDsMeta"
#define GST_TYPE_NVDS_BUFFER_POOL (gst_nvds_buffer_pool_get_type())
#define GST_NVDS_BUFFER_POOL_CAST(pool) ((GstNvDsBufferPool *)(pool))

typedef struct _GstNvDsBufferPoolPrivate GstNvDsBufferPoolPrivate;
typedef struct _GstNvDsBufferPool {
    GstBufferPool bufferpool;
    GstNvDsBufferPoolPrivate *priv;
} GstNvDsBufferPool;
typedef struct _GstNvDsBufferPoolClass {
    GstBufferPoolClass parent_class;
} GstNvDsBufferPoolClass;

GType gst_nvds_buffer_pool_get_type(void);
GstBufferPool *gst_nvds_buffer_pool_new(void);

G_END_DECLS

#endif
