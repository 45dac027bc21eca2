// What C code asks of the elements in Python: recordings, message brokers, images of objects.
#include "served.h"

#include <map>
#include <mutex>
#include <string>

#include "generation.h"
#include "gst-nvdssr.h"
#include "nvds_obj_encode.h"
#include "nvmsgbroker.h"

namespace headrace::deepstream {

namespace {

std::mutex lock;

std::map<std::string, void *> &functions() {
    static std::map<std::string, void *> all;
    return all;
}

void *known(const char *name) {
    const std::lock_guard<std::mutex> guard(lock);
    const auto entry = functions().find(name);
    return entry == functions().end() ? nullptr : entry->second;
}

}  // namespace

void *served(const char *name) {
    if (void *function = known(name)) return function;
    // A program may ask before it makes its first element: one brings all of them.
    void *element = HEADRACE_CALL(gstreamer, void *(const char *, const char *),
                                  gst_element_factory_make)("nvstreammux", nullptr);
    if (element != nullptr) HEADRACE_CALL(gstreamer, void(void *), gst_object_unref)(element);
    if (void *function = known(name)) return function;
    std::fprintf(stderr,
                 "headrace: %s: the elements are not there; start the program by headrace"
                 " exec, after gst_init\n",
                 name);
    return nullptr;
}

}  // namespace headrace::deepstream

using namespace headrace::deepstream;

HEADRACE_PUBLIC void headrace_serve(const char *name, void *function) {
    const std::lock_guard<std::mutex> guard(lock);
    functions()[name] = function;
}

// ---- recordings

HEADRACE_PUBLIC NvDsSRStatus NvDsSRCreate(NvDsSRContext **context, NvDsSRInitParams *params) {
    if (context == nullptr || params == nullptr) return NVDSSR_STATUS_INVALID_VAL;
    auto *call = served_as<int(void *, void *)>("NvDsSRCreate");
    return call == nullptr ? NVDSSR_STATUS_ERROR : static_cast<NvDsSRStatus>(call(context, params));
}
HEADRACE_PUBLIC NvDsSRStatus NvDsSRStart(NvDsSRContext *context, NvDsSRSessionId *session,
                                         guint start, guint duration, gpointer data) {
    if (context == nullptr) return NVDSSR_STATUS_INVALID_VAL;
    auto *call = served_as<int(void *, void *, guint, guint, void *)>("NvDsSRStart");
    return call == nullptr
               ? NVDSSR_STATUS_ERROR
               : static_cast<NvDsSRStatus>(call(context, session, start, duration, data));
}
HEADRACE_PUBLIC NvDsSRStatus NvDsSRStop(NvDsSRContext *context, NvDsSRSessionId session) {
    if (context == nullptr) return NVDSSR_STATUS_INVALID_VAL;
    auto *call = served_as<int(void *, guint)>("NvDsSRStop");
    return call == nullptr ? NVDSSR_STATUS_ERROR
                           : static_cast<NvDsSRStatus>(call(context, session));
}
HEADRACE_PUBLIC NvDsSRStatus NvDsSRDestroy(NvDsSRContext *context) {
    if (context == nullptr) return NVDSSR_STATUS_INVALID_VAL;
    auto *call = served_as<int(void *)>("NvDsSRDestroy");
    return call == nullptr ? NVDSSR_STATUS_ERROR : static_cast<NvDsSRStatus>(call(context));
}

// ---- message brokers

HEADRACE_PUBLIC NvMsgBrokerClientHandle nv_msgbroker_connect(char *connection, char *adaptor,
                                                             nv_msgbroker_connect_cb_t connected,
                                                             char *config) {
    auto *call =
        served_as<void *(const char *, const char *, void *, const char *)>("nv_msgbroker_connect");
    return call == nullptr ? nullptr
                           : call(connection, adaptor, reinterpret_cast<void *>(connected), config);
}
HEADRACE_PUBLIC NvMsgBrokerErrorType nv_msgbroker_send_async(NvMsgBrokerClientHandle client,
                                                             NvMsgBrokerClientMsg message,
                                                             nv_msgbroker_send_cb_t sent,
                                                             void *data) {
    auto *call = served_as<int(void *, const char *, const void *, size_t, void *, void *)>(
        "nv_msgbroker_send_async");
    return call == nullptr ? NV_MSGBROKER_API_ERR
                           : static_cast<NvMsgBrokerErrorType>(
                                 call(client, message.topic, message.payload, message.payload_len,
                                      reinterpret_cast<void *>(sent), data));
}
HEADRACE_PUBLIC NvMsgBrokerErrorType nv_msgbroker_subscribe(NvMsgBrokerClientHandle client,
                                                            char **topics, int count,
                                                            nv_msgbroker_subscribe_cb_t received,
                                                            void *data) {
    auto *call = served_as<int(void *, char **, int, void *, void *)>("nv_msgbroker_subscribe");
    return call == nullptr ? NV_MSGBROKER_API_ERR
                           : static_cast<NvMsgBrokerErrorType>(call(
                                 client, topics, count, reinterpret_cast<void *>(received), data));
}
HEADRACE_PUBLIC NvMsgBrokerErrorType nv_msgbroker_disconnect(NvMsgBrokerClientHandle client) {
    auto *call = served_as<int(void *)>("nv_msgbroker_disconnect");
    return call == nullptr ? NV_MSGBROKER_API_ERR : static_cast<NvMsgBrokerErrorType>(call(client));
}
HEADRACE_PUBLIC char *nv_msgbroker_version(void) {
    static char version[] = NV_MSGBROKER_VERSION;
    return version;
}

// ---- images of objects: each is encoded when it is asked for

HEADRACE_PUBLIC NvDsObjEncCtxHandle nvds_obj_enc_create_context(int) {
    static int context;
    return &context;
}
HEADRACE_PUBLIC void nvds_obj_enc_destroy_context(NvDsObjEncCtxHandle) {}
HEADRACE_PUBLIC void nvds_obj_enc_finish(NvDsObjEncCtxHandle) {}
HEADRACE_PUBLIC bool nvds_obj_enc_process(NvDsObjEncCtxHandle, NvDsObjEncUsrArgs *args,
                                          NvBufSurface *surface, NvDsObjectMeta *object,
                                          NvDsFrameMeta *frame) {
    if (args == nullptr || surface == nullptr || frame == nullptr || !HEADRACE_SAME_LAYOUT)
        return false;
    auto *call = served_as<bool(void *, void *, void *, void *)>("nvds_obj_enc_process");
    return call != nullptr && call(args, surface, object, frame);
}
