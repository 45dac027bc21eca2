// A parser that does what the numbers in its first layer say: kind, count, value, position and
// milliseconds.
#include <unistd.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "nvdsinfer_custom_impl.h"

extern "C" bool ParseCommand(const std::vector<NvDsInferLayerInfo> &layers,
                             const NvDsInferNetworkInfo &network,
                             const NvDsInferParseDetectionParams &params,
                             std::vector<NvDsInferObjectDetectionInfo> &objects) {
    float *data = static_cast<float *>(layers[0].buffer);
    const int kind = static_cast<int>(data[0]), count = static_cast<int>(data[1]);
    const float value = data[2];
    const int at = static_cast<int>(data[3]);
    for (int i = 0; i < count; ++i) {
        NvDsInferObjectDetectionInfo box = {};
        box.classId = i % params.numClassesConfigured;
        box.left = value + i;
        box.top = network.height;
        box.width = layers.size();
        box.height = layers.back().inferDims.numElements;
        box.detectionConfidence = params.perClassPreclusterThreshold[box.classId];
        objects.push_back(box);
    }
    if (kind == 6 || kind == 7) usleep(static_cast<useconds_t>(1000 * data[4]));
    if (kind == 1 || kind == 7) return false;
    if (kind == 2) throw std::runtime_error("told to");
    if (kind == 3 && count) objects[at % count].top = std::numeric_limits<float>::quiet_NaN();
    if (kind == 4 && count) objects[at % count].classId = 4000000000u;
    if (kind == 5) data[4] = value;  // in place
    return true;
}

CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(ParseCommand);
