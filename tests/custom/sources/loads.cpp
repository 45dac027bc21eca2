// A library that does harm while it is loaded.
#include <cstdlib>
#include <unistd.h>

#include "nvdsinfer_custom_impl.h"

static int *volatile nowhere = nullptr;

struct AtLoad {
    AtLoad() {
#if defined(CRASH)
        *nowhere = 1;
#elif defined(EXIT)
        std::exit(3);
#elif defined(HANG)
        for (;;) pause();
#endif
    }
};
static AtLoad at_load;

extern "C" bool Parse(const std::vector<NvDsInferLayerInfo> &, const NvDsInferNetworkInfo &,
                      const NvDsInferParseDetectionParams &,
                      std::vector<NvDsInferObjectDetectionInfo> &) {
    return true;
}
