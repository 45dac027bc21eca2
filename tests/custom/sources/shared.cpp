// Parsers that read all of a tensor, write into it, or write behind it.
#include "nvdsinfer_custom_impl.h"

using Layers = std::vector<NvDsInferLayerInfo>;
using Objects = std::vector<NvDsInferObjectDetectionInfo>;

static void tell(const NvDsInferLayerInfo &layer, Objects &objects) {
    const float *data = static_cast<const float *>(layer.buffer);
    double sum = 0;
    for (unsigned int i = 0; i < layer.inferDims.numElements; ++i) sum += data[i];
    NvDsInferObjectDetectionInfo o = {};
    o.left = static_cast<float>(sum);
    o.width = o.height = 1;
    o.detectionConfidence = 0.5f;
    objects.push_back(o);
}

#define PARSER(NAME)                                                                           \
    extern "C" bool NAME(const Layers &layers, const NvDsInferNetworkInfo &,                   \
                         const NvDsInferParseDetectionParams &, Objects &objects)

PARSER(ParseSum) {
    for (const auto &layer : layers) tell(layer, objects);
    return true;
}

PARSER(ParseInPlace) {
    for (const auto &layer : layers) {
        float *data = static_cast<float *>(layer.buffer);
        for (unsigned int i = 0; i < layer.inferDims.numElements; ++i) data[i] += 1;
        tell(layer, objects);
    }
    return true;
}

// Reads or writes (second number) so many numbers (first) behind the end.
PARSER(ParseFar) {
    volatile float *data = static_cast<float *>(layers[0].buffer);
    const unsigned int at = layers[0].inferDims.numElements + static_cast<unsigned int>(data[0]);
    if (data[1] != 0) data[at] = 1;
    NvDsInferObjectDetectionInfo o = {};
    o.left = data[at];
    o.width = o.height = 1;
    o.detectionConfidence = 0.5f;
    objects.push_back(o);
    return true;
}

PARSER(ParseBehind) {
    float *data = static_cast<float *>(layers[0].buffer);
    for (unsigned int i = 0; i < 4096; ++i) data[layers[0].inferDims.numElements + i] = 1;
    tell(layers[0], objects);
    return true;
}
