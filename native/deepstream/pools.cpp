#include "pools.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "generation.h"

#include "generation.h"

namespace headrace::deepstream {
namespace {

constexpr guint kGrowth = 4;  // elements that an empty pool gets: a batch may need very few

NvDsBaseMeta *base(void *element) { return static_cast<NvDsBaseMeta *>(element); }

void release_user(gpointer data, gpointer) {
    auto *user = static_cast<NvDsUserMeta *>(data);
    if (user->base_meta.release_func != nullptr) user->base_meta.release_func(user, nullptr);
}

void release_label(gpointer data, gpointer) {
    release(static_cast<NvDsLabelInfo *>(data)->pResult_label);
}

void release_classifier(gpointer data, gpointer) {
    auto *meta = static_cast<NvDsClassifierMeta *>(data);
    clear<NvDsLabelInfo>(meta->base_meta.batch_meta, &meta->label_info_list);
}

void release_object(gpointer data, gpointer) {
    auto *object = static_cast<NvDsObjectMeta *>(data);
    NvDsBatchMeta *batch = object->base_meta.batch_meta;
    clear<NvDsClassifierMeta>(batch, &object->classifier_meta_list);
    clear<NvDsUserMeta>(batch, &object->obj_user_meta_list);
    release(object->text_params.display_text);
    if (object->mask_params.size > 0) release(object->mask_params.data);
}

void release_display(gpointer data, gpointer) {
    for (auto &text : static_cast<NvDsDisplayMeta *>(data)->text_params) release(text.display_text);
}

void release_frame(gpointer data, gpointer) {
    auto *frame = static_cast<NvDsFrameMeta *>(data);
    NvDsBatchMeta *batch = frame->base_meta.batch_meta;
    clear<NvDsObjectMeta>(batch, &frame->obj_meta_list);
    clear<NvDsDisplayMeta>(batch, &frame->display_meta_list);
    clear<NvDsUserMeta>(batch, &frame->frame_user_meta_list);
    release(const_cast<gchar *>(frame->sensorInfo_meta.uri));
    release(const_cast<gchar *>(frame->sensorInfo_meta.sensor_id));
    release(const_cast<gchar *>(frame->sensorInfo_meta.sensor_name));
}

NvDsMetaPool *make(NvDsMetaType type, size_t size, NvDsMetaReleaseFunc release_func) {
    auto *pool = static_cast<NvDsMetaPool *>(allocate(sizeof(NvDsMetaPool)));
    pool->meta_type = type;
    pool->element_size = static_cast<guint>(size);
    pool->release_func = release_func;
    return pool;
}

void grow(NvDsMetaPool *pool) {
    guint count = std::min(128U, std::max(kGrowth, 2 * pool->max_elements_in_pool));
    if (pool->meta_type == NVDS_DISPLAY_META) count = 1;  // of 7 KiB
    for (guint i = 0; i < count; i++)
        pool->empty_list = prepend(pool->empty_list, allocate(pool->element_size));
    pool->max_elements_in_pool += count;
    pool->num_empty_elements += count;
}

// Lets go of a list's nodes: its elements are released with their pool.
void forget(GList **list) {
    free_nodes(*list);
    *list = nullptr;
}

template <typename T, typename F>
void each_in_use(NvDsMetaPool *pool, F &&action) {
    for (GList *node = pool->full_list; node != nullptr; node = node->next)
        action(static_cast<T *>(node->data));
}

// Lets go of all lists of a batch: else each element would be looked for among
// those in use.
void forget_lists(NvDsBatchMeta *batch) {
    forget(&batch->frame_meta_list);
    forget(&batch->batch_user_meta_list);
    each_in_use<NvDsFrameMeta>(batch->frame_meta_pool, [](NvDsFrameMeta *frame) {
        forget(&frame->obj_meta_list);
        forget(&frame->display_meta_list);
        forget(&frame->frame_user_meta_list);
    });
    each_in_use<NvDsObjectMeta>(batch->obj_meta_pool, [](NvDsObjectMeta *object) {
        forget(&object->classifier_meta_list);
        forget(&object->obj_user_meta_list);
    });
    each_in_use<NvDsClassifierMeta>(batch->classifier_meta_pool, [](NvDsClassifierMeta *meta) {
        forget(&meta->label_info_list);
    });
}

void destroy(NvDsMetaPool *pool) {
    while (pool->full_list != nullptr) give_back(pool, pool->full_list->data);
    for (GList *node = pool->empty_list; node != nullptr; node = node->next) release(node->data);
    free_nodes(pool->empty_list);
    release(pool);
}

}  // namespace

template <>
NvDsMetaPool *pool_of<NvDsFrameMeta>(NvDsBatchMeta *batch) {
    return batch->frame_meta_pool;
}
template <>
NvDsMetaPool *pool_of<NvDsObjectMeta>(NvDsBatchMeta *batch) {
    return batch->obj_meta_pool;
}
template <>
NvDsMetaPool *pool_of<NvDsClassifierMeta>(NvDsBatchMeta *batch) {
    return batch->classifier_meta_pool;
}
template <>
NvDsMetaPool *pool_of<NvDsLabelInfo>(NvDsBatchMeta *batch) {
    return batch->label_info_meta_pool;
}
template <>
NvDsMetaPool *pool_of<NvDsDisplayMeta>(NvDsBatchMeta *batch) {
    return batch->display_meta_pool;
}
template <>
NvDsMetaPool *pool_of<NvDsUserMeta>(NvDsBatchMeta *batch) {
    return batch->user_meta_pool;
}

void *take(NvDsBatchMeta *batch, NvDsMetaPool *pool) {
    Locked locked(batch);
    if (pool->empty_list == nullptr) grow(pool);
    void *element = pool->empty_list->data;
    pool->empty_list = without(pool->empty_list, element);
    pool->full_list = prepend(pool->full_list, element);
    pool->num_empty_elements--;
    pool->num_full_elements++;
    base(element)->batch_meta = batch;
    base(element)->meta_type = pool->meta_type;
    return element;
}

void give_back(NvDsMetaPool *pool, void *element) {
    pool->release_func(element, nullptr);
    Locked locked(base(element)->batch_meta);
    NvDsBatchMeta *batch = base(element)->batch_meta;
    std::memset(element, 0, pool->element_size);
    base(element)->batch_meta = batch;
    pool->full_list = without(pool->full_list, element);
    pool->empty_list = prepend(pool->empty_list, element);
    pool->num_full_elements--;
    pool->num_empty_elements++;
}

}  // namespace headrace::deepstream

using namespace headrace::deepstream;

HEADRACE_PUBLIC NvDsBatchMeta *nvds_create_batch_meta(guint max_batch_size) {
    if (!HEADRACE_SAME_LAYOUT) return nullptr;
    auto *batch = static_cast<NvDsBatchMeta *>(allocate(sizeof(NvDsBatchMeta)));
    HEADRACE_CALL(glib, void(GRecMutex *), g_rec_mutex_init)(&batch->meta_mutex);
    batch->base_meta.batch_meta = batch;
    batch->base_meta.meta_type = NVDS_BATCH_META;
    batch->base_meta.copy_func = nvds_batch_meta_copy_func;
    batch->base_meta.release_func = nvds_batch_meta_release_func;
    batch->max_frames_in_batch = max_batch_size;
    batch->frame_meta_pool = make(NVDS_FRAME_META, sizeof(NvDsFrameMeta), release_frame);
    batch->obj_meta_pool = make(NVDS_OBJ_META, sizeof(NvDsObjectMeta), release_object);
    batch->classifier_meta_pool =
        make(NVDS_CLASSIFIER_META, sizeof(NvDsClassifierMeta), release_classifier);
    batch->display_meta_pool = make(NVDS_DISPLAY_META, sizeof(NvDsDisplayMeta), release_display);
    batch->user_meta_pool = make(NVDS_USER_META, sizeof(NvDsUserMeta), release_user);
    batch->label_info_meta_pool = make(NVDS_LABEL_INFO_META, sizeof(NvDsLabelInfo), release_label);
    return batch;
}

HEADRACE_PUBLIC gboolean nvds_destroy_batch_meta(NvDsBatchMeta *batch) {
    if (batch == nullptr) return FALSE;
    forget_lists(batch);
    for (NvDsMetaPool *pool :
         {batch->frame_meta_pool, batch->obj_meta_pool, batch->classifier_meta_pool,
          batch->display_meta_pool, batch->user_meta_pool, batch->label_info_meta_pool})
        destroy(pool);
    HEADRACE_CALL(glib, void(GRecMutex *), g_rec_mutex_clear)(&batch->meta_mutex);
    release(batch);
    return TRUE;
}

HEADRACE_PUBLIC void nvds_batch_meta_release_func(gpointer data, gpointer) {
    nvds_destroy_batch_meta(static_cast<NvDsBatchMeta *>(data));
}

HEADRACE_PUBLIC void nvds_acquire_meta_lock(NvDsBatchMeta *batch) {
    HEADRACE_CALL(glib, void(GRecMutex *), g_rec_mutex_lock)(&batch->meta_mutex);
}

HEADRACE_PUBLIC void nvds_release_meta_lock(NvDsBatchMeta *batch) {
    HEADRACE_CALL(glib, void(GRecMutex *), g_rec_mutex_unlock)(&batch->meta_mutex);
}
