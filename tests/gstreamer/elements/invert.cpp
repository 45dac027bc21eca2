// A library of nvdsvideotemplate: inverts images in place, or makes new ones of half the size.
#include <gst/base/gstbasetransform.h>
#include <gst/gst.h>

#include <stdexcept>
#include <string>

#include "gstnvdsbufferpool.h"
#include "gstnvdsmeta.h"
#include "nvbufsurface.h"
#include "nvbufsurftransform.h"
#include "nvdscustomlib_interface.hpp"

namespace {

NvBufSurface *surface_of(GstBuffer *buffer) {
    GstMapInfo map;
    gst_buffer_map(buffer, &map, GST_MAP_READ);
    gst_buffer_unmap(buffer, &map);
    return reinterpret_cast<NvBufSurface *>(map.data);
}

class Invert : public IDSCustomLibrary {
public:
    bool SetInitParams(DSCustom_CreateParams *params) override {
        element = params->m_element;
        if (mode == "refuse") return false;
        if (mode != "half") return true;
        pool = gst_nvds_buffer_pool_new();
        GstStructure *config = gst_buffer_pool_get_config(pool);
        gst_buffer_pool_config_set_params(config, params->m_outCaps, sizeof(NvBufSurface), 2, 0);
        gst_structure_set(config, "batch-size", G_TYPE_UINT, 1U, nullptr);
        return gst_buffer_pool_set_config(pool, config) && gst_buffer_pool_set_active(pool, TRUE);
    }
    bool SetProperty(Property &property) override {
        if (property.key != "mode") return false;
        mode = property.value;
        return true;
    }
    bool HandleEvent(GstEvent *event) override {
        if (GST_EVENT_TYPE(event) == GST_EVENT_EOS) g_print("end after %d\n", count);
        return true;
    }
    char *QueryProperties() override { return nullptr; }
    GstCaps *GetCompatibleCaps(GstPadDirection, GstCaps *in_caps, GstCaps *other) override {
        GstCaps *caps = gst_caps_make_writable(gst_caps_truncate(other));
        GstStructure *in = gst_caps_get_structure(in_caps, 0);
        int width = 0;
        int height = 0;
        gst_structure_get_int(in, "width", &width);
        gst_structure_get_int(in, "height", &height);
        const int part = mode == "half" ? 2 : 1;
        gst_caps_set_simple(caps, "width", G_TYPE_INT, width / part, "height", G_TYPE_INT,
                            height / part, "format", G_TYPE_STRING,
                            gst_structure_get_string(in, "format"), nullptr);
        return caps;
    }
    BufferResult ProcessBuffer(GstBuffer *buffer) override {
        count++;
        if (mode == "drop") return BufferResult::Buffer_Drop;
        if (mode == "throw") throw std::runtime_error("no more");
        if (mode == "error") return BufferResult::Buffer_Error;
        if (mode == "half") return half(buffer);
        NvBufSurface *surface = surface_of(buffer);
        NvBufSurfaceParams &image = surface->surfaceList[0];
        NvBufSurfaceMap(surface, 0, 0, NVBUF_MAP_READ_WRITE);
        auto *rows = static_cast<guint8 *>(image.mappedAddr.addr[0]);
        for (guint i = 0; i < image.planeParams.psize[0]; i++) rows[i] = 255 - rows[i];
        NvBufSurfaceUnMap(surface, 0, 0);
        return BufferResult::Buffer_Ok;
    }
    ~Invert() override {
        if (pool != nullptr) gst_object_unref(pool);
    }

private:
    // The library owns the buffer, and pushes one of its own with the same metadata.
    BufferResult half(GstBuffer *buffer) {
        GstBuffer *made = nullptr;
        gst_buffer_pool_acquire_buffer(pool, &made, nullptr);
        gst_buffer_copy_into(made, buffer,
                             static_cast<GstBufferCopyFlags>(GST_BUFFER_COPY_METADATA), 0, -1);
        NvBufSurface *small = surface_of(made);
        NvBufSurfTransformParams params{};
        if (NvBufSurfTransform(surface_of(buffer), small, &params) != 0)
            return BufferResult::Buffer_Error;
        small->numFilled = 1;
        gst_buffer_unref(buffer);
        gst_pad_push(GST_BASE_TRANSFORM_SRC_PAD(element), made);
        return BufferResult::Buffer_Async;
    }

    GstBaseTransform *element = nullptr;
    GstBufferPool *pool = nullptr;
    std::string mode;
    int count = 0;
};

}  // namespace

extern "C" IDSCustomLibrary *CreateCustomAlgoCtx(DSCustom_CreateParams *) { return new Invert; }
