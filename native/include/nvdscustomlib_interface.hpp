// What nvdsvideotemplate asks of a library of the user's: `CreateCustomAlgoCtx` makes one object.
//
// The order of the virtual functions is the interface. Part of headrace, Apache-2.0.
#ifndef HEADRACE_NVDSCUSTOMLIB_INTERFACE_HPP
#define HEADRACE_NVDSCUSTOMLIB_INTERFACE_HPP

#include <string>

#include "cuda_runtime_api.h"
#include "headrace/gst.h"

#ifdef HEADRACE_HAS_GST
#include <gst/base/gstbasetransform.h>
#else
typedef struct _GstBaseTransform GstBaseTransform;
typedef struct _GstCaps GstCaps;
typedef int GstPadDirection;
#endif

enum class BufferResult {
    Buffer_Ok,     // the element pushes the buffer
    Buffer_Drop,   // the element drops it
    Buffer_Async,  // the library owns it, and pushes on the source pad of the element
    Buffer_Error
};

struct DSCustom_CreateParams {
    GstBaseTransform *m_element;
    GstCaps *m_inCaps;
    GstCaps *m_outCaps;
    guint m_gpuId;
    cudaStream_t m_cudaStream;
    gboolean m_dummyMetaInsert;
    gboolean m_fillDummyBatchMeta;
};

struct Property {
    Property(std::string arg_key, std::string arg_value)
        : key(std::move(arg_key)), value(std::move(arg_value)) {}

    std::string key;
    std::string value;
};

class IDSCustomLibrary {
public:
    virtual bool SetInitParams(DSCustom_CreateParams *params) = 0;
    virtual bool SetProperty(Property &property) = 0;
    virtual bool HandleEvent(GstEvent *event) = 0;
    virtual char *QueryProperties() = 0;
    virtual GstCaps *GetCompatibleCaps(GstPadDirection direction, GstCaps *in_caps,
                                       GstCaps *othercaps) = 0;
    virtual BufferResult ProcessBuffer(GstBuffer *inbuf) = 0;
    virtual ~IDSCustomLibrary() {}
};

#endif
