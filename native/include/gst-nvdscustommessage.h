/* Messages of sources that come and go, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_GST_NVDSCUSTOMMESSAGE_H
#define HEADRACE_GST_NVDSCUSTOMMESSAGE_H

#include "gst-nvdscommonconfig.h"
#ifdef __has_include
#if __has_include("deepstream_perf.h")
#include "deepstream_perf.h"
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

GstMessage* gst_nvmessage_force_pipeline_eos(GstObject * obj,gboolean force_eos);
gboolean gst_nvmessage_is_force_pipeline_eos(GstMessage * message);
gboolean gst_nvmessage_is_reconnect_attempt_exceeded(GstMessage * message);
gboolean gst_nvmessage_is_stream_add(GstMessage * message);
gboolean gst_nvmessage_is_stream_remove(GstMessage * message);
GstMessage* gst_nvmessage_new_stream_add(GstObject * obj,NvDsSensorInfo * sensor_info);
GstMessage* gst_nvmessage_new_stream_remove(GstObject * obj,NvDsSensorInfo * sensor_info);
gboolean gst_nvmessage_parse_force_pipeline_eos(GstMessage * message,gboolean * force_eos);
gboolean gst_nvmessage_parse_fps_stream_add(GstMessage * message,void * sensor_info);
gboolean gst_nvmessage_parse_fps_stream_remove(GstMessage * message,void * sensor_info);
gboolean gst_nvmessage_parse_reconnect_attempt_exceeded(GstMessage * message,NvDsRtspAttemptsInfo * rtsp_info);
gboolean gst_nvmessage_parse_stream_add(GstMessage * message,NvDsSensorInfo * sensor_info);
gboolean gst_nvmessage_parse_stream_remove(GstMessage * message,NvDsSensorInfo * sensor_info);
GstMessage* gst_nvmessage_reconnect_attempt_exceeded(GstObject * obj,NvDsRtspAttemptsInfo * rtsp_info);

#ifdef __cplusplus
}
#endif

#endif
