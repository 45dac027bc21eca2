// Functions of a custom library, called with real C++ objects.
#pragma once
#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/array_view.h"
#include "core/unlocked.h"
#include "custom/thrown.h"
#include "stand_ins/stand_in.h"

// This module calls custom libraries, it is none.
#define HEADRACE_NO_ABI_MARKER
#include "nvdsinfer_custom_impl.h"

namespace headrace::custom {

// A user's shared object, open for as long as something of it may be called.
class SharedObject {
public:
    // Opens with RTLD_NOW | RTLD_LOCAL: an unresolved symbol is an error here rather than the end
    // of the process inside a static initialiser. Throws std::runtime_error with dlerror's text.
    explicit SharedObject(const std::string &path);
    ~SharedObject();
    SharedObject(const SharedObject &) = delete;
    SharedObject &operator=(const SharedObject &) = delete;

    // What dlopen gave; good as long as this object lives.
    uintptr_t handle() const { return reinterpret_cast<uintptr_t>(handle_); }

    // Address of an exported symbol, or null.
    void *symbol(const std::string &name) const;

    // One lock per loaded image, however often the file was opened: existing parsers keep state in
    // function statics and were written for one call at a time.
    std::mutex &call_lock() const { return *call_lock_; }

private:
    void *handle_ = nullptr;
    std::shared_ptr<std::mutex> call_lock_;
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

    // Classes and thresholds of the following calls; libraries read them through three names of two
    // vectors.
    void set_params(unsigned int num_classes, const std::vector<float> &pre,
                    const std::vector<float> &post);

    // Points the layers into NumPy arrays: dense ones that can be written to, as parsers may decode
    // in place. They stay where they are as long as the views live. Throws std::invalid_argument or
    // nanobind::python_error if C++ has no name for one of them.
    core::ArrayViews bind(const nanobind::list &tensors);

    const std::vector<NvDsInferLayerInfo> &layers() const { return layers_; }
    const NvDsInferParseDetectionParams &params() const { return params_; }

    // Calls the function without the GIL, one call into its library at a time. Throws
    // CustomCodeError for anything that it throws, MissingFunctionError if it calls a function of a
    // library that is not installed.
    template <typename... Parameters, typename... Arguments>
    bool invoke(bool (*)(Parameters...), Arguments &&...arguments) {
        core::Unlocked unlocked;
        std::lock_guard<std::mutex> hold(library_->call_lock());
        stand_ins::Scope scope;
        if (setjmp(scope.jump)) throw stand_ins::MissingFunctionError(scope.refused);
        try {
            return reinterpret_cast<bool (*)(Parameters...)>(function_)(arguments...);
        } catch (...) {
            translate_current_exception();
        }
    }

private:
    std::shared_ptr<SharedObject> library_;
    void *function_;
    std::vector<NvDsInferLayerInfo> layers_;
    NvDsInferParseDetectionParams params_{};
    std::unordered_set<std::string> names_;  // libraries may keep a layer's name pointer
};

// Boxes as ((N, 4) boxes, scores, class ids, angles or None, whether all numbers are finite and no
// class id is negative: it exceeds the signed range then). From records, one each `stride` bytes
// (24, 28 or those of an instance): class, left, top, width, height, score, and with 28 bytes an
// angle.
nanobind::tuple take_boxes(const void *records, size_t count, size_t stride, bool with_angles);

// Copies of a worker's boxes: (what take_boxes gives, bytes that they take); None if `size` bytes
// have no room for as many.
nanobind::object copied_boxes(uintptr_t address, size_t size, size_t count, bool with_angles);

}  // namespace headrace::custom
