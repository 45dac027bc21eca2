// Libraries of nvdsvideotemplate, as its element in Python calls them.
#include <string>

#include "library.h"
#include "nvdscustomlib_interface.hpp"
#include "thrown.h"

using namespace headrace::deepstream;

namespace {

using Create = IDSCustomLibrary *(void *);

IDSCustomLibrary *library_of(void *algorithm) { return static_cast<IDSCustomLibrary *>(algorithm); }

}  // namespace

HEADRACE_PUBLIC const char *headrace_template_error() { return last_error().c_str(); }

// Loads a library and makes its object; null where it cannot, see `headrace_template_error`.
HEADRACE_PUBLIC void *headrace_template_open(const char *path, void *element) {
    void *handle = dlopen(path, RTLD_NOW);
    if (handle == nullptr) {
        last_error() = dlerror();
        return nullptr;
    }
    auto *create = reinterpret_cast<Create *>(dlsym(handle, "CreateCustomAlgoCtx"));
    IDSCustomLibrary *made = nullptr;
    if (create == nullptr)
        last_error() = "it exports no function CreateCustomAlgoCtx";
    else if (guarded([&] { return (made = create(element)) != nullptr; }) == 0)
        last_error() = "CreateCustomAlgoCtx returned null";
    if (made == nullptr) dlclose(handle);
    return made;
}

HEADRACE_PUBLIC int headrace_template_property(void *algorithm, const char *key,
                                               const char *value) {
    return guarded([&] {
        Property property(key, value);
        return library_of(algorithm)->SetProperty(property);
    });
}

HEADRACE_PUBLIC int headrace_template_begin(void *algorithm, void *element, void *in_caps,
                                            void *out_caps, int dummy, int fill) {
    return guarded([&] {
        DSCustom_CreateParams params{};
        params.m_element = static_cast<GstBaseTransform *>(element);
        params.m_inCaps = static_cast<GstCaps *>(in_caps);
        params.m_outCaps = static_cast<GstCaps *>(out_caps);
        params.m_dummyMetaInsert = dummy;
        params.m_fillDummyBatchMeta = fill;
        return library_of(algorithm)->SetInitParams(&params);
    });
}

// Takes `other` over, as the element's own function does; null where the library has no caps.
HEADRACE_PUBLIC void *headrace_template_caps(void *algorithm, int direction, void *caps,
                                             void *other) {
    GstCaps *result = nullptr;
    guarded([&] {
        result = library_of(algorithm)->GetCompatibleCaps(static_cast<GstPadDirection>(direction),
                                                          static_cast<GstCaps *>(caps),
                                                          static_cast<GstCaps *>(other));
        return result != nullptr;
    });
    return result;
}

HEADRACE_PUBLIC int headrace_template_event(void *algorithm, void *event) {
    return guarded(
        [&] { return library_of(algorithm)->HandleEvent(static_cast<GstEvent *>(event)); });
}

// Returns a `BufferResult`. A library that pushes itself owns the buffer from here on.
HEADRACE_PUBLIC int headrace_template_process(void *algorithm, void *buffer) {
    auto *reference = HEADRACE_CALL(gstreamer, void *(void *), gst_mini_object_ref);
    auto *unreference = HEADRACE_CALL(gstreamer, void(void *), gst_mini_object_unref);
    reference(buffer);
    const int result = guarded(
        [&] { return library_of(algorithm)->ProcessBuffer(static_cast<GstBuffer *>(buffer)); });
    if (result != static_cast<int>(BufferResult::Buffer_Async)) unreference(buffer);
    return result;
}

HEADRACE_PUBLIC void headrace_template_close(void *algorithm) {
    guarded([&] {
        delete library_of(algorithm);
        return true;
    });
}
