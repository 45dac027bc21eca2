// A whole library of a DeepStream folder, compiled against TensorRT's own headers: an engine
// creator, its own layer, and the parser of what comes out.
#include "creators.cpp"
#include "nvdsinfer.h"

#include <algorithm>
#include <vector>

struct Thresholds {  // NvDsInferParseDetectionParams
    unsigned int numClassesConfigured;
    std::vector<float> perClassPreclusterThreshold;
    std::vector<float> perClassPostclusterThreshold;
    std::vector<float> &perClassThreshold;
};

// A box for each cell of the map that is bright enough: 255 * 12 is white.
extern "C" bool NvDsInferParseCustomSums(const std::vector<NvDsInferLayerInfo> &layers,
                                         const NvDsInferNetworkInfo &network,
                                         const Thresholds &thresholds,
                                         std::vector<NvDsInferObjectDetectionInfo> &objects) {
    for (const NvDsInferLayerInfo &layer : layers) {
        if (std::strcmp(layer.layerName, "sums_and_one") != 0) continue;
        const NvDsInferDims &dims = layer.inferDims;
        const unsigned int rows = dims.d[dims.numDims - 2], columns = dims.d[dims.numDims - 1];
        const float *sums = static_cast<const float *>(layer.buffer);
        for (unsigned int i = 0; i < rows * columns; ++i) {
            NvDsInferObjectDetectionInfo box{};
            box.detectionConfidence = std::min(sums[i] / (255 * 12), 1.0f);
            if (box.detectionConfidence < thresholds.perClassPreclusterThreshold[0]) continue;
            box.width = static_cast<float>(network.width) / static_cast<float>(columns);
            box.height = static_cast<float>(network.height) / static_cast<float>(rows);
            box.left = box.width * static_cast<float>(i % columns);
            box.top = box.height * static_cast<float>(i / columns);
            objects.push_back(box);
        }
        return true;
    }
    return false;
}
