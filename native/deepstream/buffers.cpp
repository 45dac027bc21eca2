// Metadata on buffers: batches of the elements, built where C code asks, and an application's own.
#include <atomic>
#include <cstring>

#include "generation.h"
#include "library.h"
#include "nvds_latency_meta.h"

using namespace headrace::deepstream;

namespace {

constexpr size_t kHeader = sizeof(GstMeta);

// Of the elements, in Python: how to build a batch's structures, and their type of metadata.
using Ask = void *(void *);
std::atomic<Ask *> ask{nullptr};
std::atomic<gulong> elements_api{0};

// What follows GstMeta in the metadata of the elements.
struct Held {
    guint64 number;  // of the batch in their table
    void *batch;     // its structures, once C code asked for them
};

gboolean init_meta(GstMeta *meta, gpointer, GstBuffer *) {
    std::memset(reinterpret_cast<char *>(meta) + kHeader, 0, sizeof(NvDsMeta) - kHeader);
    return TRUE;
}

void free_meta(GstMeta *raw, GstBuffer *) {
    auto *meta = reinterpret_cast<NvDsMeta *>(raw);
    if (meta->freefunc != nullptr && meta->meta_data != nullptr)
        meta->freefunc(meta->meta_data, meta->user_data);
}

gboolean transform_meta(GstBuffer *target, GstMeta *raw, GstBuffer *, guint type, gpointer) {
    static const guint copying =
        HEADRACE_CALL(glib, guint(const char *), g_quark_from_string)("gst-copy");
    auto *meta = reinterpret_cast<NvDsMeta *>(raw);
    if (type != copying || meta->copyfunc == nullptr) return TRUE;
    void *data = meta->copyfunc(meta->meta_data, meta->user_data);
    NvDsMeta *copy =
        gst_buffer_add_nvds_meta(target, data, meta->user_data, meta->copyfunc, meta->freefunc);
    copy->meta_type = meta->meta_type;
    copy->gst_to_nvds_meta_transform_func = meta->gst_to_nvds_meta_transform_func;
    copy->gst_to_nvds_meta_release_func = meta->gst_to_nvds_meta_release_func;
    return TRUE;
}

NvDsMeta *next_meta(GstBuffer *buffer, void **state) {
    return reinterpret_cast<NvDsMeta *>(
        HEADRACE_CALL(gstreamer, GstMeta * (GstBuffer *, void **, GType),
                      gst_buffer_iterate_meta_filtered)(buffer, state, nvds_meta_api_get_type()));
}

}  // namespace

// The elements tell how they answer; called once, by their bridge.
HEADRACE_PUBLIC void headrace_serve_batches(Ask *answer, gulong api) {
    elements_api = api;
    ask = answer;
}

HEADRACE_PUBLIC GType nvds_meta_api_get_type(void) {
    static const char *tags[] = {"nvdsmeta", nullptr};
    static const GType type = HEADRACE_CALL(gstreamer, GType(const char *, const char **),
                                            gst_meta_api_type_register)("NvDsMetaAPI", tags);
    return type;
}

HEADRACE_PUBLIC const GstMetaInfo *nvds_meta_get_info(void) {
    static const GstMetaInfo *const info =
        HEADRACE_CALL(gstreamer,
                      const GstMetaInfo *(GType, const char *, gsize, decltype(&init_meta),
                                          decltype(&free_meta), decltype(&transform_meta)),
                      gst_meta_register)(nvds_meta_api_get_type(), "NvDsMeta", sizeof(NvDsMeta),
                                         init_meta, free_meta, transform_meta);
    return info;
}

HEADRACE_PUBLIC NvDsMeta *gst_buffer_add_nvds_meta(GstBuffer *buffer, gpointer meta_data,
                                                   gpointer user_data, NvDsMetaCopyFunc copy_func,
                                                   NvDsMetaReleaseFunc release_func) {
    auto *meta = reinterpret_cast<NvDsMeta *>(
        HEADRACE_CALL(gstreamer, GstMeta * (GstBuffer *, const GstMetaInfo *, void *),
                      gst_buffer_add_meta)(buffer, nvds_meta_get_info(), nullptr));
    if (meta == nullptr) return nullptr;
    meta->meta_data = meta_data;
    meta->user_data = user_data;
    meta->copyfunc = copy_func;
    meta->freefunc = release_func;
    return meta;
}

HEADRACE_PUBLIC NvDsMeta *gst_buffer_get_nvds_meta(GstBuffer *buffer) {
    void *state = nullptr;
    return next_meta(buffer, &state);
}

HEADRACE_PUBLIC NvDsBatchMeta *gst_buffer_get_nvds_batch_meta(GstBuffer *buffer) {
    if (buffer == nullptr || !HEADRACE_SAME_LAYOUT) return nullptr;
    void *state = nullptr;
    NvDsMeta *last = nullptr;
    while (NvDsMeta *meta = next_meta(buffer, &state))
        if (meta->meta_type == NVDS_BATCH_GST_META) last = meta;
    if (last != nullptr) return static_cast<NvDsBatchMeta *>(last->meta_data);
    Ask *const answer = ask;
    if (answer == nullptr) return nullptr;  // no element of ours has run
    auto *meta = HEADRACE_CALL(gstreamer, GstMeta * (GstBuffer *, GType), gst_buffer_get_meta)(
        buffer, elements_api);
    if (meta == nullptr) return nullptr;
    auto *held = reinterpret_cast<Held *>(reinterpret_cast<char *>(meta) + kHeader);
    if (held->batch == nullptr) held->batch = answer(buffer);
    return static_cast<NvDsBatchMeta *>(held->batch);
}

// Moves an application's metadata of a buffer to a frame's user metadata, as the multiplexer does.
HEADRACE_PUBLIC void nvds_copy_gst_meta_to_frame_meta(GstBuffer *buffer, NvDsBatchMeta *batch,
                                                      NvDsFrameMeta *frame) {
    void *state = nullptr;
    while (NvDsMeta *meta = next_meta(buffer, &state)) {
        if (meta->gst_to_nvds_meta_transform_func == nullptr) continue;
        NvDsUserMeta *user = nvds_acquire_user_meta_from_pool(batch);
        user->base_meta.meta_type = static_cast<NvDsMetaType>(meta->meta_type);
        user->user_meta_data =
            meta->gst_to_nvds_meta_transform_func(meta->meta_data, meta->user_data);
        user->base_meta.copy_func = meta->gst_to_nvds_meta_transform_func;
        user->base_meta.release_func = meta->gst_to_nvds_meta_release_func;
        nvds_add_user_meta_to_frame(frame, user);
    }
}

// Latencies are not measured: NVDS_ENABLE_LATENCY_MEASUREMENT has no effect.
HEADRACE_PUBLIC gboolean nvds_get_enable_latency_measurement(void) { return FALSE; }
HEADRACE_PUBLIC gboolean nvds_get_latency_measurement_silent(void) { return TRUE; }
HEADRACE_PUBLIC guint nvds_measure_buffer_latency(GstBuffer *, NvDsFrameLatencyInfo *) { return 0; }
HEADRACE_PUBLIC NvDsUserMeta *nvds_set_input_system_timestamp(GstBuffer *, gchar *) {
    return nullptr;
}
HEADRACE_PUBLIC gboolean nvds_set_output_system_timestamp(GstBuffer *, gchar *) { return TRUE; }
HEADRACE_PUBLIC void nvds_add_reference_timestamp_meta(GstBuffer *, gchar *, guint) {}
