// NvDsInferInitializeInputLayers: fills image sizes, fails, throws, or crashes (in an environment
// with CRASH_IN_INPUTS).
#include <cstdlib>
#include <stdexcept>

#include "nvdsinfer_custom_impl.h"

static int *volatile nowhere = nullptr;

bool NvDsInferInitializeInputLayers(const std::vector<NvDsInferLayerInfo> &inputs,
                                    const NvDsInferNetworkInfo &network, unsigned int max_batch) {
#if defined(REFUSE)
    return false;
#elif defined(THROW)
    throw std::runtime_error("no im_info");
#endif
    if (std::getenv("CRASH_IN_INPUTS")) *nowhere = 1;
    for (size_t k = 0; k < inputs.size(); ++k) {
        const NvDsInferLayerInfo &input = inputs[k];
        for (unsigned int i = 0; i < max_batch * input.inferDims.numElements; ++i) {
            if (input.dataType == FLOAT) {
                float *to = static_cast<float *>(input.buffer) + i;
                if (*to != 0) return false;
                const unsigned int column = i % input.inferDims.numElements;
                *to = column == 0 ? network.height : column == 1 ? network.width : network.channels;
            } else {
                static_cast<int64_t *>(input.buffer)[i] =
                    1000 * input.bindingIndex + 100 * input.isInput + 10 * input.inferDims.numDims +
                    input.layerName[0] - 'a';
            }
        }
    }
    return true;
}
