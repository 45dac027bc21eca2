// Taking metadata from pools, adding it to lists and removing it: the functions of nvdsmeta.h.
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "nvds_roi_meta.h"
#include "pools.h"

using namespace headrace::deepstream;

namespace {

template <typename Owner>
NvDsBatchMeta *batch_of(Owner *owner) {
    return owner->base_meta.batch_meta;
}
template <>
NvDsBatchMeta *batch_of(NvDsBatchMeta *batch) {
    return batch;
}
template <>
NvDsBatchMeta *batch_of(NvDsRoiMeta *roi) {
    return roi->frame_meta == nullptr ? nullptr : roi->frame_meta->base_meta.batch_meta;
}

template <typename Owner, typename T>
void add_first(Owner *owner, GList **list, T *meta) {
    Locked locked(batch_of(owner));
    *list = prepend(*list, meta);
}

template <typename Owner, typename T>
void add_last(Owner *owner, GList **list, T *meta) {
    Locked locked(batch_of(owner));
    *list = append(*list, meta);
}

// Takes an element out of a list and gives it back; false where the list does not have it.
template <typename Owner, typename T>
bool remove_from(Owner *owner, GList **list, T *meta) {
    NvDsBatchMeta *batch = batch_of(owner);
    {
        Locked locked(batch);
        bool there = false;
        for (GList *node = *list; node != nullptr && !there; node = node->next)
            there = node->data == meta;
        if (!there) return false;
        *list = without(*list, meta);
    }
    give_back(pool_of<T>(meta->base_meta.batch_meta), meta);
    return true;
}

}  // namespace

#define HEADRACE_ACQUIRE(type, name) \
    HEADRACE_PUBLIC type *name(NvDsBatchMeta *batch) { return take<type>(batch); }
HEADRACE_ACQUIRE(NvDsFrameMeta, nvds_acquire_frame_meta_from_pool)
HEADRACE_ACQUIRE(NvDsObjectMeta, nvds_acquire_obj_meta_from_pool)
HEADRACE_ACQUIRE(NvDsClassifierMeta, nvds_acquire_classifier_meta_from_pool)
HEADRACE_ACQUIRE(NvDsLabelInfo, nvds_acquire_label_info_meta_from_pool)
HEADRACE_ACQUIRE(NvDsDisplayMeta, nvds_acquire_display_meta_from_pool)
HEADRACE_ACQUIRE(NvDsUserMeta, nvds_acquire_user_meta_from_pool)

HEADRACE_PUBLIC void nvds_add_frame_meta_to_batch(NvDsBatchMeta *batch, NvDsFrameMeta *frame) {
    add_last(batch, &batch->frame_meta_list, frame);
    batch->num_frames_in_batch++;
}
HEADRACE_PUBLIC void nvds_add_obj_meta_to_frame(NvDsFrameMeta *frame, NvDsObjectMeta *object,
                                                NvDsObjectMeta *parent) {
    object->parent = parent;
    add_first(frame, &frame->obj_meta_list, object);
    frame->num_obj_meta++;
}
// Adds objects to a frame that Python packed: `records` holds the fields of each, behind a base
// meta that the pool's takes the place of. The address of each object goes to `addresses`.
HEADRACE_PUBLIC void headrace_add_objects(NvDsFrameMeta *frame, guint count, const char *records,
                                          NvDsObjectMeta **addresses) {
    constexpr size_t base = sizeof(NvDsBaseMeta);
    for (guint i = 0; i < count; i++) {
        auto *object = take<NvDsObjectMeta>(frame->base_meta.batch_meta);
        std::memcpy(reinterpret_cast<char *>(object) + base,
                    records + i * sizeof(NvDsObjectMeta) + base, sizeof(NvDsObjectMeta) - base);
        nvds_add_obj_meta_to_frame(frame, object, nullptr);
        addresses[i] = object;
    }
}

HEADRACE_PUBLIC void nvds_add_classifier_meta_to_object(NvDsObjectMeta *object,
                                                        NvDsClassifierMeta *meta) {
    add_first(object, &object->classifier_meta_list, meta);
}
HEADRACE_PUBLIC void nvds_add_classifier_meta_to_roi(NvDsRoiMeta *roi, NvDsClassifierMeta *meta) {
    add_first(roi, &roi->classifier_meta_list, meta);
}
HEADRACE_PUBLIC void nvds_add_label_info_meta_to_classifier(NvDsClassifierMeta *meta,
                                                            NvDsLabelInfo *label) {
    add_first(meta, &meta->label_info_list, label);
    meta->num_labels++;
}
HEADRACE_PUBLIC void nvds_add_display_meta_to_frame(NvDsFrameMeta *frame, NvDsDisplayMeta *meta) {
    add_first(frame, &frame->display_meta_list, meta);
}
HEADRACE_PUBLIC void nvds_add_user_meta_to_batch(NvDsBatchMeta *batch, NvDsUserMeta *meta) {
    add_last(batch, &batch->batch_user_meta_list, meta);
}
HEADRACE_PUBLIC void nvds_add_user_meta_to_frame(NvDsFrameMeta *frame, NvDsUserMeta *meta) {
    add_first(frame, &frame->frame_user_meta_list, meta);
}
HEADRACE_PUBLIC void nvds_add_user_meta_to_obj(NvDsObjectMeta *object, NvDsUserMeta *meta) {
    add_first(object, &object->obj_user_meta_list, meta);
}
HEADRACE_PUBLIC void nvds_add_user_meta_to_roi(NvDsRoiMeta *roi, NvDsUserMeta *meta) {
    add_first(roi, &roi->roi_user_meta_list, meta);
}

HEADRACE_PUBLIC void nvds_remove_frame_meta_from_batch(NvDsBatchMeta *batch, NvDsFrameMeta *frame) {
    if (remove_from(batch, &batch->frame_meta_list, frame)) batch->num_frames_in_batch--;
}
HEADRACE_PUBLIC void nvds_remove_obj_meta_from_frame(NvDsFrameMeta *frame, NvDsObjectMeta *object) {
    if (!remove_from(frame, &frame->obj_meta_list, object)) return;
    frame->num_obj_meta--;
    for (GList *node = frame->obj_meta_list; node != nullptr; node = node->next) {
        auto *other = static_cast<NvDsObjectMeta *>(node->data);
        if (other->parent == object) other->parent = nullptr;
    }
}
HEADRACE_PUBLIC void nvds_remove_classifier_meta_from_obj(NvDsObjectMeta *object,
                                                          NvDsClassifierMeta *meta) {
    remove_from(object, &object->classifier_meta_list, meta);
}
HEADRACE_PUBLIC void nvds_remove_classifier_meta_from_roi(NvDsRoiMeta *roi,
                                                          NvDsClassifierMeta *meta) {
    remove_from(roi, &roi->classifier_meta_list, meta);
}
HEADRACE_PUBLIC void nvds_remove_label_info_meta_from_classifier(NvDsClassifierMeta *meta,
                                                                 NvDsLabelInfo *label) {
    if (remove_from(meta, &meta->label_info_list, label)) meta->num_labels--;
}
HEADRACE_PUBLIC void nvds_remove_display_meta_from_frame(NvDsFrameMeta *frame,
                                                         NvDsDisplayMeta *meta) {
    remove_from(frame, &frame->display_meta_list, meta);
}
HEADRACE_PUBLIC void nvds_remove_user_meta_from_batch(NvDsBatchMeta *batch, NvDsUserMeta *meta) {
    remove_from(batch, &batch->batch_user_meta_list, meta);
}
HEADRACE_PUBLIC void nvds_remove_user_meta_from_frame(NvDsFrameMeta *frame, NvDsUserMeta *meta) {
    remove_from(frame, &frame->frame_user_meta_list, meta);
}
HEADRACE_PUBLIC void nvds_remove_user_meta_from_object(NvDsObjectMeta *object, NvDsUserMeta *meta) {
    remove_from(object, &object->obj_user_meta_list, meta);
}
HEADRACE_PUBLIC void nvds_remove_user_meta_from_roi(NvDsRoiMeta *roi, NvDsUserMeta *meta) {
    remove_from(roi, &roi->roi_user_meta_list, meta);
}

HEADRACE_PUBLIC void nvds_clear_frame_meta_list(NvDsBatchMeta *batch, NvDsFrameMetaList *) {
    clear<NvDsFrameMeta>(batch, &batch->frame_meta_list);
    batch->num_frames_in_batch = 0;
}
HEADRACE_PUBLIC void nvds_clear_obj_meta_list(NvDsFrameMeta *frame, NvDsObjectMetaList *) {
    clear<NvDsObjectMeta>(batch_of(frame), &frame->obj_meta_list);
    frame->num_obj_meta = 0;
}
HEADRACE_PUBLIC void nvds_clear_display_meta_list(NvDsFrameMeta *frame, NvDisplayMetaList *) {
    clear<NvDsDisplayMeta>(batch_of(frame), &frame->display_meta_list);
}
HEADRACE_PUBLIC void nvds_clear_classifier_meta_list(NvDsObjectMeta *object,
                                                     NvDsClassifierMetaList *) {
    clear<NvDsClassifierMeta>(batch_of(object), &object->classifier_meta_list);
}
HEADRACE_PUBLIC void nvds_clear_label_info_meta_list(NvDsClassifierMeta *meta,
                                                     NvDsLabelInfoList *) {
    clear<NvDsLabelInfo>(batch_of(meta), &meta->label_info_list);
    meta->num_labels = 0;
}
HEADRACE_PUBLIC void nvds_clear_batch_user_meta_list(NvDsBatchMeta *batch, NvDsUserMetaList *) {
    clear<NvDsUserMeta>(batch, &batch->batch_user_meta_list);
}
HEADRACE_PUBLIC void nvds_clear_frame_user_meta_list(NvDsFrameMeta *frame, NvDsUserMetaList *) {
    clear<NvDsUserMeta>(batch_of(frame), &frame->frame_user_meta_list);
}
HEADRACE_PUBLIC void nvds_clear_obj_user_meta_list(NvDsObjectMeta *object, NvDsUserMetaList *) {
    clear<NvDsUserMeta>(batch_of(object), &object->obj_user_meta_list);
}
HEADRACE_PUBLIC NvDsMetaList *nvds_clear_meta_list(NvDsBatchMeta *, NvDsMetaList *list,
                                                   NvDsMetaPool *pool) {
    for (GList *node = list; node != nullptr; node = node->next) give_back(pool, node->data);
    free_nodes(list);
    return nullptr;
}

HEADRACE_PUBLIC NvDsFrameMeta *nvds_get_nth_frame_meta(NvDsFrameMetaList *list, guint index) {
    for (; list != nullptr && index > 0; index--) list = list->next;
    return list == nullptr ? nullptr : static_cast<NvDsFrameMeta *>(list->data);
}

HEADRACE_PUBLIC NvDsMetaType nvds_get_user_meta_type(gchar *descriptor) {
    // what code of releases before 8.0 asks for, where the two types had no number yet
    if (std::strcmp(descriptor, "NVIDIA.DSANALYTICSFRAME.USER_META") == 0)
        return NVDS_FRAME_META_NVDSANALYTICS;
    if (std::strcmp(descriptor, "NVIDIA.DSANALYTICSOBJ.USER_META") == 0)
        return NVDS_OBJ_META_NVDSANALYTICS;
    const guint quark = HEADRACE_CALL(glib, guint(const char *), g_quark_from_string)(descriptor);
    return static_cast<NvDsMetaType>(NVDS_START_USER_META + static_cast<int>(quark));
}

HEADRACE_PUBLIC gboolean nvds_get_current_metadata_info(NvDsBatchMeta *batch) {
    for (NvDsMetaPool *pool :
         {batch->frame_meta_pool, batch->obj_meta_pool, batch->classifier_meta_pool,
          batch->display_meta_pool, batch->user_meta_pool, batch->label_info_meta_pool})
        std::printf("pool of type %d: %u in use, %u free\n", pool->meta_type,
                    pool->num_full_elements, pool->num_empty_elements);
    return TRUE;
}
