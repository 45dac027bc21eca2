// A YOLOX parser in C++. Compile it with
//   g++ -std=c++17 -O2 -shared -fPIC -I native/include nvdsparsebbox_yolox.cpp -o libyolox.so
// and set custom-lib-path=libyolox.so.
#include <algorithm>
#include <cmath>
#include <iostream>

#include "nvdsinfer_custom_impl.h"

static const unsigned int kStrides[] = {8, 16, 32};

extern "C" bool NvDsInferParseYoloX(const std::vector<NvDsInferLayerInfo> &outputLayersInfo,
                                    const NvDsInferNetworkInfo &networkInfo,
                                    const NvDsInferParseDetectionParams &detectionParams,
                                    std::vector<NvDsInferObjectDetectionInfo> &objectList);
CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(NvDsInferParseYoloX);

// Rows of x, y, width, height, objectness, class scores; one row for each cell of three grids.
// The centre is an offset in cells, the size a logarithm of cells; scores are already 0..1.
extern "C" bool NvDsInferParseYoloX(const std::vector<NvDsInferLayerInfo> &outputLayersInfo,
                                    const NvDsInferNetworkInfo &networkInfo,
                                    const NvDsInferParseDetectionParams &detectionParams,
                                    std::vector<NvDsInferObjectDetectionInfo> &objectList) {
    const unsigned int classes = detectionParams.numClassesConfigured;
    unsigned int cells = 0;
    for (unsigned int stride : kStrides)
        cells += (networkInfo.width / stride) * (networkInfo.height / stride);

    if (outputLayersInfo.size() != 1) {
        std::cerr << "YOLOX: expected one output, not " << outputLayersInfo.size() << std::endl;
        return false;
    }
    const NvDsInferLayerInfo &layer = outputLayersInfo[0];
    const NvDsInferDims &dims = layer.inferDims;
    if (layer.dataType != FLOAT || dims.numDims != 2 || dims.d[0] != cells ||
        dims.d[1] != 5 + classes) {
        std::cerr << "YOLOX: output " << layer.layerName << " does not hold " << cells
                  << " float cells of " << classes << " classes" << std::endl;
        return false;
    }

    const std::vector<float> &thresholds = detectionParams.perClassPreclusterThreshold;
    const float lowest = *std::min_element(thresholds.begin(), thresholds.end());
    const float *row = static_cast<const float *>(layer.buffer);
    for (unsigned int stride : kStrides) {
        for (unsigned int y = 0; y < networkInfo.height / stride; ++y) {
            for (unsigned int x = 0; x < networkInfo.width / stride; ++x, row += 5 + classes) {
                if (row[4] < lowest) continue;  // a class score can only lower it
                const float *best = std::max_element(row + 5, row + 5 + classes);
                const unsigned int classId = static_cast<unsigned int>(best - (row + 5));
                const float score = row[4] * *best;
                if (score < thresholds[classId]) continue;

                NvDsInferObjectDetectionInfo object = {};
                object.classId = classId;
                object.width = std::exp(row[2]) * stride;
                object.height = std::exp(row[3]) * stride;
                object.left = (row[0] + x) * stride - object.width / 2;
                object.top = (row[1] + y) * stride - object.height / 2;
                object.detectionConfidence = score;
                objectList.push_back(object);
            }
        }
    }
    return true;
}
