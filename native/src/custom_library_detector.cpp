#include "custom_library_detector.h"

#include <cxxabi.h>

#include <cstdlib>
#include <limits>

namespace {

std::string name_of_current_exception() {
    const std::type_info *type = abi::__cxa_current_exception_type();
    if (!type) return "a foreign exception";
    int status = 0;
    std::unique_ptr<char, void (*)(void *)> text(
        abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), std::free);
    return text ? text.get() : type->name();
}

// Parsers index these by class ids that the model made up. Values beyond the end, in storage that
// belongs to the vector, keep such a read harmless and its object below the threshold.
// Source: custom-library spec 2.6.
void fill_with_guard(std::vector<float> &vector, const std::vector<float> &values) {
    constexpr size_t guard = 1024;
    vector.assign(values.size() + guard, std::numeric_limits<float>::max());
    std::copy(values.begin(), values.end(), vector.begin());
    vector.resize(values.size());
}

}  // namespace

char *ByteVector::release() {
    char *storage = begin;
    begin = end = capacity_end = nullptr;
    return storage;
}

DetectorParser::DetectorParser(std::shared_ptr<SharedObject> library, const std::string &name)
    : library_(std::move(library)),
      function_(reinterpret_cast<Function>(library_->symbol(name))) {
    if (!function_) throw std::runtime_error("no exported symbol " + name);
    params_.numClassesConfigured = 0;
}

void DetectorParser::set_params(unsigned int num_classes, const std::vector<float> &pre,
                                const std::vector<float> &post) {
    params_.numClassesConfigured = num_classes;
    fill_with_guard(params_.perClassPreclusterThreshold, pre);
    fill_with_guard(params_.perClassPostclusterThreshold, post);
}

void DetectorParser::set_layers(const std::vector<std::string> &names,
                                const std::vector<int> &bindings) {
    layers_.assign(names.size(), NvDsInferLayerInfo{});
    for (size_t i = 0; i < names.size(); ++i) {
        layers_[i].layerName = names_.insert(names[i]).first->c_str();
        layers_[i].bindingIndex = bindings[i];
    }
}

bool DetectorParser::call(const NvDsInferNetworkInfo &network, ByteVector &boxes) {
    std::lock_guard<std::mutex> hold(library_->call_lock());
    try {
        return function_(layers_, network, params_, boxes);
    } catch (const abi::__forced_unwind &) {
        throw;  // the thread is being cancelled; swallowing it ends the process
    } catch (const std::exception &error) {
        throw CustomCodeError(name_of_current_exception() + ": " + error.what());
    } catch (...) {
        throw CustomCodeError("an exception of type " + name_of_current_exception());
    }
}
