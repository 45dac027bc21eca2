/* Messages of the multiplexer, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_GST_NVMESSAGE_H
#define HEADRACE_GST_NVMESSAGE_H

#include "headrace/gst.h"

#ifdef __cplusplus
extern "C" {
#endif

gboolean gst_nvmessage_is_stream_eos(GstMessage * message);
GstMessage* gst_nvmessage_new_stream_eos(GstObject * obj,guint eos_stream_id);
gboolean gst_nvmessage_parse_stream_eos(GstMessage * message,guint * eos_stream_id);

#ifdef __cplusplus
}
#endif

#endif
