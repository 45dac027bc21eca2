// Memory of buffers that stands for the images of a batch: whoever maps it
// reads an NvBufSurface.
//
// The structure is made when C code first maps the memory: elements in Python
// have the images at hand, and need no bytes of the buffer. Types of GStreamer
// are registered by their sizes at run time, as its headers are not there where
// this is built.
#include <sys/types.h>

#include <atomic>
#include <cstring>

#include "library.h"
#include "nvbufsurface.h"

using namespace headrace::deepstream;

namespace {

// Of the elements, in Python: the structure of the images that a number stands
// for, or null.
using Ask = void *(guint64);
std::atomic<Ask *> ask{nullptr};

constexpr guint kNoShare = 16;  // GST_MEMORY_FLAG_NO_SHARE: a part of it would be no structure

struct Memory {  // GstMemory, and the number
    char object[64];
    void *allocator, *parent;
    gsize maxsize, align, offset, size;
    guint64 number;
};

struct TypeQuery {  // GTypeQuery
    gulong type;
    const char *name;
    guint class_size, instance_size;
};

struct Calls {  // the fields of GstAllocator behind GstObject
    const char *mem_type;
    void *(*map)(Memory *, gsize, int);
    void (*unmap)(Memory *);
    Memory *(*copy)(Memory *, ssize_t, ssize_t);
    Memory *(*share)(Memory *, ssize_t, ssize_t);
    gboolean (*is_span)(Memory *, Memory *, gsize *);
};

TypeQuery sizes_of(gulong type) {
    TypeQuery query{};
    HEADRACE_CALL(gobject, void(gulong, TypeQuery *), g_type_query)(type, &query);
    return query;
}

gulong object_type() { return HEADRACE_CALL(gstreamer, gulong(), gst_object_get_type)(); }

Memory *new_memory(guint64 number);

void *map(Memory *memory, gsize, int) {
    Ask *const answer = ask;
    return answer == nullptr ? nullptr : answer(memory->number);
}
void unmap(Memory *) {}
Memory *copy(Memory *memory, ssize_t, ssize_t) { return new_memory(memory->number); }
gboolean is_span(Memory *, Memory *, gsize *) { return FALSE; }
void free_memory(void *, Memory *memory) { release(memory); }

void begin_class(void *type_class, void *) {
    auto *calls = static_cast<char *>(type_class) + sizes_of(object_type()).class_size;
    reinterpret_cast<void (**)(void *, Memory *)>(calls)[1] = free_memory;  // behind `alloc`
}

void begin_allocator(void *instance, void *) {
    auto *calls = reinterpret_cast<Calls *>(static_cast<char *>(instance) +
                                            sizes_of(object_type()).instance_size);
    calls->mem_type = "NVMM";
    calls->map = map;
    calls->unmap = unmap;
    calls->copy = copy;
    calls->is_span = is_span;
}

void *new_allocator() {
    const gulong parent = HEADRACE_CALL(gstreamer, gulong(), gst_allocator_get_type)();
    const TypeQuery sizes = sizes_of(parent);
    const gulong type = HEADRACE_CALL(gobject,
                                      gulong(gulong, const char *, guint, decltype(&begin_class),
                                             guint, decltype(&begin_allocator), int),
                                      g_type_register_static_simple)(
        parent, "HeadraceImages", sizes.class_size, begin_class, sizes.instance_size,
        begin_allocator, 0);
    void *made =
        HEADRACE_CALL(gobject, void *(gulong, const char *, ...), g_object_new)(type, nullptr);
    return HEADRACE_CALL(gstreamer, void *(void *), gst_object_ref_sink)(made);
}

void *own_allocator() {
    static void *const allocator = new_allocator();
    return allocator;
}

Memory *new_memory(guint64 number) {
    void *const allocator = own_allocator();
    auto *memory = static_cast<Memory *>(allocate(sizeof(Memory)));
    memory->number = number;
    constexpr gsize size = sizeof(NvBufSurface);
    HEADRACE_CALL(gstreamer, void(Memory *, guint, void *, void *, gsize, gsize, gsize, gsize),
                  gst_memory_init)(memory, kNoShare, allocator, nullptr, size, 0, 0, size);
    return memory;
}

}  // namespace

// The elements tell how they answer; called once.
HEADRACE_PUBLIC void headrace_serve_images(Ask *answer) { ask = answer; }

// Gives a buffer without memory the memory of the images that a number stands
// for.
HEADRACE_PUBLIC void headrace_add_images(GstBuffer *buffer, guint64 number) {
    HEADRACE_CALL(gstreamer, void(GstBuffer *, Memory *), gst_buffer_append_memory)(
        buffer, new_memory(number));
}

// Whether the memory of a buffer stands for images of the elements.
HEADRACE_PUBLIC int headrace_has_images(GstBuffer *buffer) {
    if (HEADRACE_CALL(gstreamer, guint(GstBuffer *), gst_buffer_n_memory)(buffer) != 1) return 0;
    auto *memory =
        HEADRACE_CALL(gstreamer, Memory * (GstBuffer *, guint), gst_buffer_peek_memory)(buffer, 0);
    return memory->allocator == own_allocator() ? 1 : 0;
}

// Copies the structure that a buffer of C code's own holds; 0 where its size is
// another.
HEADRACE_PUBLIC int headrace_read_structure(GstBuffer *buffer, void *into) {
    constexpr gsize size = sizeof(NvBufSurface);
    if (HEADRACE_CALL(gstreamer, gsize(GstBuffer *), gst_buffer_get_size)(buffer) != size) return 0;
    return HEADRACE_CALL(gstreamer, gsize(GstBuffer *, gsize, void *, gsize), gst_buffer_extract)(
               buffer, 0, into, size) == size;
}

// Lets C code attach metadata to what a pad pushes: a decoder still refers to
// the images of its buffers, and GStreamer refuses metadata on a buffer that
// two hold.
HEADRACE_PUBLIC void headrace_keep_writable(void *pad) {
    struct Info {  // the beginning of GstPadProbeInfo
        int type;
        gulong id;
        void *data;
    };
    constexpr int buffers = 1 << 4;
    constexpr int go_on = 1;
    const auto probe = [](void *, Info *info, void *) -> int {
        info->data =
            HEADRACE_CALL(gstreamer, void *(void *), gst_mini_object_make_writable)(info->data);
        return go_on;
    };
    HEADRACE_CALL(gstreamer, gulong(void *, int, int (*)(void *, Info *, void *), void *, void *),
                  gst_pad_add_probe)(pad, buffers, probe, nullptr, nullptr);
}
