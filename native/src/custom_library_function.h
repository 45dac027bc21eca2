// Functions of a custom library, called with real C++ objects.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <vector>

#include "custom_library_shared_object.h"
#include "stand_in.h"

// This module calls custom libraries, it is none.
#define NORIA_NO_ABI_MARKER
#include "nvdsinfer_custom_impl.h"

// Code of the user threw: `what()` is its text.
struct CustomCodeError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Code of the user left something that cannot be what its signature promises.
struct CustomResultError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Any function of a library that is given layers.
class CustomFunction {
public:
    // Throws std::runtime_error if the library has no such function.
    CustomFunction(std::shared_ptr<SharedObject> library, const std::string &name);

    // Names and binding indices of the layers of the following calls.
    void set_layers(const std::vector<std::string> &names, const std::vector<int> &bindings,
                    bool inputs);
    NvDsInferLayerInfo &layer(size_t index) { return layers_[index]; }
    size_t layer_count() const { return layers_.size(); }

    // Throws CustomCodeError in place of the exception that is being handled.
    [[noreturn]] static void translate_current_exception();

protected:
    // Calls the function, one call into its library at a time. Throws CustomCodeError for anything
    // that it throws, MissingFunctionError if it calls a function of a library that is not installed.
    template <typename... Parameters, typename... Arguments>
    bool invoke(bool (*)(Parameters...), Arguments &&...arguments) {
        std::lock_guard<std::mutex> hold(library_->call_lock());
        StandInScope scope;
        if (setjmp(scope.jump)) throw MissingFunctionError(scope.refused);
        try {
            return reinterpret_cast<bool (*)(Parameters...)>(function_)(arguments...);
        } catch (...) {
            translate_current_exception();
        }
    }

    std::vector<NvDsInferLayerInfo> layers_;

private:
    std::shared_ptr<SharedObject> library_;
    void *function_;
    std::unordered_set<std::string> names_;  // libraries may keep a layer's name pointer
};

// NvDsInferInitializeInputLayers.
class InputInitializer : public CustomFunction {
public:
    using CustomFunction::CustomFunction;
    bool call(const NvDsInferNetworkInfo &network, unsigned int max_batch);
};
