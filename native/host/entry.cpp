// Entry points of a library that make engines: creators, model parsers, plugin factories.
#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <stdexcept>

#include "NvInfer.h"
#include "foreign/objects.h"
#include "host/foreign.h"
#include "host/init_params.h"
#include "host/world.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::hosting {
namespace {

void *require(const custom::SharedObject &library, const std::string &name) {
    void *function = library.symbol(name);
    if (!function) throw std::runtime_error("no exported symbol " + name);
    return function;
}

// What a function of a library is given for an object: the handle, of headrace's headers, else the
// form that libraries of its line know.
template <typename T>
T *given(int line, const char *of_class, nb::handle object) {
    headrace_object *const handle = headrace_object::of(object);
    return static_cast<T *>(line ? foreign::show(line, of_class, handle)
                                 : static_cast<void *>(handle));
}

// (what the function said, the engine it made or None)
nb::tuple call_creator(const custom::SharedObject &library, const std::string &name,
                       nb::handle builder, nb::handle config, InitParams &params, int32_t type,
                       int line) {
    using nvinfer1::DataType;
    using With = bool (*)(void *, void *, const NvDsInferContextInitParams *, DataType, void *&);
    using Without = bool (*)(void *, NvDsInferContextInitParams *, DataType, void *&);
    void *function = require(library, name);
    void *b = given<void>(line, "IBuilder", builder);
    void *c = config.is_none() ? nullptr : given<void>(line, "IBuilderConfig", config);
    void *engine = nullptr;
    const bool said = run_foreign([&] {
        const auto kind = static_cast<DataType>(type);
        if (c) return reinterpret_cast<With>(function)(b, c, &params.struct_(), kind, engine);
        return reinterpret_cast<Without>(function)(b, &params.struct_(), kind, engine);
    });
    if (!engine) return nb::make_tuple(said, nb::none());
    const auto *handle =
        line ? foreign::object_behind(engine) : static_cast<headrace_object *>(engine);
    return nb::make_tuple(said, headrace_object::behind(handle));
}

// What NvDsInferCreateModelParser made.
class ModelParser {
public:
    explicit ModelParser(IModelParser *parser, std::shared_ptr<custom::SharedObject> library)
        : parser_(parser), library_(std::move(library)) {}
    ~ModelParser() {
        try {
            close();
        } catch (const std::exception &error) {  // nobody calls: Python prints it
            PyErr_SetString(PyExc_RuntimeError, error.what());
            PyErr_WriteUnraisable(nullptr);
        }
    }
    ModelParser(const ModelParser &) = delete;
    ModelParser &operator=(const ModelParser &) = delete;

    IModelParser &parser() const {
        if (!parser_) throw std::invalid_argument("the model parser was deleted already");
        return *parser_;
    }
    void close() {
        IModelParser *gone = parser_;
        parser_ = nullptr;
        if (gone) run_foreign([&] { delete gone; });
    }

private:
    IModelParser *parser_;
    std::shared_ptr<custom::SharedObject> library_;
};

nb::object create_model_parser(const std::shared_ptr<custom::SharedObject> &library,
                               InitParams &params) {
    using Create = IModelParser *(*)(const NvDsInferContextInitParams *);
    void *function = require(*library, "NvDsInferCreateModelParser");
    IModelParser *made =
        run_foreign([&] { return reinterpret_cast<Create>(function)(&params.struct_()); });
    return made ? hand_over(new ModelParser(made, library)) : nb::none();
}

void bind_init_params(nb::module_ &m) {
    nb::class_<InitParams>(m, "InitParams", "NvDsInferContextInitParams of an engine creator.")
        .def(nb::init<>())
        .def("set_text", &InitParams::set_text)
        .def("set_number", &InitParams::set_number)
        .def("set_list", &InitParams::set_list)
        .def("set_offsets", &InitParams::set_offsets)
        .def("set_infer_dims", &InitParams::set_infer_dims)
        .def(
            "set_classes",
            [](InitParams &self, const std::vector<std::array<double, kClassNumbers>> &rows) {
                std::vector<double> numbers;
                for (const auto &row : rows) numbers.insert(numbers.end(), row.begin(), row.end());
                self.set_classes(class_params(numbers));
            },
            "Rows of pre- and post-cluster threshold, eps, least boxes, group threshold, least "
            "score, IoU threshold, top-k.");
}

}  // namespace

void bind_entry(nb::module_ &m) {
    bind_init_params(m);
    m.def(
        "host_set_world",
        [](nb::object object) {
            set_world(object.is_none() ? nb::object() : object);
            show_host_to_libraries();
        },
        "world"_a.none());
    m.def("host_count", &headrace_object::count, "How many objects libraries were ever given.");
    m.def("host_forget", &headrace_object::forget, "since"_a,
          "Let go of the objects that libraries were given after `host_count` was that.");
    m.def("call_engine_creator", &call_creator, "library"_a, "name"_a, "builder"_a,
          "config"_a.none(), "params"_a, "type"_a, "line"_a = 0,
          "(what the function said, the engine or None). Without a config: the old signature. "
          "`line`: of a library of TensorRT's own headers, else 0.");
    m.def(
        "library_number",
        [](const custom::SharedObject &library, const std::string &name) {
            const void *number = library.symbol(name);
            return number ? *static_cast<const unsigned int *>(number) : 0U;
        },
        "library"_a, "name"_a, "The number that a library exports, 0 if there is none.");
    nb::class_<ModelParser>(m, "ModelParser", "An IModelParser of a C++ library.")
        .def("has_full_dims",
             [](const ModelParser &p) {
                 return run_foreign([&] { return p.parser().hasFullDimsSupported(); });
             })
        .def(
            "parse",
            [](const ModelParser &p, nb::handle network, int line) {
                using Network = nvinfer1::INetworkDefinition;
                auto *n = given<Network>(line, "INetworkDefinition", network);
                return run_foreign([&] { return static_cast<int>(p.parser().parseModel(*n)); });
            },
            "network"_a, "line"_a = 0)
        .def("name",
             [](const ModelParser &p) {
                 const char *name = run_foreign([&] { return p.parser().getModelName(); });
                 return std::string(name ? name : "");
             })
        .def("close", &ModelParser::close);
    m.def("create_model_parser", &create_model_parser, "library"_a, "params"_a,
          "What NvDsInferCreateModelParser made, or None.");
}

}  // namespace headrace::hosting
