// Libraries of nvmsgconv (`msg2p-lib`): the user's functions make payloads of frames and objects.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "generation.h"
#include "library.h"
#include "nvmsgconv.h"
#include "rows.h"
#include "thrown.h"

using namespace headrace::deepstream;

namespace {

constexpr guint kLargest = 1 << 26;  // bytes of a payload
constexpr int kBadAnswer = -2;

struct Functions {
    decltype(nvds_msg2p_ctx_create) *create;
    decltype(nvds_msg2p_ctx_destroy) *destroy;
    decltype(nvds_msg2p_release) *release;
    decltype(nvds_msg2p_generate) *of_events;        // may be null
    decltype(nvds_msg2p_generate_new) *of_metadata;  // may be null
};

struct Converter {
    Functions functions;
    NvDsMsg2pCtx *context = nullptr;
    std::vector<uint8_t> bytes;
    std::vector<uint64_t> sizes;

    // Copies a payload and gives it back; false where its size cannot be.
    bool take(NvDsPayload *payload) {
        if (payload == nullptr) return true;  // no message
        const bool sound = payload->payloadSize <= kLargest &&
                           (payload->payload != nullptr || payload->payloadSize == 0);
        if (sound) {
            const auto *from = static_cast<const uint8_t *>(payload->payload);
            bytes.insert(bytes.end(), from, from + payload->payloadSize);
            sizes.push_back(payload->payloadSize);
        }
        functions.release(context, payload);
        return sound;
    }
};

NvDsEventMsgMeta event_of(const NvDsObjectMeta &object, const NvDsFrameMeta &frame, char *label,
                          char *time, char *sensor) {
    NvDsEventMsgMeta event{};
    event.type = NVDS_EVENT_ENTRY;
    event.objType = NVDS_OBJECT_TYPE_UNKNOWN;
    event.bbox.left = object.rect_params.left;
    event.bbox.top = object.rect_params.top;
    event.bbox.width = object.rect_params.width;
    event.bbox.height = object.rect_params.height;
    event.objClassId = object.class_id;
    event.sensorId = event.moduleId = event.placeId = static_cast<gint>(frame.source_id);
    event.frameId = frame.frame_num;
    event.confidence = object.confidence;
    event.trackingId = object.object_id;
    event.objectId = label;
    event.ts = time;
    event.sensorStr = sensor;
    return event;
}

}  // namespace

HEADRACE_PUBLIC const char *headrace_converter_error() { return last_error().c_str(); }

// Makes a context of the library's; null where it cannot, see `headrace_converter_error`.
HEADRACE_PUBLIC void *headrace_converter_open(const Functions *functions, const char *config,
                                              int type) {
    if (!same_layout(reinterpret_cast<const void *>(functions->create))) {
        last_error() = "it was compiled with headers of another release than 9.x";
        return nullptr;
    }
    auto made = std::make_unique<Converter>();
    made->functions = *functions;
    const int done = guarded([&] {
        made->context = functions->create(config, static_cast<NvDsPayloadType>(type));
        return made->context != nullptr;
    });
    if (done == 0) last_error() = "nvds_msg2p_ctx_create returned null";
    return done == 1 ? made.release() : nullptr;
}

// Makes the payloads of a frame: of all objects together (`whole`), or one for each. Returns their
// number, below 0 where that failed. The bytes and sizes live until the next call.
HEADRACE_PUBLIC int headrace_converter_call(void *converter, const FrameRow *frame,
                                            const ObjectRow *objects, size_t count, int of_metadata,
                                            int whole, char *time, char *sensor,
                                            const uint8_t **bytes, const uint64_t **sizes) {
    auto &all = *static_cast<Converter *>(converter);
    all.bytes.clear();
    all.sizes.clear();
    Metadata meta(frame, 1, objects, count);
    meta.frames[0].sensorInfo_meta.source_id = frame->source_id;
    meta.frames[0].sensorInfo_meta.sensor_id = sensor;
    const int done = guarded([&] {
        bool sound = true;
        if (of_metadata) {
            char kind[] = "video";
            NvDsMsg2pMetaInfo info{nullptr, meta.frames.data(), kind, nullptr};
            for (size_t i = 0; i < (whole ? 1 : count); ++i) {
                info.objMeta = whole ? nullptr : &meta.objects[i];
                sound = all.take(all.functions.of_metadata(all.context, &info)) && sound;
            }
            return sound;
        }
        std::vector<NvDsEventMsgMeta> events;
        std::vector<NvDsEvent> listed;
        events.reserve(count);
        for (size_t i = 0; i < count; ++i) {
            events.push_back(
                event_of(meta.objects[i], meta.frames[0], meta.objects[i].obj_label, time, sensor));
            listed.push_back({events.back().type, &events.back()});
        }
        if (whole && count > 0)
            return all.take(all.functions.of_events(all.context, listed.data(), guint(count)));
        for (auto &one : listed)
            sound = all.take(all.functions.of_events(all.context, &one, 1)) && sound;
        return sound;
    });
    if (done == kThrown) return kThrown;
    if (done == 0) {
        last_error() = "it returned a payload that cannot be";
        return kBadAnswer;
    }
    *bytes = all.bytes.data();
    *sizes = all.sizes.data();
    return static_cast<int>(all.sizes.size());
}

HEADRACE_PUBLIC void headrace_converter_close(void *converter) {
    const std::unique_ptr<Converter> all(static_cast<Converter *>(converter));
    guarded([&] {
        all->functions.destroy(all->context);
        return true;
    });
}
