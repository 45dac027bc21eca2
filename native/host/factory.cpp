// Factories of layers that entry points of a library give: NvDsInferPluginFactory...Get and
// Destroy.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <stdexcept>

#include "NvCaffeParser.h"
#include "NvInfer.h"
#include "NvUffParser.h"
#include "host/foreign.h"
#include "host/world.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::hosting {
namespace {

enum { kWithV2 = 2 };

// What a Get function gave, until the last user of it is gone: then Destroy is called, once.
struct Given {
    std::shared_ptr<custom::SharedObject> library;
    void *destroy;
    void *pointer = nullptr;
    bool by_value;

    Given(std::shared_ptr<custom::SharedObject> from, void *function, bool value)
        : library(std::move(from)), destroy(function), by_value(value) {}
    Given(const Given &) = delete;
    Given &operator=(const Given &) = delete;
    ~Given() {
        if (!pointer || !destroy || !python_is_there()) return;
        nb::gil_scoped_acquire locked;
        try {
            run_foreign([&] {
                if (by_value)
                    reinterpret_cast<void (*)(void *)>(destroy)(pointer);
                else  // a union of pointers, by reference
                    reinterpret_cast<void (*)(void *&)>(destroy)(pointer);
            });
        } catch (...) {
            tell_failure("destroying a plugin factory");
        }
    }
};

template <typename Factory>
headrace_factory_calls ask(void *pointer, headrace_factory_calls (Factory::*calls)() const) {
    return (static_cast<Factory *>(pointer)->*calls)();
}

headrace_factory_calls calls_of(const std::string &kind, int32_t type, void *pointer) {
    if (kind == "Runtime") return ask(pointer, &nvinfer1::IPluginFactory::headraceRuntimeCalls);
    if (kind == "Uff") return ask(pointer, &nvuffparser::IPluginFactory::headraceUffCalls);
    if (type == kWithV2) return ask(pointer, &nvcaffeparser1::IPluginFactoryV2::headraceCaffeCalls);
    return ask(pointer, &nvcaffeparser1::IPluginFactory::headraceCaffeCalls);
}

nb::tuple get_plugin_factory(const std::shared_ptr<custom::SharedObject> &library,
                             const std::string &kind) {
    const std::string base = "NvDsInferPluginFactory" + kind;
    void *get = library->symbol(base + "Get");
    if (!get) throw std::runtime_error("no exported symbol " + base + "Get");
    const bool runtime = kind == "Runtime";
    auto given = std::make_shared<Given>(library, library->symbol(base + "Destroy"), runtime);
    int32_t type = 0;
    const bool said = run_foreign([&] {
        if (runtime) return reinterpret_cast<bool (*)(void *&)>(get)(given->pointer);
        return reinterpret_cast<bool (*)(void *&, int32_t &)>(get)(given->pointer, type);
    });
    const bool known = runtime || (type >= 0 && type <= (kind == "Caffe" ? kWithV2 : kWithV2 - 1));
    if (!said || !given->pointer || !known) return nb::make_tuple(said, type, nb::none());
    void *pointer = given->pointer;
    const auto calls = run_foreign([&] { return calls_of(kind, type, pointer); });
    return nb::make_tuple(said, type, hand_over(new ForeignFactory(pointer, calls, given)));
}

}  // namespace

void bind_factory(nb::module_ &m) {
    m.def("get_plugin_factory", &get_plugin_factory, "library"_a, "kind"_a,
          "(what the function said, the type it named, the ForeignFactory or None). `kind`: Caffe, "
          "Uff or Runtime.");
}

}  // namespace headrace::hosting
