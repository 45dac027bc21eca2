/* Latencies of components, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_NVDS_LATENCY_META_H
#define HEADRACE_NVDS_LATENCY_META_H

#include "nvdsmeta.h"
#include "headrace/gst.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MAX_COMPONENT_LEN 64
#define nvds_enable_latency_measurement (nvds_get_enable_latency_measurement())
#define nvds_latency_measurement_silent (nvds_get_latency_measurement_silent())

typedef struct _NvDsMetaSubCompLatency NvDsMetaSubCompLatency;
typedef struct _NvDsMetaCompLatency NvDsMetaCompLatency;
typedef struct _NvDsFrameLatencyInfo NvDsFrameLatencyInfo;

struct _NvDsMetaSubCompLatency {
    gchar sub_comp_name[64];
    gdouble in_system_timestamp;
    gdouble out_system_timestamp;
};

struct _NvDsMetaCompLatency {
    gchar component_name[64];
    gdouble in_system_timestamp;
    gdouble out_system_timestamp;
    guint source_id;
    guint frame_num;
    guint pad_index;
    NvDsMetaSubCompLatency sub_comp_latencies[16];
    guint num_sub_comps;
};

struct _NvDsFrameLatencyInfo {
    guint source_id;
    guint frame_num;
    gdouble comp_in_timestamp;
    gdouble latency;
};

void nvds_add_reference_timestamp_meta(GstBuffer * buffer,gchar * element_name,guint frame_id);
gboolean nvds_get_enable_latency_measurement(void);
gboolean nvds_get_latency_measurement_silent(void);
guint nvds_measure_buffer_latency(GstBuffer * buf,NvDsFrameLatencyInfo * latency_info);
NvDsUserMeta* nvds_set_input_system_timestamp(GstBuffer * buffer,gchar * element_name);
gboolean nvds_set_output_system_timestamp(GstBuffer * buffer,gchar * element_name);

#ifdef __cplusplus
}
#endif

#endif
