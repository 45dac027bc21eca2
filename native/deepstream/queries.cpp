// Questions between elements, events and messages of sources, and enumerations of properties.
#include <cstring>

#include "gst-nvdscustomevent.h"
#include "gst-nvdscustommessage.h"
#include "gst-nvquery.h"
#include "library.h"

using namespace headrace::deepstream;

namespace {

constexpr int kQueryFlags = 1 | 2;  // up and down the stream
constexpr int kElementMessage = 1 << 15;
constexpr int kBoolean = 5 << 2;  // G_TYPE_BOOLEAN
constexpr int kUint = 7 << 2;
constexpr int kString = 16 << 2;

template <typename... Fields>
GstStructure *new_structure(const char *name, const char *field, Fields... fields) {
    return HEADRACE_CALL(gstreamer, GstStructure * (const char *, const char *, ...),
                         gst_structure_new)(name, field, fields..., static_cast<char *>(nullptr));
}

bool has_name(const GstStructure *structure, const char *name) {
    return structure != nullptr &&
           HEADRACE_CALL(gstreamer, gboolean(const GstStructure *, const char *),
                         gst_structure_has_name)(structure, name) != FALSE;
}

const char *text_of(const GstStructure *structure, const char *field) {
    return structure == nullptr
               ? nullptr
               : HEADRACE_CALL(gstreamer, const char *(const GstStructure *, const char *),
                               gst_structure_get_string)(structure, field);
}

gboolean uint_of(const GstStructure *structure, const char *field, guint *value) {
    return structure == nullptr
               ? FALSE
               : HEADRACE_CALL(gstreamer, gboolean(const GstStructure *, const char *, guint *),
                               gst_structure_get_uint)(structure, field, value);
}

// ---- queries

GstQuery *new_query(int number, const char *name, guint value) {
    return HEADRACE_CALL(gstreamer, GstQuery * (int, GstStructure *), gst_query_new_custom)(
        (number << 8) | kQueryFlags,
        new_structure(name, "value", static_cast<gulong>(kUint), value));
}

const GstStructure *structure_of(GstQuery *query) {
    return HEADRACE_CALL(gstreamer, const GstStructure *(GstQuery *),
                         gst_query_get_structure)(query);
}

void answer(GstQuery *query, const char *field, guint value) {
    GstStructure *structure =
        HEADRACE_CALL(gstreamer, GstStructure * (GstQuery *), gst_query_writable_structure)(query);
    HEADRACE_CALL(gstreamer, void(GstStructure *, const char *, ...), gst_structure_set)(
        structure, field, static_cast<gulong>(kUint), value, static_cast<char *>(nullptr));
}

// ---- messages of sources

bool parse_sensor(GstMessage *message, const char *name, NvDsSensorInfo *info) {
    const GstStructure *structure = HEADRACE_CALL(gstreamer, const GstStructure *(GstMessage *),
                                                  gst_message_get_structure)(message);
    if (!has_name(structure, name) || info == nullptr) return false;
    std::memset(info, 0, sizeof *info);
    uint_of(structure, "source-id", &info->source_id);
    info->uri = duplicate(text_of(structure, "uri"));
    info->sensor_id = duplicate(text_of(structure, "sensor-id"));
    info->sensor_name = duplicate(text_of(structure, "sensor-name"));
    return true;
}

GstMessage *new_message(GstObject *source, GstStructure *structure) {
    return HEADRACE_CALL(gstreamer, GstMessage * (int, GstObject *, GstStructure *),
                         gst_message_new_custom)(kElementMessage, source, structure);
}

GstMessage *new_sensor(GstObject *source, const char *name, NvDsSensorInfo *info) {
    return new_message(
        source, new_structure(name, "source-id", static_cast<gulong>(kUint), info->source_id,
                              "sensor-id", static_cast<gulong>(kString), info->sensor_id,
                              "sensor-name", static_cast<gulong>(kString), info->sensor_name, "uri",
                              static_cast<gulong>(kString), info->uri));
}

bool is_message(GstMessage *message, const char *name) {
    return has_name(HEADRACE_CALL(gstreamer, const GstStructure *(GstMessage *),
                                  gst_message_get_structure)(message),
                    name);
}

const GstStructure *structure_of(GstMessage *message) {
    return HEADRACE_CALL(gstreamer, const GstStructure *(GstMessage *),
                         gst_message_get_structure)(message);
}

gboolean flag_of(const GstStructure *structure, const char *field, gboolean *value) {
    return HEADRACE_CALL(gstreamer, gboolean(const GstStructure *, const char *, gboolean *),
                         gst_structure_get_boolean)(structure, field, value);
}

// ---- enumerations

struct EnumValue {  // GEnumValue
    int value;
    const char *name, *nick;
};

gulong new_enum(const char *name, const EnumValue *values) {
    return HEADRACE_CALL(gobject, gulong(const char *, const EnumValue *), g_enum_register_static)(
        name, values);
}

}  // namespace

#define HEADRACE_QUERY(number, label, name)                                               \
    HEADRACE_PUBLIC gboolean gst_nvquery_is_##label(GstQuery *query) {                    \
        return has_name(structure_of(query), name);                                       \
    }                                                                                     \
    HEADRACE_PUBLIC void gst_nvquery_##label##_set(GstQuery *query, guint value) {        \
        answer(query, "value", value);                                                    \
    }                                                                                     \
    HEADRACE_PUBLIC gboolean gst_nvquery_##label##_parse(GstQuery *query, guint *value) { \
        return gst_nvquery_is_##label(query) != FALSE                                     \
                   ? uint_of(structure_of(query), "value", value)                         \
                   : FALSE;                                                               \
    }
HEADRACE_QUERY(500, batch_size, "headrace-batch-size")
HEADRACE_QUERY(501, numStreams_size, "headrace-number-of-streams")
HEADRACE_QUERY(502, preprocess_poolsize, "headrace-preprocess-pool-size")

// Answers for an element in Python: some bindings hold a reference of their own, and a query that
// two hold cannot be written.
HEADRACE_PUBLIC void headrace_answer_query(GstQuery *query, guint value) {
    const bool is_held =
        HEADRACE_CALL(gstreamer, gboolean(void *), gst_mini_object_is_writable)(query) == FALSE;
    if (is_held) HEADRACE_CALL(gstreamer, void(void *), gst_mini_object_unref)(query);
    answer(query, "value", value);
    if (is_held) HEADRACE_CALL(gstreamer, void *(void *), gst_mini_object_ref)(query);
}

HEADRACE_PUBLIC GstQuery *gst_nvquery_batch_size_new(void) {
    return new_query(500, "headrace-batch-size", 0);
}
HEADRACE_PUBLIC GstQuery *gst_nvquery_numStreams_size_new(void) {
    return new_query(501, "headrace-number-of-streams", 0);
}
HEADRACE_PUBLIC GstQuery *gst_nvquery_preprocess_poolsize_new(guint model) {
    GstQuery *query = new_query(502, "headrace-preprocess-pool-size", 0);
    answer(query, "model", model);
    return query;
}
HEADRACE_PUBLIC gboolean gst_nvquery_preprocess_poolsize_gieid_parse(GstQuery *query,
                                                                     guint *model) {
    return uint_of(structure_of(query), "model", model);
}

HEADRACE_PUBLIC gboolean gst_nvmessage_is_stream_add(GstMessage *message) {
    return is_message(message, "stream-add");
}
HEADRACE_PUBLIC gboolean gst_nvmessage_parse_stream_add(GstMessage *message, NvDsSensorInfo *info) {
    return parse_sensor(message, "stream-add", info);
}
HEADRACE_PUBLIC gboolean gst_nvmessage_is_stream_remove(GstMessage *message) {
    return is_message(message, "stream-remove");
}
HEADRACE_PUBLIC gboolean gst_nvmessage_parse_stream_remove(GstMessage *message,
                                                           NvDsSensorInfo *info) {
    return parse_sensor(message, "stream-remove", info);
}
// The structure of apps-common has the same fields in the same order.
HEADRACE_PUBLIC gboolean gst_nvmessage_parse_fps_stream_add(GstMessage *message, void *info) {
    return parse_sensor(message, "stream-add", static_cast<NvDsSensorInfo *>(info));
}
HEADRACE_PUBLIC gboolean gst_nvmessage_parse_fps_stream_remove(GstMessage *message, void *info) {
    return parse_sensor(message, "stream-remove", static_cast<NvDsSensorInfo *>(info));
}
HEADRACE_PUBLIC GstMessage *gst_nvmessage_new_stream_add(GstObject *source, NvDsSensorInfo *info) {
    return new_sensor(source, "stream-add", info);
}
HEADRACE_PUBLIC GstMessage *gst_nvmessage_new_stream_remove(GstObject *source,
                                                            NvDsSensorInfo *info) {
    return new_sensor(source, "stream-remove", info);
}
HEADRACE_PUBLIC GstMessage *gst_nvmessage_force_pipeline_eos(GstObject *source, gboolean force) {
    return new_message(source, new_structure("force-pipeline-eos", "force_eos",
                                             static_cast<gulong>(kBoolean), force));
}
HEADRACE_PUBLIC gboolean gst_nvmessage_is_force_pipeline_eos(GstMessage *message) {
    return is_message(message, "force-pipeline-eos");
}
HEADRACE_PUBLIC gboolean gst_nvmessage_parse_force_pipeline_eos(GstMessage *message,
                                                                gboolean *force) {
    return is_message(message, "force-pipeline-eos")
               ? flag_of(structure_of(message), "force_eos", force)
               : FALSE;
}
HEADRACE_PUBLIC GstMessage *gst_nvmessage_reconnect_attempt_exceeded(GstObject *source,
                                                                     NvDsRtspAttemptsInfo *info) {
    return new_message(
        source,
        new_structure("attempt-exceeded", "source-id", static_cast<gulong>(kUint), info->source_id,
                      "attempt_exceeded", static_cast<gulong>(kBoolean), info->attempt_exceeded));
}
HEADRACE_PUBLIC gboolean gst_nvmessage_is_reconnect_attempt_exceeded(GstMessage *message) {
    return is_message(message, "attempt-exceeded");
}
HEADRACE_PUBLIC gboolean
gst_nvmessage_parse_reconnect_attempt_exceeded(GstMessage *message, NvDsRtspAttemptsInfo *info) {
    if (!is_message(message, "attempt-exceeded")) return FALSE;
    uint_of(structure_of(message), "source-id", &info->source_id);
    return flag_of(structure_of(message), "attempt_exceeded", &info->attempt_exceeded);
}

HEADRACE_PUBLIC gulong gst_nvbuf_memory_get_type(void) {
    static const EnumValue values[] = {{0, "Default memory", "nvbuf-mem-default"},
                                       {1, "Pinned memory", "nvbuf-mem-cuda-pinned"},
                                       {2, "Memory of the device", "nvbuf-mem-cuda-device"},
                                       {3, "Unified memory", "nvbuf-mem-cuda-unified"},
                                       {0, nullptr, nullptr}};
    static const gulong type = new_enum("HeadraceCNvBufMemoryType", values);
    return type;
}
HEADRACE_PUBLIC gulong gst_compute_hw_get_type(void) {
    static const EnumValue values[] = {
        {0, "Default", "Default"}, {1, "GPU", "GPU"}, {2, "VIC", "VIC"}, {0, nullptr, nullptr}};
    static const gulong type = new_enum("HeadraceCComputeHw", values);
    return type;
}
HEADRACE_PUBLIC gulong gst_video_interpolation_method_get_type(void) {
    static const EnumValue values[] = {{0, "Nearest", "Nearest"},    {1, "Bilinear", "Bilinear"},
                                       {2, "Algorithm 1", "Algo-1"}, {3, "Algorithm 2", "Algo-2"},
                                       {4, "Algorithm 3", "Algo-3"}, {5, "Algorithm 4", "Algo-4"},
                                       {6, "Default", "Default"},    {0, nullptr, nullptr}};
    static const gulong type = new_enum("HeadraceCInterpolationMethod", values);
    return type;
}
HEADRACE_PUBLIC int gst_nvbuf_memory_get_value(const char *name) {
    static const char *const names[] = {"nvbuf-mem-default", "nvbuf-mem-cuda-pinned",
                                        "nvbuf-mem-cuda-device", "nvbuf-mem-cuda-unified"};
    for (int i = 0; i < 4; i++)
        if (std::strcmp(name, names[i]) == 0) return i;
    return -1;
}
