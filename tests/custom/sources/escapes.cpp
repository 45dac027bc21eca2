// Ways out of a worker, each a few lines of `escapes/`. `ParseEscape` gets the number of one and
// gives a box: its left is 1 if it worked, its top the error that stopped it. What each looks for
// is in the environment: see tests/custom/guard/escapes.py, which also reads names and layers
// there.
#include "escapes/application.h"
#include "escapes/outside.h"
#include "escapes/within.h"
#include "nvdsinfer_custom_impl.h"

extern "C" bool ParseEscape(const std::vector<NvDsInferLayerInfo> &layers,
                            const NvDsInferNetworkInfo &, const NvDsInferParseDetectionParams &,
                            std::vector<NvDsInferObjectDetectionInfo> &objects) {
    const auto which = static_cast<size_t>(static_cast<const float *>(layers[0].buffer)[0]);
    NvDsInferObjectDetectionInfo box = {};
    errno = 0;
    const long result = Way::all().at(which).run();
    box.top = static_cast<float>(errno);
    box.left = result < 0 ? 0.0f : 1.0f;
    box.width = box.height = 1;
    box.detectionConfidence = 0.5f;
    objects.push_back(box);
    return true;
}
CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(ParseEscape);

// Calls that a worker does not outlive, by number.
extern "C" bool ParseHarm(const std::vector<NvDsInferLayerInfo> &layers,
                          const NvDsInferNetworkInfo &, const NvDsInferParseDetectionParams &,
                          std::vector<NvDsInferObjectDetectionInfo> &) {
    switch (static_cast<int>(static_cast<const float *>(layers[0].buffer)[0])) {
    case 0:
        for (;;) pause();
    case 1: std::abort();
    default:  // all that it shares with the application, and the numbers of its answer
        for (const char *name : {"page", "outputs"}) {
            struct stat about;
            const int file = descriptor(name);
            fstat(file, &about);
            const auto size = static_cast<size_t>(about.st_size);
            void *at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            if (at != MAP_FAILED) std::memset(at, 0x7f, size);
        }
        if (write(descriptor("socket"), "\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f", 8) < 0) return false;
        for (;;) pause();
    }
}
CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(ParseHarm);
