// Copies of metadata: each list is walked forward and added to again, as the original does.
#include <cstring>
#include <unordered_map>

#include "pools.h"

using namespace headrace::deepstream;

namespace {

// Copies a structure's fields, and keeps the owner and the functions of the copy.
template <typename T>
void copy_fields(const T *source, T *copy) {
    const NvDsBaseMeta base = copy->base_meta;
    *copy = *source;
    copy->base_meta = base;
}

NvDsUserMeta *copy_user(NvDsUserMeta *source, NvDsBatchMeta *batch) {
    if (source->base_meta.copy_func == nullptr) return nullptr;  // cannot travel
    auto *copy = take<NvDsUserMeta>(batch);
    copy->base_meta.meta_type = source->base_meta.meta_type;
    copy->base_meta.uContext = source->base_meta.uContext;
    copy->base_meta.copy_func = source->base_meta.copy_func;
    copy->base_meta.release_func = source->base_meta.release_func;
    copy->user_meta_data = source->base_meta.copy_func(source, nullptr);
    return copy;
}

template <typename T, typename F>
void each(GList *list, F &&action) {
    for (; list != nullptr; list = list->next) action(static_cast<T *>(list->data));
}

}  // namespace

HEADRACE_PUBLIC void nvds_copy_label_info_meta(NvDsLabelInfo *source, NvDsLabelInfo *copy) {
    copy_fields(source, copy);
    copy->pResult_label = duplicate(source->pResult_label);
}

HEADRACE_PUBLIC void nvds_copy_label_info_list(NvDsLabelInfoList *list, NvDsClassifierMeta *meta) {
    each<NvDsLabelInfo>(list, [meta](NvDsLabelInfo *label) {
        auto *copy = take<NvDsLabelInfo>(meta->base_meta.batch_meta);
        nvds_copy_label_info_meta(label, copy);
        nvds_add_label_info_meta_to_classifier(meta, copy);
    });
}

HEADRACE_PUBLIC void nvds_copy_classifier_meta(NvDsClassifierMeta *source,
                                               NvDsClassifierMeta *copy) {
    copy_fields(source, copy);
    copy->label_info_list = nullptr;
    copy->num_labels = 0;
    nvds_copy_label_info_list(source->label_info_list, copy);
}

HEADRACE_PUBLIC void nvds_copy_classification_list(NvDsClassifierMetaList *list,
                                                   NvDsObjectMeta *object) {
    each<NvDsClassifierMeta>(list, [object](NvDsClassifierMeta *meta) {
        auto *copy = take<NvDsClassifierMeta>(object->base_meta.batch_meta);
        nvds_copy_classifier_meta(meta, copy);
        nvds_add_classifier_meta_to_object(object, copy);
    });
}

HEADRACE_PUBLIC void nvds_copy_obj_user_meta_list(NvDsUserMetaList *list, NvDsObjectMeta *object) {
    each<NvDsUserMeta>(list, [object](NvDsUserMeta *meta) {
        if (auto *copy = copy_user(meta, object->base_meta.batch_meta))
            nvds_add_user_meta_to_obj(object, copy);
    });
}

HEADRACE_PUBLIC void nvds_copy_obj_meta(NvDsObjectMeta *source, NvDsObjectMeta *copy) {
    copy_fields(source, copy);
    copy->parent = nullptr;
    copy->text_params.display_text = duplicate(source->text_params.display_text);
    if (source->mask_params.size > 0 && source->mask_params.data != nullptr) {
        copy->mask_params.data = static_cast<float *>(allocate(source->mask_params.size));
        std::memcpy(copy->mask_params.data, source->mask_params.data, source->mask_params.size);
    }
    copy->classifier_meta_list = nullptr;
    copy->obj_user_meta_list = nullptr;
    nvds_copy_classification_list(source->classifier_meta_list, copy);
    nvds_copy_obj_user_meta_list(source->obj_user_meta_list, copy);
}

HEADRACE_PUBLIC void nvds_copy_obj_meta_list(NvDsObjectMetaList *list, NvDsFrameMeta *frame) {
    std::unordered_map<NvDsObjectMeta *, NvDsObjectMeta *> copies;
    each<NvDsObjectMeta>(list, [&copies, frame](NvDsObjectMeta *object) {
        auto *copy = take<NvDsObjectMeta>(frame->base_meta.batch_meta);
        nvds_copy_obj_meta(object, copy);
        copies[object] = copy;
        const auto parent = copies.find(object->parent);
        nvds_add_obj_meta_to_frame(frame, copy, parent == copies.end() ? nullptr : parent->second);
    });
}

HEADRACE_PUBLIC void nvds_copy_display_meta(NvDsDisplayMeta *source, NvDsDisplayMeta *copy) {
    copy_fields(source, copy);
    for (auto &text : copy->text_params) text.display_text = duplicate(text.display_text);
}

HEADRACE_PUBLIC void nvds_copy_display_meta_list(NvDisplayMetaList *list, NvDsFrameMeta *frame) {
    each<NvDsDisplayMeta>(list, [frame](NvDsDisplayMeta *meta) {
        auto *copy = take<NvDsDisplayMeta>(frame->base_meta.batch_meta);
        nvds_copy_display_meta(meta, copy);
        nvds_add_display_meta_to_frame(frame, copy);
    });
}

HEADRACE_PUBLIC void nvds_copy_frame_user_meta_list(NvDsUserMetaList *list, NvDsFrameMeta *frame) {
    each<NvDsUserMeta>(list, [frame](NvDsUserMeta *meta) {
        if (auto *copy = copy_user(meta, frame->base_meta.batch_meta))
            nvds_add_user_meta_to_frame(frame, copy);
    });
}

HEADRACE_PUBLIC void nvds_copy_batch_user_meta_list(NvDsUserMetaList *list, NvDsBatchMeta *batch) {
    each<NvDsUserMeta>(list, [batch](NvDsUserMeta *meta) {
        if (auto *copy = copy_user(meta, batch)) nvds_add_user_meta_to_batch(batch, copy);
    });
}

HEADRACE_PUBLIC void nvds_copy_frame_meta(NvDsFrameMeta *source, NvDsFrameMeta *copy) {
    copy_fields(source, copy);
    copy->sensorInfo_meta.uri = duplicate(source->sensorInfo_meta.uri);
    copy->sensorInfo_meta.sensor_id = duplicate(source->sensorInfo_meta.sensor_id);
    copy->sensorInfo_meta.sensor_name = duplicate(source->sensorInfo_meta.sensor_name);
    copy->obj_meta_list = copy->display_meta_list = copy->frame_user_meta_list = nullptr;
    copy->num_obj_meta = 0;
    nvds_copy_obj_meta_list(source->obj_meta_list, copy);
    nvds_copy_display_meta_list(source->display_meta_list, copy);
    nvds_copy_frame_user_meta_list(source->frame_user_meta_list, copy);
}

HEADRACE_PUBLIC void nvds_copy_frame_meta_list(NvDsFrameMetaList *list, NvDsBatchMeta *batch) {
    each<NvDsFrameMeta>(list, [batch](NvDsFrameMeta *frame) {
        auto *copy = take<NvDsFrameMeta>(batch);
        nvds_copy_frame_meta(frame, copy);
        nvds_add_frame_meta_to_batch(batch, copy);
    });
}

HEADRACE_PUBLIC gpointer nvds_batch_meta_copy_func(gpointer data, gpointer) {
    auto *source = static_cast<NvDsBatchMeta *>(data);
    NvDsBatchMeta *copy = nvds_create_batch_meta(source->max_frames_in_batch);
    std::memcpy(copy->misc_batch_info, source->misc_batch_info, sizeof copy->misc_batch_info);
    nvds_copy_frame_meta_list(source->frame_meta_list, copy);
    nvds_copy_batch_user_meta_list(source->batch_user_meta_list, copy);
    return copy;
}
