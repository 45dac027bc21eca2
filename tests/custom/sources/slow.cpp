// A parser that takes its time: one box with the first number of its layer.
#include <chrono>
#include <thread>

#include "nvdsinfer_custom_impl.h"

extern "C" bool ParseSlowly(const std::vector<NvDsInferLayerInfo> &layers,
                            const NvDsInferNetworkInfo &, const NvDsInferParseDetectionParams &,
                            std::vector<NvDsInferObjectDetectionInfo> &objects) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    NvDsInferObjectDetectionInfo box = {};
    box.left = static_cast<const float *>(layers[0].buffer)[0];
    box.width = box.height = 1;
    objects.push_back(box);
    return true;
}
