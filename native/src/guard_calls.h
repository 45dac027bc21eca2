// Calls of a detector parser that a worker answers without Python.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "custom_library_detector.h"
#include "guard_channel.h"
#include "guard_crash.h"

// Where parser and output region are, and what each call needs, as Python last saw to it. Python does
// the first call with tensors in certain places; the next ones with the same are done here. What is
// out of the ordinary (an exception, boxes that are not sound, a result without room) is left to
// Python, too: the parser keeps what it gave, see `DetectorParser::keep`.
class GuardCalls {
public:
    GuardCalls(DetectorParser &parser, const NvDsInferNetworkInfo &network, std::string function,
               size_t most_boxes);

    // Calls whose tensors are where those of the last one were may be done here.
    void learn(const GuardChannel &channel, std::vector<GuardRegion> regions);

    // Answers calls until a request is for Python; false if there is nobody to wait for.
    // `words`: 32-bit words of a box, 0 while they are not known: then only calls without boxes end
    // here. `out`: the output region, mapped with `size` bytes.
    bool serve(GuardChannel &channel, size_t words, bool with_angles, char *out, size_t size);

private:
    struct Known {
        std::vector<NvDsInferLayerInfo> layers;
        std::vector<GuardRegion> regions;
    };

    // Puts the places of a request into `places_`; false if the page has no room for so many layers.
    bool read_places(const uint64_t *words);
    const Known *known(const uint64_t *words);

    DetectorParser &parser_;
    NvDsInferNetworkInfo network_;
    std::string function_;
    size_t most_boxes_;
    std::map<std::vector<uint64_t>, Known> known_;
    std::vector<uint64_t> places_;  // of the call at hand
};
