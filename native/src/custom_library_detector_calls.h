// Detector parsers, called with arrays of Python.
#pragma once
#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "call_lock.h"
#include "custom_library_detector.h"
#include "quick_call.h"

// What a call left.
std::unique_ptr<DetectorResult> detector_result(DetectorParser &parser,
                                                const NvDsInferNetworkInfo &network);

// Calls of a detector parser that are like the last one: with the same network and thresholds, by
// identity, and names of layers. For these no line of Python runs: most of it is out of the caches
// each time that a parser has gone through a large tensor.
class DetectorCalls : public QuickCalls {
public:
    DetectorCalls(DetectorParser &parser, CallLock &lock) : parser_(parser), lock_(lock) {}

    // The lock is held, the parser has thresholds and names of layers. `words`: 32-bit words of a
    // box; `most`: boxes that are no error.
    void learn(nanobind::object network, nanobind::object params, const nanobind::dict &layers,
               const NvDsInferNetworkInfo &size, size_t words, bool with_angles, size_t most);

    // Detections; calls that are not as learned are `checked.further(layers, network, params)`.
    // Results that are an error or not sound are kept for `checked.finish(layers, network, params)`,
    // with the lock held and the call not over: signal handlers cannot call the parser until then.
    nanobind::object call(nanobind::handle checked, nanobind::handle layers,
                          nanobind::handle network, nanobind::handle params) override;

private:
    bool is_learned(nanobind::handle layers, nanobind::handle network,
                    nanobind::handle params) const;
    nanobind::object detections(const nanobind::dict &layers);

    DetectorParser &parser_;
    CallLock &lock_;
    nanobind::object network_, params_;
    std::vector<nanobind::object> names_;
    NvDsInferNetworkInfo size_{};
    size_t words_ = 0, most_ = 0;
    bool with_angles_ = false;
    uint64_t learned_ = 0;  // entries of the lock then
};
