// GLib and GStreamer of the process, found when they are first called: nothing is linked.
//
// The library is built where neither is installed, and loads where only GLib is.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "gstnvdsmeta.h"

#define HEADRACE_PUBLIC extern "C" __attribute__((visibility("default")))

namespace headrace::deepstream {

enum class Library { glib, gobject, gstreamer };

// Returns a function of a library that the process has, or ends the process with its name.
inline void *symbol(Library library, const char *name) {
    static const char *const files[] = {"libglib-2.0.so.0", "libgobject-2.0.so.0",
                                        "libgstreamer-1.0.so.0"};
    void *handle = dlopen(files[static_cast<int>(library)], RTLD_NOW);
    void *found = handle == nullptr ? nullptr : dlsym(handle, name);
    if (found == nullptr) {
        std::fprintf(stderr, "headrace: %s is not in %s\n", name, files[static_cast<int>(library)]);
        std::abort();
    }
    return found;
}

template <typename F>
F *function(Library library, const char *name) {
    return reinterpret_cast<F *>(symbol(library, name));
}

// One static for each place of use: the look-up is done once there.
#define HEADRACE_CALL(library, type, name)                                                       \
    ([]() {                                                                                      \
        static const std::add_pointer_t<type> call =                                             \
            headrace::deepstream::function<type>(headrace::deepstream::Library::library, #name); \
        return call;                                                                             \
    }())

inline void *allocate(size_t size) { return HEADRACE_CALL(glib, void *(gsize), g_malloc0)(size); }
inline void release(void *memory) { HEADRACE_CALL(glib, void(void *), g_free)(memory); }
inline char *duplicate(const char *text) {
    return HEADRACE_CALL(glib, char *(const char *), g_strdup)(text);
}
inline GList *prepend(GList *list, void *data) {
    return HEADRACE_CALL(glib, GList * (GList *, void *), g_list_prepend)(list, data);
}
inline GList *append(GList *list, void *data) {
    return HEADRACE_CALL(glib, GList * (GList *, void *), g_list_append)(list, data);
}
inline GList *without(GList *list, void *data) {
    return HEADRACE_CALL(glib, GList * (GList *, const void *), g_list_remove)(list, data);
}
inline void free_nodes(GList *list) { HEADRACE_CALL(glib, void(GList *), g_list_free)(list); }

}  // namespace headrace::deepstream
