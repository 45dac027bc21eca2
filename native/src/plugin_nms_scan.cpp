// Looking over many scores at once.
#include "plugin_nms.h"

#include "vectorise.h"  // last: see there

namespace noria::plugin_nms {

NORIA_WIDE bool any_at_least(const float *scores, float threshold) {
    int found = 0;
    for (std::size_t i = 0; i < kScan; ++i) found |= scores[i] >= threshold;
    return found != 0;
}

}  // namespace noria::plugin_nms
