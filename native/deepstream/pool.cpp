// Pools of buffers whose memory is an NvBufSurface: for C code that makes images of its own.
#include <cstring>

#include "library.h"
#include "nvbufsurface.h"

using namespace headrace::deepstream;

namespace {

constexpr int kAllocate = 5;  // place of `alloc_buffer` among the functions of GstBufferPoolClass
constexpr int kFlowOk = 0;
constexpr int kFlowError = -5;

struct TypeQuery {  // GTypeQuery
    gulong type;
    const char *name;
    guint class_size, instance_size;
};

struct Format {
    const char *name;
    NvBufSurfaceColorFormat number;
};

NvBufSurfaceColorFormat format_of(const char *name) {
    static const Format formats[] = {
        {"NV12", NVBUF_COLOR_FORMAT_NV12},  {"I420", NVBUF_COLOR_FORMAT_YUV420},
        {"RGBA", NVBUF_COLOR_FORMAT_RGBA},  {"BGRx", NVBUF_COLOR_FORMAT_BGRx},
        {"RGB", NVBUF_COLOR_FORMAT_RGB},    {"BGR", NVBUF_COLOR_FORMAT_BGR},
        {"GRAY8", NVBUF_COLOR_FORMAT_GRAY8}};
    for (const Format &format : formats)
        if (name != nullptr && std::strcmp(name, format.name) == 0) return format.number;
    return NVBUF_COLOR_FORMAT_INVALID;
}

void destroy(void *surface) { NvBufSurfaceDestroy(static_cast<NvBufSurface *>(surface)); }

// What a pool's configuration asks for; nullptr where it names no image of a known format.
NvBufSurface *surface_of(void *pool) {
    auto *config =
        HEADRACE_CALL(gstreamer, GstStructure * (void *), gst_buffer_pool_get_config)(pool);
    void *caps = nullptr;
    guint size = 0;
    guint least = 0;
    guint most = 0;
    HEADRACE_CALL(gstreamer, gboolean(GstStructure *, void **, guint *, guint *, guint *),
                  gst_buffer_pool_config_get_params)(config, &caps, &size, &least, &most);
    guint images = 1;
    HEADRACE_CALL(gstreamer, gboolean(const GstStructure *, const char *, guint *),
                  gst_structure_get_uint)(config, "batch-size", &images);
    NvBufSurface *surface = nullptr;
    if (caps != nullptr) {
        auto *structure = HEADRACE_CALL(gstreamer, GstStructure * (void *, guint),
                                        gst_caps_get_structure)(caps, 0);
        auto *read = HEADRACE_CALL(gstreamer, gboolean(const GstStructure *, const char *, int *),
                                   gst_structure_get_int);
        NvBufSurfaceCreateParams params{};
        int width = 0;
        int height = 0;
        read(structure, "width", &width);
        read(structure, "height", &height);
        params.width = static_cast<uint32_t>(width);
        params.height = static_cast<uint32_t>(height);
        params.colorFormat =
            format_of(HEADRACE_CALL(gstreamer, const char *(const GstStructure *, const char *),
                                    gst_structure_get_string)(structure, "format"));
        NvBufSurfaceCreate(&surface, images == 0 ? 1 : images, &params);
    }
    HEADRACE_CALL(gstreamer, void(GstStructure *), gst_structure_free)(config);
    return surface;
}

int allocate_buffer(void *pool, void **buffer, void *) {
    NvBufSurface *surface = surface_of(pool);
    if (surface == nullptr) return kFlowError;
    *buffer = HEADRACE_CALL(gstreamer,
                            void *(int, void *, gsize, gsize, gsize, void *, decltype(&destroy)),
                            gst_buffer_new_wrapped_full)(0, surface, sizeof *surface, 0,
                                                         sizeof *surface, surface, destroy);
    return kFlowOk;
}

TypeQuery sizes_of(gulong type) {
    TypeQuery query{};
    HEADRACE_CALL(gobject, void(gulong, TypeQuery *), g_type_query)(type, &query);
    return query;
}

void begin_class(void *type_class, void *) {
    const gulong object = HEADRACE_CALL(gstreamer, gulong(), gst_object_get_type)();
    auto *calls = static_cast<char *>(type_class) + sizes_of(object).class_size;
    reinterpret_cast<decltype(&allocate_buffer) *>(calls)[kAllocate] = allocate_buffer;
}

gulong new_type() {
    const gulong parent = HEADRACE_CALL(gstreamer, gulong(), gst_buffer_pool_get_type)();
    const TypeQuery sizes = sizes_of(parent);
    return HEADRACE_CALL(
        gobject, gulong(gulong, const char *, guint, decltype(&begin_class), guint, void *, int),
        g_type_register_static_simple)(parent, "GstNvDsBufferPool", sizes.class_size, begin_class,
                                       sizes.instance_size + sizeof(void *), nullptr, 0);
}

}  // namespace

HEADRACE_PUBLIC gulong gst_nvds_buffer_pool_get_type(void) {
    static const gulong type = new_type();
    return type;
}

HEADRACE_PUBLIC void *gst_nvds_buffer_pool_new(void) {
    void *made = HEADRACE_CALL(gobject, void *(gulong, const char *, ...), g_object_new)(
        gst_nvds_buffer_pool_get_type(), nullptr);
    return HEADRACE_CALL(gstreamer, void *(void *), gst_object_ref_sink)(made);
}
