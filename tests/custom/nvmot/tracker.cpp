// A low-level tracker for tests: pairs boxes by overlap. Words of its file switch things on.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "nvdstracker.h"

namespace {

std::map<std::string, int> words_of(const char *path, size_t length) {
    std::map<std::string, int> words;
    std::ifstream file(std::string(path ? path : "", path ? length : 0));
    std::string word;
    for (int value; file >> word >> value;) words[word] = value;
    return words;
}

float overlap(const NvMOTRect &a, const NvMOTRect &b) {
    const float w = std::min(a.x + a.width, b.x + b.width) - std::max(a.x, b.x);
    const float h = std::min(a.y + a.height, b.y + b.height) - std::max(a.y, b.y);
    if (w <= 0 || h <= 0) return 0;
    return w * h / (a.width * a.height + b.width * b.height - w * h);
}

struct Target {
    uint64_t id;
    NvMOTRect box;
    unsigned age, lost;
    uint16_t kind;
};

}  // namespace

struct NvMOTContext {
    std::map<std::string, int> words;
    std::map<uint64_t, std::vector<Target>> streams;
    std::vector<float> vectors;
    uint64_t next = 0;
    unsigned calls = 0;
};

extern "C" {

NvMOTStatus NvMOT_Query(uint16_t length, char *config, NvMOTQuery *query) {
    auto words = words_of(config, length);
    if (words.count("mute")) return NvMOTStatus_OK;
    query->computeConfig = NVMOTCOMP_CPU;
    query->numTransforms = uint8_t(words.count("image"));
    query->colorFormats[0] =
        words.count("image") ? NvBufSurfaceColorFormat(words["image"]) : NVBUF_COLOR_FORMAT_RGBA;
    query->memType = NVBUF_MEM_DEFAULT;
    query->supportPastFrame = words.count("past");
#if HEADRACE_NVMOT < 600
    query->supportBatchProcessing = true;
#else
    query->batchMode = NvMOTBatchMode_Batch;
#endif
#if HEADRACE_NVMOT >= 630
    query->maxTargetsPerStream = 50;
    query->outputReidTensor = words.count("reid");
    query->reidFeatureSize = uint32_t(words["reid"]);
#endif
#if HEADRACE_NVMOT >= 640
    query->outputShadowTracks = words.count("shadow");
    query->outputVisibility = words.count("visible");
    query->outputFootLocation = words.count("foot");
    query->outputConvexHull = words.count("hull");
    query->maxConvexHullSize = uint32_t(words["hull"]);
#endif
    return NvMOTStatus_OK;
}

NvMOTStatus NvMOT_Init(NvMOTConfig *config, NvMOTContextHandle *context,
                       NvMOTConfigResponse *response) {
    *context = nullptr;
    if (words_of(config->customConfigFilePath, config->customConfigFilePathSize).count("empty"))
        return NvMOTStatus_OK;
    *context = new NvMOTContext;
    (*context)->words = words_of(config->customConfigFilePath, config->customConfigFilePathSize);
    if ((*context)->words.count("refuse")) {
        response->customConfigStatus = NvMOTConfigStatus_Invalid;
        return NvMOTStatus_Error;
    }
    const auto &t = *config->perTransformBatchConfig;
    const bool sane = config->numTransforms == 1 && t.maxWidth > 0 && t.maxPitch == 8 * t.maxWidth;
    return sane ? NvMOTStatus_OK : NvMOTStatus_Error;
}

void NvMOT_DeInit(NvMOTContextHandle context) { delete context; }

NvMOTStatus NvMOT_Process(NvMOTContextHandle context, NvMOTProcessParams *params,
                          NvMOTTrackedObjBatch *tracked) {
    if (context == nullptr) return NvMOTStatus_OK;
    auto &words = context->words;
    ++context->calls;
    for (uint32_t f = 0; f < params->numFrames; ++f) {
        NvMOTFrame &frame = params->frameList[f];
#if HEADRACE_NVMOT >= 910
        const std::string sensor(frame.sensorName);
        if (frame.timeMeta.localTimestamp == 0) return NvMOTStatus_Error;
#endif
        if (words.count("crash") && int(frame.frameNum) == words["crash"]) raise(SIGSEGV);
        if (words.count("hang") && int(frame.frameNum) == words["hang"]) sleep(60);
        if (words.count("fail") && int(frame.frameNum) == words["fail"]) return NvMOTStatus_Error;
        auto &targets = context->streams[frame.streamID];
        std::set<size_t> taken;
        NvMOTTrackedObjList &list = tracked->list[f];
        list.streamID = frame.streamID;
        list.frameNum = frame.frameNum;
        list.valid = true;
        list.numFilled = 0;
        const auto place = [&](NvMOTTrackedObj &o, const NvMOTRect &box) {
#if HEADRACE_NVMOT >= 640
            o.visibility = 0.75f;
            const float right = box.x + box.width, bottom = box.y + box.height;
            o.ptImgFeet[0] = box.x + box.width / 2;
            o.ptImgFeet[1] = bottom;
            o.ptWorldFeet[0] = 3;
            o.ptWorldFeet[1] = 4;
            const int corners[] = {int(box.x), int(box.y), int(right),
                                   int(box.y), int(right), int(bottom)};
            if (o.convexHull.list && o.convexHull.numPointsAllocated >= 3) {
                memcpy(o.convexHull.list, corners, sizeof(corners));
                o.convexHull.numPoints = words.count("odd") ? 1 << 20 : 3;
            }
#endif
#if HEADRACE_NVMOT >= 800
            o.bbox3DWorld.xCentre = 5;
            o.bbox3DWorld.zVel = 6;
            o.bbox3DImg[7][0] = right;
            o.bbox3DImg[7][1] = bottom;
            if (words.count("mask") && o.mask.data && o.mask.allocatedSize >= 8) {
                o.mask.width = words.count("odd") ? o.mask.allocatedSize + 1 : 4;
                o.mask.height = 2;
                for (int i = 0; i < 8; ++i) o.mask.data[i] = i == 3 ? 0.9f : 0.2f;
            }
#endif
            (void)o, (void)box;
        };
        const auto report = [&](Target &t, NvMOTObjToTrack *object, float confidence) {
            NvMOTTrackedObj &o = list.list[list.numFilled++];
            o.classId = t.kind;
            o.trackingId = t.id;
            o.bbox = t.box;
            o.confidence = confidence;
            o.age = t.age;
            o.associatedObjectIn = words.count("unset") ? nullptr : object;
            place(o, t.box);
#if HEADRACE_NVMOT >= 630
            if (const int size = words.count("reid") ? words["reid"] : 0) {
                std::vector<float> vector(size, float(t.id));
#if HEADRACE_NVMOT < 700
                o.reidInd = int(list.numFilled) - 1;
                memcpy(tracked->pReidTensorBatch->ptr_host + o.reidInd * size, vector.data(),
                       size * sizeof(float));
#else
                context->vectors.resize(64 * size);
                float *at = context->vectors.data() + (list.numFilled - 1) * size;
                memcpy(at, vector.data(), size * sizeof(float));
                o.reid.featureSize = uint32_t(size);
                o.reid.ptr_host = at;
#endif
            }
#endif
        };
        for (Target &t : targets) ++t.lost, ++t.age;
        for (uint32_t i = 0; i < frame.objectsIn.numFilled; ++i) {
            NvMOTObjToTrack &object = frame.objectsIn.list[i];
            size_t best = targets.size();
            for (size_t k = 0; k < targets.size(); ++k)
                if (!taken.count(k) && targets[k].kind == object.classId &&
                    overlap(targets[k].box, object.bbox) > 0.3f)
                    best = k;
            if (best == targets.size())
                targets.push_back({context->next++, object.bbox, 1, 0, object.classId});
            taken.insert(best);
            targets[best].box = object.bbox;
            targets[best].lost = 0;
            float confidence = object.confidence;
            if (words.count("image")) {  // the first byte in the middle of the box
                const auto &image = *frame.bufferList[0];
                const auto *bytes = static_cast<const uint8_t *>(image.dataPtr);
                const int x = int(object.bbox.x + object.bbox.width / 2);
                const int y = int(object.bbox.y + object.bbox.height / 2);
                const int pixel = int(image.planeParams.bytesPerPix[0]);
                confidence = bytes[y * image.pitch + x * pixel] / 255.0f;
            }
            report(targets[best], &object, confidence);
        }
        for (Target &t : targets)
            if (words.count("predict") && t.lost && t.lost < 3) report(t, nullptr, 0.5f);
    }
    tracked->numFilled = params->numFrames;
    return NvMOTStatus_OK;
}

static void fill(NvMOTContextHandle context, NvMOTProcessParams *params,
                 NvDsTargetMiscDataBatch *batch, bool lost) {
    NvMOTFrame &frame = params->frameList[0];
    batch->numFilled = 1;
    auto &stream = batch->list[0];
    stream.streamID = uint32_t(frame.streamID);
    stream.numFilled = 0;
    for (const Target &t : context->streams[frame.streamID]) {
        if ((t.lost > 0) != lost || (!lost && t.age != 2)) continue;
        auto &object = stream.list[stream.numFilled++];
        object.uniqueId = t.id;
        object.classId = t.kind;
        object.numObj = 1;
        auto &past = object.list[0];
        past.frameNum = frame.frameNum - 1;
        past.tBbox.left = t.box.x;
        past.tBbox.top = t.box.y;
        past.tBbox.width = t.box.width;
        past.tBbox.height = t.box.height;
        past.confidence = 0.25f;
        past.age = t.age - 1;
    }
}

#if HEADRACE_NVMOT < 630
NvMOTStatus NvMOT_ProcessPast(NvMOTContextHandle context, NvMOTProcessParams *params,
                              NvDsPastFrameObjBatch *past) {
    fill(context, params, past, false);
    return NvMOTStatus_OK;
}
#else
NvMOTStatus NvMOT_RetrieveMiscData(NvMOTContextHandle context, NvMOTProcessParams *params,
                                   NvMOTTrackerMiscData *data) {
    if (context->words.count("past")) fill(context, params, data->pPastFrameObjBatch, false);
#if HEADRACE_NVMOT >= 640
    if (context->words.count("shadow")) fill(context, params, data->pShadowTrackBatch, true);
#endif
    return NvMOTStatus_OK;
}
#endif

#if HEADRACE_NVMOT < 600
void NvMOT_RemoveStreams(NvMOTContextHandle context, NvMOTStreamId mask) {
    context->streams.erase(mask);
}
#else
NvMOTStatus NvMOT_RemoveStreams(NvMOTContextHandle context, NvMOTStreamId mask) {
    context->streams.erase(mask);
    return NvMOTStatus_OK;
}
#endif

#if HEADRACE_NVMOT >= 800
NvMOTStatus NvMOT_UpdateParams(NvMOTContextHandle context, const std::string &text) {
    const std::string copy = text;
    std::istringstream words(copy);
    std::string word;
    for (int value; words >> word >> value;) context->words[word] = value;
    return context->words.count("deny") ? NvMOTStatus_Error : NvMOTStatus_OK;
}
#endif

}  // extern "C"
