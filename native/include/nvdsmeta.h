/* Metadata of batches, frames and objects, in the layout of 9.1.
 *
 * Part of headrace, Apache-2.0. Made by scripts/c_headers.py from its table. */
#ifndef HEADRACE_NVDSMETA_H
#define HEADRACE_NVDSMETA_H

#include "nvll_osd_struct.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MAX_DISPLAY_LEN 64
#define MAX_LABEL_SIZE 128
#define MAX_ELEMENTS_IN_DISPLAY_META 16
#define MAX_USER_FIELDS 4
#define MAX_RESERVED_FIELDS 4
#define UNTRACKED_OBJECT_ID 0xFFFFFFFFFFFFFFFF

typedef enum {
    NVDS_INVALID_META = -1,
    NVDS_BATCH_META = 1,
    NVDS_FRAME_META = 2,
    NVDS_OBJ_META = 3,
    NVDS_DISPLAY_META = 4,
    NVDS_CLASSIFIER_META = 5,
    NVDS_LABEL_INFO_META = 6,
    NVDS_USER_META = 7,
    NVDS_PAYLOAD_META = 8,
    NVDS_EVENT_MSG_META = 9,
    NVDS_OPTICAL_FLOW_META = 10,
    NVDS_LATENCY_MEASUREMENT_META = 11,
    NVDSINFER_TENSOR_OUTPUT_META = 12,
    NVDSINFER_SEGMENTATION_META = 13,
    NVDS_CROP_IMAGE_META = 14,
    NVDS_TRACKER_PAST_FRAME_META = 15,
    NVDS_TRACKER_BATCH_REID_META = 16,
    NVDS_TRACKER_OBJ_REID_META = 17,
    NVDS_TRACKER_TERMINATED_LIST_META = 18,
    NVDS_TRACKER_SHADOW_LIST_META = 19,
    NVDS_OBJ_VISIBILITY = 20,
    NVDS_OBJ_IMAGE_FOOT_LOCATION = 21,
    NVDS_OBJ_WORLD_FOOT_LOCATION = 22,
    NVDS_OBJ_IMAGE_CONVEX_HULL = 23,
    NVDS_OBJ_3D_META = 24,
    NVDS_AUDIO_BATCH_META = 25,
    NVDS_AUDIO_FRAME_META = 26,
    NVDS_PREPROCESS_FRAME_META = 27,
    NVDS_PREPROCESS_BATCH_META = 28,
    NVDS_CUSTOM_MSG_BLOB = 29,
    NVDS_ROI_META = 30,
    NVDS_CUSTOM_MSG_SPARSE4D = 31,
    NVDS_FRAME_META_NVDSANALYTICS = 32,
    NVDS_OBJ_META_NVDSANALYTICS = 33,
    NVDS_RESERVED_META = 4095,
    NVDS_GST_CUSTOM_META = 4096,
    NVDS_START_USER_META = 8193,
    NVDS_FORCE32_META = 2147483647
} NvDsMetaType;

struct _NvDsRoiMeta;
typedef struct _NvDsComp_BboxInfo NvDsComp_BboxInfo;
typedef struct _NvDsSensorInfo_meta NvDsSensorInfo_meta;
typedef struct _NvDsBaseMeta NvDsBaseMeta;
typedef struct _NvDsMetaPool NvDsMetaPool;
typedef struct _NvDsBatchMeta NvDsBatchMeta;
typedef struct _NvDsFrameMeta NvDsFrameMeta;
typedef struct _NvDsObjectMeta NvDsObjectMeta;
typedef struct _NvDsClassifierMeta NvDsClassifierMeta;
typedef struct _NvDsLabelInfo NvDsLabelInfo;
typedef struct _NvDsDisplayMeta NvDsDisplayMeta;
typedef struct _NvDsUserMeta NvDsUserMeta;
typedef GList NvDsMetaList;
typedef NvDsMetaList NvDsFrameMetaList;
typedef NvDsMetaList NvDsObjectMetaList;
typedef NvDsMetaList NvDsClassifierMetaList;
typedef NvDsMetaList NvDsLabelInfoList;
typedef NvDsMetaList NvDsUserMetaList;
typedef NvDsMetaList NvDisplayMetaList;
typedef NvDsMetaList NvDsDisplayMetaList;
typedef gpointer (*NvDsMetaCopyFunc)(gpointer data, gpointer user_data);
typedef void (*NvDsMetaReleaseFunc)(gpointer data, gpointer user_data);

struct _NvDsComp_BboxInfo {
    NvBbox_Coords org_bbox_coords;
};

struct _NvDsSensorInfo_meta {
    guint source_id;
    const gchar* uri;
    const gchar* sensor_id;
    const gchar* sensor_name;
};

struct _NvDsBaseMeta {
    NvDsBatchMeta* batch_meta;
    NvDsMetaType meta_type;
    void* uContext;
    NvDsMetaCopyFunc copy_func;
    NvDsMetaReleaseFunc release_func;
};

struct _NvDsMetaPool {
    NvDsMetaType meta_type;
    guint max_elements_in_pool;
    guint element_size;
    guint num_empty_elements;
    guint num_full_elements;
    NvDsMetaList* empty_list;
    NvDsMetaList* full_list;
    NvDsMetaCopyFunc copy_func;
    NvDsMetaReleaseFunc release_func;
};

struct _NvDsBatchMeta {
    NvDsBaseMeta base_meta;
    guint max_frames_in_batch;
    guint num_frames_in_batch;
    NvDsMetaPool* frame_meta_pool;
    NvDsMetaPool* obj_meta_pool;
    NvDsMetaPool* classifier_meta_pool;
    NvDsMetaPool* display_meta_pool;
    NvDsMetaPool* user_meta_pool;
    NvDsMetaPool* label_info_meta_pool;
    NvDsFrameMetaList* frame_meta_list;
    NvDsUserMetaList* batch_user_meta_list;
    GRecMutex meta_mutex;
    gint64 misc_batch_info[4];
    gint64 reserved[4];
};

struct _NvDsFrameMeta {
    NvDsBaseMeta base_meta;
    guint pad_index;
    guint batch_id;
    gint frame_num;
    guint64 buf_pts;
    guint64 ntp_timestamp;
    guint source_id;
    gint num_surfaces_per_frame;
    guint source_frame_width;
    guint source_frame_height;
    guint surface_type;
    guint surface_index;
    guint num_obj_meta;
    gboolean bInferDone;
    NvDsObjectMetaList* obj_meta_list;
    NvDisplayMetaList* display_meta_list;
    NvDsUserMetaList* frame_user_meta_list;
    gint64 misc_frame_info[4];
    guint pipeline_width;
    guint pipeline_height;
    NvDsSensorInfo_meta sensorInfo_meta;
    gint64 reserved[4];
};

struct _NvDsObjectMeta {
    NvDsBaseMeta base_meta;
    NvDsObjectMeta* parent;
    gint unique_component_id;
    gint class_id;
    guint64 object_id;
    NvDsComp_BboxInfo detector_bbox_info;
    NvDsComp_BboxInfo tracker_bbox_info;
    gfloat confidence;
    gfloat tracker_confidence;
    NvOSD_RectParams rect_params;
    NvOSD_MaskParams mask_params;
    NvOSD_TextParams text_params;
    gchar obj_label[128];
    NvDsClassifierMetaList* classifier_meta_list;
    NvDsUserMetaList* obj_user_meta_list;
    gint64 misc_obj_info[4];
    gint64 reserved[4];
};

struct _NvDsClassifierMeta {
    NvDsBaseMeta base_meta;
    guint num_labels;
    gint unique_component_id;
    NvDsLabelInfoList* label_info_list;
    const gchar* classifier_type;
};

struct _NvDsLabelInfo {
    NvDsBaseMeta base_meta;
    guint num_classes;
    gchar result_label[128];
    gchar* pResult_label;
    guint result_class_id;
    guint label_id;
    gfloat result_prob;
};

struct _NvDsDisplayMeta {
    NvDsBaseMeta base_meta;
    guint num_rects;
    guint num_labels;
    guint num_lines;
    guint num_arrows;
    guint num_circles;
    NvOSD_RectParams rect_params[16];
    NvOSD_TextParams text_params[16];
    NvOSD_LineParams line_params[16];
    NvOSD_ArrowParams arrow_params[16];
    NvOSD_CircleParams circle_params[16];
    gint64 misc_osd_data[4];
    gint64 reserved[4];
};

struct _NvDsUserMeta {
    NvDsBaseMeta base_meta;
    void* user_meta_data;
};

NvDsClassifierMeta* nvds_acquire_classifier_meta_from_pool(NvDsBatchMeta * batch_meta);
NvDsDisplayMeta* nvds_acquire_display_meta_from_pool(NvDsBatchMeta * batch_meta);
NvDsFrameMeta* nvds_acquire_frame_meta_from_pool(NvDsBatchMeta * batch_meta);
NvDsLabelInfo* nvds_acquire_label_info_meta_from_pool(NvDsBatchMeta * batch_meta);
void nvds_acquire_meta_lock(NvDsBatchMeta * batch_meta);
NvDsObjectMeta* nvds_acquire_obj_meta_from_pool(NvDsBatchMeta * batch_meta);
NvDsUserMeta* nvds_acquire_user_meta_from_pool(NvDsBatchMeta * batch_meta);
void nvds_add_classifier_meta_to_object(NvDsObjectMeta * obj_meta,NvDsClassifierMeta * classifier_meta);
void nvds_add_classifier_meta_to_roi(struct _NvDsRoiMeta * roi_meta,NvDsClassifierMeta * classifier_meta);
void nvds_add_display_meta_to_frame(NvDsFrameMeta * frame_meta,NvDsDisplayMeta * display_meta);
void nvds_add_frame_meta_to_batch(NvDsBatchMeta * batch_meta,NvDsFrameMeta * frame_meta);
void nvds_add_label_info_meta_to_classifier(NvDsClassifierMeta * classifier_meta,NvDsLabelInfo * label_info_meta);
void nvds_add_obj_meta_to_frame(NvDsFrameMeta * frame_meta,NvDsObjectMeta * obj_meta,NvDsObjectMeta * obj_parent);
void nvds_add_user_meta_to_batch(NvDsBatchMeta * batch_meta,NvDsUserMeta * user_meta);
void nvds_add_user_meta_to_frame(NvDsFrameMeta * frame_meta,NvDsUserMeta * user_meta);
void nvds_add_user_meta_to_obj(NvDsObjectMeta * obj_meta,NvDsUserMeta * user_meta);
void nvds_add_user_meta_to_roi(struct _NvDsRoiMeta * roi_meta,NvDsUserMeta * user_meta);
gpointer nvds_batch_meta_copy_func(gpointer data,gpointer user_data);
void nvds_batch_meta_release_func(gpointer data,gpointer user_data);
void nvds_clear_batch_user_meta_list(NvDsBatchMeta * batch_meta,NvDsUserMetaList * meta_list);
void nvds_clear_classifier_meta_list(NvDsObjectMeta * obj_meta,NvDsClassifierMetaList * meta_list);
void nvds_clear_display_meta_list(NvDsFrameMeta * frame_meta,NvDisplayMetaList * meta_list);
void nvds_clear_frame_meta_list(NvDsBatchMeta * batch_meta,NvDsFrameMetaList * meta_list);
void nvds_clear_frame_user_meta_list(NvDsFrameMeta * frame_meta,NvDsUserMetaList * meta_list);
void nvds_clear_label_info_meta_list(NvDsClassifierMeta * classifier_meta,NvDsLabelInfoList * meta_list);
NvDsMetaList* nvds_clear_meta_list(NvDsBatchMeta * batch_meta,NvDsMetaList * meta_list,NvDsMetaPool * meta_pool);
void nvds_clear_obj_meta_list(NvDsFrameMeta * frame_meta,NvDsObjectMetaList * meta_list);
void nvds_clear_obj_user_meta_list(NvDsObjectMeta * object_meta,NvDsUserMetaList * meta_list);
void nvds_copy_batch_user_meta_list(NvDsUserMetaList * src_user_meta_list,NvDsBatchMeta * dst_batch_meta);
void nvds_copy_classification_list(NvDsClassifierMetaList * src_classifier_meta_list,NvDsObjectMeta * dst_object_meta);
void nvds_copy_classifier_meta(NvDsClassifierMeta * src_classifier_meta,NvDsClassifierMeta * dst_classifier_meta);
void nvds_copy_display_meta(NvDsDisplayMeta * src_display_meta,NvDsDisplayMeta * dst_display_meta);
void nvds_copy_display_meta_list(NvDisplayMetaList * src_display_meta_list,NvDsFrameMeta * dst_frame_meta);
void nvds_copy_frame_meta(NvDsFrameMeta * src_frame_meta,NvDsFrameMeta * dst_frame_meta);
void nvds_copy_frame_meta_list(NvDsFrameMetaList * src_frame_meta_list,NvDsBatchMeta * dst_batch_meta);
void nvds_copy_frame_user_meta_list(NvDsUserMetaList * src_user_meta_list,NvDsFrameMeta * dst_frame_meta);
void nvds_copy_label_info_list(NvDsLabelInfoList * src_label_info_list,NvDsClassifierMeta * dst_classifier_meta);
void nvds_copy_label_info_meta(NvDsLabelInfo * src_label_info,NvDsLabelInfo * dst_label_info);
void nvds_copy_obj_meta(NvDsObjectMeta * src_object_meta,NvDsObjectMeta * dst_object_meta);
void nvds_copy_obj_meta_list(NvDsObjectMetaList * src_obj_meta_list,NvDsFrameMeta * dst_frame_meta);
void nvds_copy_obj_user_meta_list(NvDsUserMetaList * src_user_meta_list,NvDsObjectMeta * dst_object_meta);
NvDsBatchMeta* nvds_create_batch_meta(guint max_batch_size);
gboolean nvds_destroy_batch_meta(NvDsBatchMeta * batch_meta);
gboolean nvds_get_current_metadata_info(NvDsBatchMeta * batch_meta);
NvDsFrameMeta* nvds_get_nth_frame_meta(NvDsFrameMetaList * frame_meta_list,guint index);
NvDsMetaType nvds_get_user_meta_type(gchar * meta_descriptor);
void nvds_release_meta_lock(NvDsBatchMeta * batch_meta);
void nvds_remove_classifier_meta_from_obj(NvDsObjectMeta * obj_meta,NvDsClassifierMeta * classifier_meta);
void nvds_remove_classifier_meta_from_roi(struct _NvDsRoiMeta * roi_meta,NvDsClassifierMeta * classifier_meta);
void nvds_remove_display_meta_from_frame(NvDsFrameMeta * frame_meta,NvDsDisplayMeta * display_meta);
void nvds_remove_frame_meta_from_batch(NvDsBatchMeta * batch_meta,NvDsFrameMeta * frame_meta);
void nvds_remove_label_info_meta_from_classifier(NvDsClassifierMeta * classifier_meta,NvDsLabelInfo * label_info_meta);
void nvds_remove_obj_meta_from_frame(NvDsFrameMeta * frame_meta,NvDsObjectMeta * obj_meta);
void nvds_remove_user_meta_from_batch(NvDsBatchMeta * batch_meta,NvDsUserMeta * user_meta);
void nvds_remove_user_meta_from_frame(NvDsFrameMeta * frame_meta,NvDsUserMeta * user_meta);
void nvds_remove_user_meta_from_object(NvDsObjectMeta * obj_meta,NvDsUserMeta * user_meta);
void nvds_remove_user_meta_from_roi(struct _NvDsRoiMeta * obj_meta,NvDsUserMeta * user_meta);

#ifdef __cplusplus
}
#endif

#endif
