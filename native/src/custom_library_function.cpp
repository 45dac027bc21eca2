#include "custom_library_function.h"

#include <cxxabi.h>

#include <cstdlib>

namespace {

std::string name_of_current_exception() {
    const std::type_info *type = abi::__cxa_current_exception_type();
    if (!type) return "a foreign exception";
    int status = 0;
    std::unique_ptr<char, void (*)(void *)> text(
        abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), std::free);
    return text ? text.get() : type->name();
}

}  // namespace

CustomFunction::CustomFunction(std::shared_ptr<SharedObject> library, const std::string &name)
    : library_(std::move(library)), function_(library_->symbol(name)) {
    if (!function_) throw std::runtime_error("no exported symbol " + name);
}

void CustomFunction::set_layers(const std::vector<std::string> &names,
                                const std::vector<int> &bindings, bool inputs) {
    layers_.assign(names.size(), NvDsInferLayerInfo{});
    for (size_t i = 0; i < names.size(); ++i) {
        layers_[i].layerName = names_.insert(names[i]).first->c_str();
        layers_[i].bindingIndex = bindings[i];
        layers_[i].isInput = inputs;
    }
}

void CustomFunction::translate_current_exception() {
    try {
        throw;
    } catch (const abi::__forced_unwind &) {
        throw;  // the thread is being cancelled; swallowing it ends the process
    } catch (const MissingFunction &call) {
        throw MissingFunctionError(call.what());
    } catch (const std::exception &error) {
        throw CustomCodeError(name_of_current_exception() + ": " + error.what());
    } catch (...) {
        throw CustomCodeError("an exception of type " + name_of_current_exception());
    }
}

bool InputInitializer::call(const NvDsInferNetworkInfo &network, unsigned int max_batch) {
    using Function = decltype(&NvDsInferInitializeInputLayers);
    return invoke(Function{}, layers_, network, max_batch);
}
