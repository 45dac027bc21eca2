// A library of message payloads: rows of text, and faults on demand of its config's name.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "nvdsmeta.h"
#include "nvmsgconv.h"

namespace {

struct Own {
    std::string config;
    int calls = 0;
};

NvDsPayload *made(NvDsMsg2pCtx *context, const std::string &text) {
    auto *own = static_cast<Own *>(context->privData);
    const int call = own->calls++;
    if (own->config == "throw") throw std::runtime_error("dusty lens");
    if (own->config == "crash" && call == 1) std::abort();
    if (own->config == "none") return nullptr;
    auto *payload = static_cast<NvDsPayload *>(std::calloc(1, sizeof(NvDsPayload)));
    payload->payload = strdup(text.c_str());
    payload->payloadSize = static_cast<guint>(text.size());
    if (own->config == "huge") payload->payloadSize = 1u << 31;
    return payload;
}

}  // namespace

extern "C" NvDsMsg2pCtx *nvds_msg2p_ctx_create(const gchar *file, NvDsPayloadType type) {
    if (file != nullptr && std::strcmp(file, "refuse") == 0) return nullptr;
    auto *context = new NvDsMsg2pCtx;
    context->payloadType = type;
    context->privData = new Own{file == nullptr ? "" : file};
    return context;
}

extern "C" void nvds_msg2p_ctx_destroy(NvDsMsg2pCtx *context) {
    delete static_cast<Own *>(context->privData);
    delete context;
}

extern "C" NvDsPayload *nvds_msg2p_generate(NvDsMsg2pCtx *context, NvDsEvent *events, guint size) {
    std::string text = "events";
    for (guint i = 0; i < size; ++i) {
        const NvDsEventMsgMeta &event = *events[i].metadata;
        char row[200];
        std::snprintf(row, sizeof row, " %d|%s|%.1f|%llu|%.2f|%s|%s", event.frameId, event.objectId,
                      double(event.bbox.left), static_cast<unsigned long long>(event.trackingId),
                      event.confidence, event.sensorStr, event.ts);
        text += row;
    }
    return made(context, text);
}

extern "C" NvDsPayload *nvds_msg2p_generate_new(NvDsMsg2pCtx *context, void *metadata) {
    const auto &info = *static_cast<NvDsMsg2pMetaInfo *>(metadata);
    const auto &frame = *static_cast<NvDsFrameMeta *>(info.frameMeta);
    const auto *object = static_cast<NvDsObjectMeta *>(info.objMeta);
    char text[200];
    if (object == nullptr)
        std::snprintf(text, sizeof text, "frame %d %u %s", frame.frame_num, frame.num_obj_meta,
                      info.mediaType);
    else
        std::snprintf(text, sizeof text, "object %d %s %d %.1f", frame.frame_num, object->obj_label,
                      object->class_id, double(object->rect_params.width));
    return made(context, text);
}

extern "C" void nvds_msg2p_release(NvDsMsg2pCtx *, NvDsPayload *payload) {
    std::free(payload->payload);
    std::free(payload);
}
