// Detector parsers that behave in one particular way each. Layer 0 holds rows of
// class, left, top, width, height, score.
#include <pthread.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "nvdsinfer_custom_impl.h"

#define PARSER(name)                                                                   \
    extern "C" bool name(const std::vector<NvDsInferLayerInfo> &layers,                \
                         const NvDsInferNetworkInfo &network,                          \
                         const NvDsInferParseDetectionParams &params,                  \
                         std::vector<NvDsInferObjectDetectionInfo> &objects);          \
    CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(name);                                           \
    extern "C" bool name(const std::vector<NvDsInferLayerInfo> &layers,                \
                         const NvDsInferNetworkInfo &network,                          \
                         const NvDsInferParseDetectionParams &params,                  \
                         std::vector<NvDsInferObjectDetectionInfo> &objects)
#define UNUSED (void)layers, (void)network, (void)params, (void)objects

typedef NvDsInferObjectDetectionInfo Box;

static Box box(float class_id, float left, float top, float width, float height, float score) {
    Box b;
    std::memset(&b, 0, sizeof b);
    b.classId = static_cast<unsigned int>(class_id);
    b.left = left;
    b.top = top;
    b.width = width;
    b.height = height;
    b.detectionConfidence = score;
#if HEADRACE_BOX_BYTES == 28
    b.rotation_angle = -0.499f;  // as stack garbage would be
#endif
    return b;
}

static Box row(const NvDsInferLayerInfo &layer, unsigned int i) {
    const float *r = static_cast<const float *>(layer.buffer) + 6 * i;
    return box(r[0], r[1], r[2], r[3], r[4], r[5]);
}

PARSER(ParseByGrowth) {
    UNUSED;
    for (unsigned int i = 0; i < layers[0].inferDims.d[0]; ++i) objects.push_back(row(layers[0], i));
    return true;
}

PARSER(ParseByAssignment) {
    UNUSED;
    std::vector<Box> found;
    found.reserve(1);
    for (unsigned int i = 0; i < layers[0].inferDims.d[0]; ++i) found.push_back(row(layers[0], i));
    objects.push_back(found.empty() ? box(9, 9, 9, 9, 9, 9) : found[0]);
    objects.clear();
    objects = found;
    return true;
}

PARSER(ParseByResize) {
    UNUSED;
    objects.resize(layers[0].inferDims.d[0]);
    for (unsigned int i = 0; i < objects.size(); ++i) objects[i] = row(layers[0], i);
    objects.shrink_to_fit();
    return true;
}

// Everything that reaches the function, as boxes.
PARSER(ParseEcho) {
    objects.push_back(box(params.numClassesConfigured, network.width, network.height,
                          network.channels, layers.size(), 0.5f));
    for (size_t i = 0; i < params.perClassPreclusterThreshold.size(); ++i)
        objects.push_back(box(i, params.perClassPreclusterThreshold[i],
                              params.perClassPostclusterThreshold[i], params.perClassThreshold[i],
                              &params.perClassThreshold == &params.perClassPreclusterThreshold,
                              0.5f));
    for (size_t i = 0; i < layers.size(); ++i) {
        const NvDsInferLayerInfo &l = layers[i];
        objects.push_back(box(l.dataType, l.inferDims.numDims, l.inferDims.numElements,
                              l.bindingIndex, l.isInput, std::strlen(l.layerName)));
        for (unsigned int d = 0; d < NVDSINFER_MAX_DIMS; d += 2)
            objects.push_back(box(0, l.inferDims.d[d], l.inferDims.d[d + 1], 0, 0, 0));
        double sum = 0;
        for (unsigned int e = 0; e < l.inferDims.numElements; ++e) {
            if (l.dataType == FLOAT) sum += static_cast<float *>(l.buffer)[e];
            if (l.dataType == INT8) sum += static_cast<int8_t *>(l.buffer)[e];
            if (l.dataType == UINT8) sum += static_cast<uint8_t *>(l.buffer)[e];
            if (l.dataType == INT32) sum += static_cast<int32_t *>(l.buffer)[e];
            if (l.dataType == INT64) sum += static_cast<int64_t *>(l.buffer)[e];
            if (l.dataType == HALF) sum += static_cast<uint16_t *>(l.buffer)[e];
        }
        objects.push_back(box(0, sum, 0, 0, 0, 0));
    }
    return true;
}

PARSER(ParseFalse) {
    UNUSED;
    objects.push_back(box(0, 1, 1, 1, 1, 1));
    return false;
}

PARSER(ParseThrow) {
    UNUSED;
    objects.push_back(box(0, 1, 1, 1, 1, 1));
    throw std::runtime_error("layer 'conf' is missing");
}

struct Odd {};
PARSER(ParseThrowOdd) {
    UNUSED;
    throw Odd();
}

PARSER(ParseNan) {
    UNUSED;
    objects.push_back(box(0, std::nanf(""), 0, 1, 1, 0.5f));
    objects.push_back(box(1, 1, 2, 3, 4, 0.5f));
    objects.push_back(box(2, 0, 0, std::numeric_limits<float>::infinity(), 1, 0.5f));
    objects.push_back(box(2, 0, 0, 1, 1, std::nanf("")));
    return true;
}

PARSER(ParseNegativeClass) {
    UNUSED;
    objects.push_back(box(0, 1, 2, 3, 4, 0.5f));
    objects.push_back(box(0, 1, 2, 3, 4, 0.5f));
    objects[1].classId = -1;
    return true;
}

PARSER(ParseTenMillion) {
    UNUSED;
    objects.resize(10000000);
    return true;
}

PARSER(ParseInPlace) {
    UNUSED;
    static_cast<float *>(layers[0].buffer)[5] += 1.0f;
    objects.push_back(row(layers[0], 0));
    return true;
}

PARSER(ParsePastThresholds) {
    UNUSED;
    const float threshold = params.perClassPreclusterThreshold.data()[500];  // as many parsers do
    if (0.99f > threshold) objects.push_back(box(500, 0, 0, 1, 1, 0.99f));
    return true;
}

PARSER(ParseCountCallers) {
    UNUSED;
    static std::atomic<int> inside(0);
    static int most = 0;
    const int now = ++inside;
    for (volatile int i = 0; i < 2000000; i = i + 1) {
    }
    if (now > most) most = now;
    --inside;
    objects.push_back(box(most, 0, 0, 1, 1, 0.5f));
    return true;
}

PARSER(ParseTiltedCuda) {
    UNUSED;
    return true;
}

extern "C" int parse_table[4];
int parse_table[4];
