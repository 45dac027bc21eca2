/* Events of the multiplexer, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_GST_NVEVENT_H
#define HEADRACE_GST_NVEVENT_H

#include "headrace/gst.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    GST_NVEVENT_PAD_ADDED = 102430,
    GST_NVEVENT_PAD_DELETED = 102686,
    GST_NVEVENT_STREAM_EOS = 102942,
    GST_NVEVENT_STREAM_SEGMENT = 103198,
    GST_NVEVENT_STREAM_RESET = 103454,
    GST_NVEVENT_STREAM_START = 103710,
    GST_NVEVENT_UPDATE_CAPS = 103966
} GstNvEventType;

GstEvent* gst_nvevent_new_pad_added(guint source_id);
GstEvent* gst_nvevent_new_pad_deleted(guint source_id);
GstEvent* gst_nvevent_new_stream_eos(guint source_id);
GstEvent* gst_nvevent_new_stream_reset(guint source_id);
GstEvent* gst_nvevent_new_stream_segment(guint source_id,GstSegment * segment);
GstEvent* gst_nvevent_new_stream_start(guint source_id,gchar * stream_id);
GstEvent* gst_nvevent_new_update_caps(guint pad_id,guint width_val,guint height_val,GstStructure * caps_str,gchar * stream_id_str,gboolean is_audio);
void gst_nvevent_parse_pad_added(GstEvent * event,guint * source_id);
void gst_nvevent_parse_pad_deleted(GstEvent * event,guint * source_id);
void gst_nvevent_parse_stream_eos(GstEvent * event,guint * source_id);
void gst_nvevent_parse_stream_reset(GstEvent * event,guint * source_id);
void gst_nvevent_parse_stream_segment(GstEvent * event,guint * source_id,GstSegment ** segment);
void gst_nvevent_parse_stream_start(GstEvent * event,guint * source_id,gchar ** stream_id);

#ifdef __cplusplus
}
#endif

#endif
