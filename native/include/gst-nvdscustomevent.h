/* Events for inference, drawing and counting, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_GST_NVDSCUSTOMEVENT_H
#define HEADRACE_GST_NVDSCUSTOMEVENT_H

#include "headrace/gst.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    GST_NVEVENT_ROI_UPDATE = 103942,
    GST_NVEVENT_INFER_INTERVAL_UPDATE = 104198,
    GST_NVEVENT_OSD_PROCESS_MODE_UPDATE = 104454,
    GST_NVEVENT_ANALYTICS_RELOAD_CONFIG_UPDATE = 104710,
    GST_NVEVENT_NVTRACKER_CONFIG_UPDATE = 104966
} GstNvDsCustomEventType;

typedef struct _RoiDimension RoiDimension;

struct _RoiDimension {
    gchar roi_id[128];
    guint left;
    guint top;
    guint width;
    guint height;
};

GstEvent* gst_nvevent_analytics_reload_config_update(gchar * config_file_path);
GstEvent* gst_nvevent_infer_interval_update(gchar * stream_id,guint interval);
GstEvent* gst_nvevent_new_roi_update(gchar * stream_id,guint roi_count,RoiDimension * roi_dim);
GstEvent* gst_nvevent_nvtracker_config_update(gchar * stream_id,gchar * configStr);
GstEvent* gst_nvevent_osd_process_mode_update(gchar * stream_id,guint process_mode);
void gst_nvevent_parse_analytics_reload_config_update(GstEvent * event,gchar ** config_file_path);
void gst_nvevent_parse_infer_interval_update(GstEvent * event,gchar ** stream_id,guint * interval);
void gst_nvevent_parse_nvtracker_config_update(GstEvent * event,gchar ** stream_id,gchar ** configStr);
void gst_nvevent_parse_osd_process_mode_update(GstEvent * event,gchar ** stream_id,guint * process_mode);
void gst_nvevent_parse_roi_update(GstEvent * event,gchar ** stream_id,guint * roi_count,RoiDimension ** roi_dim);

#ifdef __cplusplus
}
#endif

#endif
