/* Recording of a stream around an event, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_GST_NVDSSR_H
#define HEADRACE_GST_NVDSSR_H

#include "headrace/gst.h"

#ifdef __cplusplus
extern "C" {
#endif

#define videoCacheSize cacheSize

typedef enum {
    NVDSSR_STATUS_OK = 0,
    NVDSSR_STATUS_INVALID_VAL = 1,
    NVDSSR_STATUS_INVALID_OP = 2,
    NVDSSR_STATUS_ERROR = 3,
    NVDSSR_STATUS_CUSTOM1 = 100,
    NVDSSR_STATUS_CUSTOM2 = 101,
    NVDSSR_STATUS_CUSTOM3 = 102
} NvDsSRStatus;

typedef enum {
    NVDSSR_CONTAINER_MP4 = 0,
    NVDSSR_CONTAINER_MKV = 1
} NvDsSRContainerType;

typedef struct _NvDsSRInitParams NvDsSRInitParams;
typedef struct _NvDsSRRecordingInfo NvDsSRRecordingInfo;
typedef struct _NvDsSRContext NvDsSRContext;
typedef guint32 NvDsSRSessionId;
typedef gpointer (*NvDsSRCallbackFunc)(NvDsSRRecordingInfo* info, gpointer userData);

struct _NvDsSRInitParams {
    NvDsSRCallbackFunc callback;
    NvDsSRContainerType containerType;
    guint width;
    guint height;
    gchar* fileNamePrefix;
    gchar* dirpath;
    guint defaultDuration;
    guint cacheSize;
};

struct _NvDsSRRecordingInfo {
    NvDsSRContext* ctx;
    guint32 sessionId;
    gchar* filename;
    gchar* dirpath;
    guint64 duration;
    NvDsSRContainerType containerType;
    guint width;
    guint height;
    gboolean containsVideo;
    guint channels;
    guint samplingRate;
    gboolean containsAudio;
};

struct _NvDsSRContext {
    GstElement* recordbin;
    GstElement* recordQue;
    GstElement* encodebin;
    GstElement* filesink;
    gboolean gotKeyFrame;
    gboolean recordOn;
    gboolean resetDone;
    gboolean isPlaying;
    NvDsSRInitParams initParams;
    GMutex flowLock;
    GThread* resetThread;
    gpointer uData;
    gpointer privData;
};

NvDsSRStatus NvDsSRCreate(NvDsSRContext ** ctx,NvDsSRInitParams * params);
NvDsSRStatus NvDsSRDestroy(NvDsSRContext * ctx);
NvDsSRStatus NvDsSRStart(NvDsSRContext * ctx,NvDsSRSessionId * sessionId,guint startTime,guint duration,gpointer userData);
NvDsSRStatus NvDsSRStop(NvDsSRContext * ctx,NvDsSRSessionId sessionId);

#ifdef __cplusplus
}
#endif

#endif
