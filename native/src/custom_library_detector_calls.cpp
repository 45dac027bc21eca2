#include "custom_library_detector_calls.h"

#include <utility>

#include "custom_library_boxes.h"
#include "custom_library_tensors.h"
#include "unlocked.h"

namespace nb = nanobind;

namespace {

bool is_same(nb::handle a, nb::handle b) {
    return a.is(b) || (PyUnicode_CheckExact(a.ptr()) && PyUnicode_CheckExact(b.ptr()) &&
                       PyUnicode_Compare(a.ptr(), b.ptr()) == 0);
}

}  // namespace

std::unique_ptr<DetectorResult> detector_result(DetectorParser &parser,
                                                const NvDsInferNetworkInfo &network) {
    auto result = std::make_unique<DetectorResult>();
    Unlocked unlocked;
    try {
        result->usable = parser.call(network, result->boxes);
    } catch (const std::exception &) {
        result->error = std::current_exception();
    }
    return result;
}

void DetectorCalls::learn(nb::object network, nb::object params, const nb::dict &layers,
                          const NvDsInferNetworkInfo &size, size_t words, bool with_angles,
                          size_t most) {
    network_ = std::move(network);
    params_ = std::move(params);
    names_.clear();
    for (const auto &[name, layer] : layers) names_.push_back(nb::borrow(name));
    size_ = size;
    words_ = words;
    with_angles_ = with_angles;
    most_ = most;
    learned_ = lock_.entries();
}

bool DetectorCalls::is_learned(nb::handle layers, nb::handle network, nb::handle params) const {
    if (learned_ != lock_.entries() || !network.is(network_) || !params.is(params_) ||
        !PyDict_CheckExact(layers.ptr()))
        return false;
    size_t i = 0;
    for (const auto &[name, layer] : nb::borrow<nb::dict>(layers))
        if (i == names_.size() || !is_same(name, names_[i++])) return false;
    return i == names_.size();
}

// Invalid for what is out of the ordinary: nothing is kept if there was no call.
nb::object DetectorCalls::detections(const nb::dict &layers) {
    BoundTensors bound(parser_, layers);
    if (!bound.complete() || learned_ != lock_.entries()) return {};  // `data` may be code
    std::unique_ptr<DetectorResult> result = detector_result(parser_, size_);
    const size_t bytes = result->boxes.size(), count = bytes / (4 * words_);
    if (result->usable && !result->error && bytes == 4 * words_ * count && count <= most_) {
        const NumpyBoxes found(count, with_angles_ && words_ == 7);
        if (take_boxes(result->boxes.begin, count, 4 * words_, found.arrays()))
            return found.detections();
    }
    parser_.keep(std::move(result));
    return {};
}

nb::object DetectorCalls::call(nb::handle checked, nb::handle layers, nb::handle network,
                               nb::handle params) {
    if (!is_learned(layers, network, params)) return call_further(checked, layers, network, params);
    CallLock::Call call(lock_);
    if (!call) return call_further(checked, layers, network, params);
    struct Forget {
        DetectorParser &parser;
        ~Forget() { parser.take_kept(); }
    } forget{parser_};
    nb::object found = detections(nb::borrow<nb::dict>(layers));
    if (found.is_valid()) return found;
    if (parser_.has_kept()) return call_method("finish", checked, layers, network, params);
    call.end();
    return call_further(checked, layers, network, params);
}
