/* Events for decoders and encoders, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_GST_NVCUSTOMEVENT_H
#define HEADRACE_GST_NVCUSTOMEVENT_H

#include "headrace/gst.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    GST_NVEVENT_DEC_DROP_FRAME_INTERVAL_UPDATE = 128006,
    GST_NVEVENT_DEC_SKIP_FRAME_UPDATE = 128262,
    GST_NVEVENT_DEC_ENABLE_LOW_LATENCY_MODE = 128518,
    GST_NVEVENT_ENC_BITRATE_UPDATE = 128774,
    GST_NVEVENT_ENC_FORCE_IDR = 129030,
    GST_NVEVENT_ENC_FORCE_INTRA = 129286,
    GST_NVEVENT_ENC_IFRAME_INTERVAL_UPDATE = 129542
} GstNvCustomEventType;

GstEvent* gst_nvevent_dec_drop_frame_interval_update(gchar * stream_id,guint interval);
GstEvent* gst_nvevent_dec_enable_low_latency_mode(gchar * stream_id,gint enable);
GstEvent* gst_nvevent_dec_skip_frame_update(gchar * stream_id,guint frame_type);
GstEvent* gst_nvevent_enc_bitrate_update(gchar * stream_id,guint bitrate);
GstEvent* gst_nvevent_enc_force_idr(gchar * stream_id,gint force);
GstEvent* gst_nvevent_enc_force_intra(gchar * stream_id,gint force);
GstEvent* gst_nvevent_enc_iframeinterval_update(gchar * stream_id,guint interval);
void gst_nvevent_parse_dec_drop_frame_interval_update(GstEvent * event,gchar ** stream_id,guint * interval);
void gst_nvevent_parse_dec_enable_low_latency_mode(GstEvent * event,gchar ** stream_id,gint * enable);
void gst_nvevent_parse_dec_skip_frame_update(GstEvent * event,gchar ** stream_id,guint * frame_type);
void gst_nvevent_parse_enc_bitrate_update(GstEvent * event,gchar ** stream_id,guint * bitrate);
void gst_nvevent_parse_enc_force_idr(GstEvent * event,gchar ** stream_id,gint * force);
void gst_nvevent_parse_enc_force_intra(GstEvent * event,gchar ** stream_id,gint * force);
void gst_nvevent_parse_enc_iframeinterval_update(GstEvent * event,gchar ** stream_id,guint * interval);

#ifdef __cplusplus
}
#endif

#endif
