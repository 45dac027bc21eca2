/* Types of the pipeline's metadata, for sources of parsers that include their header.
 *
 * Parsers get none of these, and functions that read or change metadata are not here: a source
 * that calls one belongs to the application around the model. */
#ifndef HEADRACE_NVDSMETA_H
#define HEADRACE_NVDSMETA_H

#include <stdint.h>

#if defined(__has_include)
#if __has_include(<glib.h>)
#define HEADRACE_HAS_GLIB
#endif
#endif
#ifdef HEADRACE_HAS_GLIB
#include <glib.h>
#else
typedef int gint;
typedef unsigned int guint;
typedef float gfloat;
typedef double gdouble;
typedef char gchar;
typedef int gboolean;
typedef void *gpointer;
typedef const void *gconstpointer;
typedef uint8_t guint8;
typedef uint32_t guint32;
typedef int64_t gint64;
typedef uint64_t guint64;
typedef struct _GList GList;
struct _GList {
    gpointer data;
    GList *next;
    GList *prev;
};
#endif

#include "nvll_osd_struct.h"

#define MAX_LABEL_SIZE 128
#define MAX_USER_FIELDS 4
#define MAX_RESERVED_FIELDS 4
#define UNTRACKED_OBJECT_ID 0xFFFFFFFFFFFFFFFF

typedef GList NvDsMetaList;
typedef NvDsMetaList NvDsFrameMetaList;
typedef NvDsMetaList NvDsObjectMetaList;
typedef NvDsMetaList NvDsClassifierMetaList;
typedef NvDsMetaList NvDsLabelInfoList;
typedef NvDsMetaList NvDsUserMetaList;
typedef NvDsMetaList NvDsDisplayMetaList;

typedef struct _NvDsBatchMeta NvDsBatchMeta;

typedef struct {
    float left, top, width, height;
} NvBbox_Coords;

typedef struct {
    NvBbox_Coords org_bbox_coords;
} NvDsComp_BboxInfo;

typedef struct _NvDsBaseMeta {
    NvDsBatchMeta *batch_meta;
    gint meta_type;
    void *uContext;
} NvDsBaseMeta;

typedef struct _NvDsFrameMeta {
    NvDsBaseMeta base_meta;
    guint pad_index, batch_id;
    gint frame_num;
    guint64 buf_pts, ntp_timestamp;
    guint source_id;
    gint num_surfaces_per_frame;
    guint source_frame_width, source_frame_height;
    guint surface_type, surface_index;
    guint num_obj_meta;
    gboolean bInferDone;
    NvDsObjectMetaList *obj_meta_list;
    NvDsDisplayMetaList *display_meta_list;
    NvDsUserMetaList *frame_user_meta_list;
    gint64 misc_frame_info[MAX_USER_FIELDS];
    guint pipeline_width, pipeline_height;
} NvDsFrameMeta;

typedef struct _NvDsObjectMeta {
    NvDsBaseMeta base_meta;
    struct _NvDsObjectMeta *parent;
    gint unique_component_id, class_id;
    guint64 object_id;
    NvDsComp_BboxInfo detector_bbox_info, tracker_bbox_info;
    gfloat confidence, tracker_confidence;
    NvOSD_RectParams rect_params;
    NvOSD_MaskParams mask_params;
    NvOSD_TextParams text_params;
    gchar obj_label[MAX_LABEL_SIZE];
    NvDsClassifierMetaList *classifier_meta_list;
    NvDsUserMetaList *obj_user_meta_list;
    gint64 misc_obj_info[MAX_USER_FIELDS];
} NvDsObjectMeta;

typedef struct _NvDsLabelInfo {
    NvDsBaseMeta base_meta;
    guint num_classes;
    gchar result_label[MAX_LABEL_SIZE];
    gchar *pResult_label;
    guint result_class_id, label_id;
    gfloat result_prob;
} NvDsLabelInfo;

typedef struct _NvDsClassifierMeta {
    NvDsBaseMeta base_meta;
    guint num_labels;
    gint unique_component_id;
    NvDsLabelInfoList *label_info_list;
} NvDsClassifierMeta;

typedef struct _NvDsUserMeta {
    NvDsBaseMeta base_meta;
    void *user_meta_data;
} NvDsUserMeta;

struct _NvDsBatchMeta {
    NvDsBaseMeta base_meta;
    guint max_frames_in_batch, num_frames_in_batch;
    NvDsFrameMetaList *frame_meta_list;
    NvDsUserMetaList *batch_user_meta_list;
};

#endif
