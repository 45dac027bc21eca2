// Objects of a library that the host calls: plugins, creators, loggers, calibrators, factories.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "custom/library.h"
#include "custom/watched.h"
#include "headrace/host_abi.h"

namespace headrace::hosting {

// Keeps the library loaded that some code is in.
class Image {
public:
    Image(const void *code, bool keep);
    ~Image();
    Image(const Image &) = delete;
    Image &operator=(const Image &) = delete;
    const std::string &path() const { return path_; }
    // Where it begins in memory: not even an image of the same path has that while it is loaded.
    uintptr_t base() const { return reinterpret_cast<uintptr_t>(base_); }
    bool holds(const void *code) const;

private:
    void *handle_ = nullptr;
    const void *base_ = nullptr;
    std::string path_;
};

// An address in the library of an object: of the code that calls it; where that is of this module,
// the object was compiled against TensorRT's own headers, and the table of its virtual functions
// counts.
const void *code_of(const void *object, const void *call);

// A text that stays: libraries keep pointers to names and namespaces that they are given.
const char *kept(const std::string &text);

// Runs code of a library without the GIL; what it throws becomes CustomCodeError, as does a call of
// a function that is not there and that its results need.
template <typename Body>
auto run_foreign(Body body) -> decltype(body()) {
    nanobind::gil_scoped_release unlocked;
    const custom::Watched watch;
    try {
        if constexpr (std::is_void_v<decltype(body())>) {
            body();
            watch.require_done();
        } else {
            auto result = body();
            watch.require_done();
            return result;
        }
    } catch (const custom::CustomCodeError &) {
        throw;
    } catch (...) {
        custom::translate_current_exception();
    }
}

// Gives a new object to Python, which deletes it.
template <typename T>
nanobind::object hand_over(T *made) {
    return nanobind::cast(made, nanobind::rv_policy::take_ownership);
}

// A C++ object with the calls into it. The library is the object's owner.
template <typename Calls>
struct Foreign {
    void *self;
    Calls calls;
    std::shared_ptr<Image> image;

    Foreign(const void *self, const Calls &calls, const void *code, bool keep = true)
        : self(const_cast<void *>(self)),
          calls(calls),
          image(std::make_shared<Image>(code, keep)) {}

    uintptr_t address() const { return reinterpret_cast<uintptr_t>(self); }
};

using ForeignCreator = Foreign<headrace_creator_calls>;
using ForeignLogger = Foreign<headrace_logger_calls>;
using ForeignCalibrator = Foreign<headrace_calibrator_calls>;
using ForeignCallback = Foreign<headrace_callback_calls>;

// A factory of layers; `keeper` is what gives it back to its library, where that is ours to do.
struct ForeignFactory : Foreign<headrace_factory_calls> {
    std::shared_ptr<void> keeper;
    ForeignFactory(const void *self, const headrace_factory_calls &calls,
                   std::shared_ptr<void> keeper)
        : Foreign(self, calls, code(calls)), keeper(std::move(keeper)) {}

private:
    static const void *code(const headrace_factory_calls &c) {
        if (c.deserialize) return reinterpret_cast<const void *>(c.deserialize);
        return reinterpret_cast<const void *>(c.is_plugin);
    }
};

// As the world presents them; and back, if `value` stands for a C++ object.
nanobind::object foreign_to_python(const headrace_value &value);
bool foreign_from_python(nanobind::handle value, headrace_value &out);

void bind_plugins(nanobind::module_ &m);
void bind_entry(nanobind::module_ &m);
void bind_factory(nanobind::module_ &m);
// What `keeper` holds outlives the plugin and its clones.
nanobind::object new_plugin_v2(const headrace_plugin &plugin, bool owned,
                               std::shared_ptr<void> keeper);
nanobind::object new_plugin_v3(const headrace_plugin &plugin, bool owned);

}  // namespace headrace::hosting
