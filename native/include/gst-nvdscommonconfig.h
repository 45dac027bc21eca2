/* Sources that come and go, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_GST_NVDSCOMMONCONFIG_H
#define HEADRACE_GST_NVDSCOMMONCONFIG_H

#include "headrace/gst.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct _NvDsSensorInfo NvDsSensorInfo;
typedef struct _NvDsRtspAttemptsInfo NvDsRtspAttemptsInfo;

struct _NvDsSensorInfo {
    guint source_id;
    const gchar* uri;
    const gchar* sensor_id;
    const gchar* sensor_name;
};

struct _NvDsRtspAttemptsInfo {
    gboolean attempt_exceeded;
    guint source_id;
};

#ifdef __cplusplus
}
#endif

#endif
