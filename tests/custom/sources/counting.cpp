// Parsers that put the number of their call into their result, and fail in one call: the fourth.
#include <cstring>
#include <stdexcept>

#include "nvdsinfer_custom_impl.h"

namespace {

enum Outcome { Fine, Throws, False, Damaged };

bool end(Outcome outcome, int call) {
    if (call != 4) return true;
    if (outcome == Throws) throw std::runtime_error("the fourth call");
    return outcome != False;
}

// Moves the end of a vector to where no element ends; its storage has room for that.
template <typename Vector>
void damage(Vector &vector) {
    vector.reserve(8);
    char *ends[3];
    std::memcpy(ends, static_cast<void *>(&vector), sizeof ends);
    ends[1] += 5;
    std::memcpy(static_cast<void *>(&vector), ends, sizeof ends);
}

template <typename Object>
bool objects_of(Outcome outcome, int call, std::vector<Object> &objects) {
    Object object;
    std::memset(static_cast<void *>(&object), 0, sizeof object);
    object.left = static_cast<float>(call);
    object.top = 4;
    object.width = 6;
    object.height = 8;
    object.detectionConfidence = 0.9f;
    objects.push_back(object);
    if (outcome == Damaged && call == 4) damage(objects);
    return end(outcome, call);
}

}  // namespace

#define LAYERS const std::vector<NvDsInferLayerInfo> &, const NvDsInferNetworkInfo &
#define PARSERS(OUTCOME)                                                                     \
    extern "C" bool Boxes##OUTCOME(LAYERS, const NvDsInferParseDetectionParams &,            \
                                   std::vector<NvDsInferObjectDetectionInfo> &objects) {     \
        static int calls = 0;                                                                \
        return objects_of(OUTCOME, ++calls, objects);                                        \
    }                                                                                        \
    extern "C" bool Instances##OUTCOME(LAYERS, const NvDsInferParseDetectionParams &,        \
                                       std::vector<NvDsInferInstanceMaskInfo> &objects) {    \
        static int calls = 0;                                                                \
        return objects_of(OUTCOME, ++calls, objects);                                        \
    }                                                                                        \
    extern "C" bool Attributes##OUTCOME(LAYERS, float, std::vector<NvDsInferAttribute> &all, \
                                        std::string &) {                                     \
        static int calls = 0;                                                                \
        all.push_back({0, static_cast<unsigned int>(++calls), 0.9f, strdup("one")});         \
        return end(OUTCOME, calls);                                                          \
    }                                                                                        \
    extern "C" bool Map##OUTCOME(LAYERS, float, unsigned int, int *map, float *&) {          \
        static int calls = 0;                                                                \
        map[0] = ++calls;                                                                    \
        return end(OUTCOME, calls);                                                          \
    }

PARSERS(Fine)
PARSERS(Throws)
PARSERS(False)
PARSERS(Damaged)

CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(BoxesFine);
