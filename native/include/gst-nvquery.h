/* Questions between elements, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_GST_NVQUERY_H
#define HEADRACE_GST_NVQUERY_H

#include "headrace/gst.h"

#ifdef __cplusplus
extern "C" {
#endif

GstQuery* gst_nvquery_batch_size_new(void);
gboolean gst_nvquery_batch_size_parse(GstQuery * query,guint * batch_size);
void gst_nvquery_batch_size_set(GstQuery * query,guint batch_size);
gboolean gst_nvquery_is_batch_size(GstQuery * query);
gboolean gst_nvquery_is_numStreams_size(GstQuery * query);
gboolean gst_nvquery_is_preprocess_poolsize(GstQuery * query);
GstQuery* gst_nvquery_numStreams_size_new(void);
gboolean gst_nvquery_numStreams_size_parse(GstQuery * query,guint * numStreams_size);
void gst_nvquery_numStreams_size_set(GstQuery * query,guint numStreams_size);
gboolean gst_nvquery_preprocess_poolsize_gieid_parse(GstQuery * query,guint * gieId);
GstQuery* gst_nvquery_preprocess_poolsize_new(guint gieid);
gboolean gst_nvquery_preprocess_poolsize_parse(GstQuery * query,guint * preprocess_poolsize);
void gst_nvquery_preprocess_poolsize_set(GstQuery * query,guint preprocess_poolsize);

#ifdef __cplusplus
}
#endif

#endif
