// Objects of a library that the host calls, and the binding of the host.
#include "host/foreign.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

#include "NvInfer.h"
#include "core/readable.h"
#include "core/unlocked.h"
#include "host/fields.h"
#include "host/lent.h"
#include "host/world.h"
#include "module.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::hosting {
namespace {

template <typename Calls>
Calls copied(const void *calls) {
    Calls out{};
    uint32_t size = 0;  // of the library's own table: it may be older and shorter
    std::memcpy(&size, calls, sizeof(size));
    std::memcpy(&out, calls, std::min<size_t>(size, sizeof(out)));
    return out;
}

// An object as the world presents it; `call` is in the library's code.
template <typename Calls, typename Call>
nb::object wrapped(const headrace_value &v, const char *kind, Call Calls::*call) {
    const auto calls = copied<Calls>(v.extra);
    const void *code = code_of(v.data, reinterpret_cast<const void *>(calls.*call));
    return world().attr(kind)(hand_over(new Foreign<Calls>(v.data, calls, code)));
}

// More of a name is not read: the registry refuses 1024 bytes.
constexpr size_t kMaxName = 1 << 16;
constexpr int32_t kMaxFields = 1 << 16;

// Text that a library gave; null is empty.
nb::object text(const char *chars) {
    if (!chars) return nb::str("");
    const auto size = static_cast<Py_ssize_t>(::strnlen(chars, kMaxName));
    PyObject *made = PyUnicode_DecodeUTF8(chars, size, "surrogateescape");
    if (!made) throw nb::python_error();
    return nb::steal(made);
}

nb::object create(const ForeignCreator &creator, const std::string &name, nb::handle fields,
                  int32_t phase) {
    FieldStore store;
    fields_from_python(fields, store);
    Lent lent;
    if (lend_pages())
        for (headrace_field &f : store.fields)
            if (f.data)
                f.data = lent.copy(f.data, field_bytes(f.type, f.length),
                                   "lent: field " + std::string(f.name) + " of createPlugin");
    const headrace_fields given = store.view();
    headrace_plugin made{};
    const char *const layer = kept(name);
    run_foreign([&] { creator.calls.create(creator.self, layer, &given, phase, &made); });
    return plugin_to_python(made, true);
}

nb::object deserialize(const ForeignCreator &creator, const std::string &name,
                       const nb::bytes &data) {
    headrace_plugin made{};
    // a copy: sources read numbers of any size from it, and it may be empty
    std::string blob(data.c_str(), data.size());
    Lent lent;
    const void *from = blob.data();
    if (lend_pages()) from = lent.copy(from, blob.size(), "lent: data of deserializePlugin");
    const char *const layer = kept(name);
    run_foreign([&] { creator.calls.deserialize(creator.self, layer, from, blob.size(), &made); });
    return plugin_to_python(made, true);
}

nb::object ask_text(const ForeignCreator &creator, const char *(*call)(void *)) {
    return text(run_foreign([&] { return call(creator.self); }));
}

// Weights on their way to a library: (type, bytes, elements) each.
struct LentWeights {
    std::vector<headrace_value> values;
    std::vector<std::string> held;

    explicit LentWeights(const nb::list &weights) {
        held.reserve(weights.size());
        for (nb::handle item : weights) {
            const nb::tuple one = nb::cast<nb::tuple>(item);
            const nb::bytes raw = nb::cast<nb::bytes>(one[1]);
            held.emplace_back(raw.c_str(), raw.size());
            headrace_value v{};
            v.kind = HEADRACE_WEIGHTS;
            v.code = nb::cast<int32_t>(one[0]);
            v.data = held.back().data();
            v.number = nb::cast<int64_t>(one[2]);
            values.push_back(v);
        }
    }
    int32_t count() const { return static_cast<int32_t>(values.size()); }
};

nb::object create_by_factory(const ForeignFactory &factory, const std::string &layer,
                             const nb::list &weights, nb::handle fields, const std::string &space) {
    const LentWeights lent(weights);
    headrace_plugin made{};
    FieldStore store;
    fields_from_python(fields, store);
    const headrace_fields told = store.view();
    run_foreign([&] {
        if (factory.calls.create_with_fields)
            factory.calls.create_with_fields(factory.self, layer.c_str(), lent.values.data(),
                                             lent.count(), &told, &made);
        else if (factory.calls.create)
            factory.calls.create(factory.self, layer.c_str(), lent.values.data(), lent.count(),
                                 space.c_str(), &made);
        else
            throw std::invalid_argument("the factory makes layers of engines only");
    });
    // factories keep what they make, but not what is only around it
    return plugin_to_python(made, made.owned != 0, factory.keeper);
}

nb::object deserialize_by_factory(const ForeignFactory &factory, const std::string &layer,
                                  const nb::bytes &data) {
    if (!factory.calls.deserialize)
        throw std::invalid_argument("the factory makes layers of networks only");
    headrace_plugin made{};
    std::string blob(data.c_str(), data.size());
    run_foreign([&] {
        factory.calls.deserialize(factory.self, layer.c_str(), blob.data(), blob.size(), &made);
    });
    return plugin_to_python(made, made.owned != 0, factory.keeper);
}

// Calls a method of an object by its name.
nb::object call_back(const ForeignCallback &object, const std::string &method,
                     const nb::args &arguments) {
    headrace_object owner;  // of the texts, for the time of the call
    std::vector<headrace_value> values;
    values.reserve(arguments.size());
    for (nb::handle argument : arguments) values.push_back(from_python(argument, &owner));
    headrace_value result{};
    run_foreign([&] {
        object.calls.call(object.self, method.c_str(), values.data(),
                          static_cast<int32_t>(values.size()), &result);
    });
    return to_python(result);
}

nb::object get_batch(const ForeignCalibrator &calibrator, const std::vector<std::string> &names) {
    std::vector<const char *> texts;
    texts.reserve(names.size());
    for (const std::string &name : names) texts.push_back(name.c_str());
    std::vector<void *> bindings(names.size(), nullptr);
    const int32_t more = run_foreign([&] {
        return calibrator.calls.get_batch(calibrator.self, bindings.data(), texts.data(),
                                          static_cast<int32_t>(texts.size()));
    });
    if (!more) return nb::none();
    nb::list addresses;
    for (void *binding : bindings) addresses.append(reinterpret_cast<uintptr_t>(binding));
    return std::move(addresses);
}

// What libraries that look for a logger get: whoever listens hears it.
class HostLogger : public nvinfer1::ILogger {
public:
    void log(Severity severity, const char *text) override {
        if (!python_is_there() || !text) return;
        nb::gil_scoped_acquire locked;
        try {
            const nb::object message = nb::steal(
                PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "replace"));
            world().attr("tell")(static_cast<int>(severity), message);
        } catch (...) {
            tell_failure("log");
        }
    }
};

nvinfer1::ILoggerFinder *logger_finder() {
    class Finder : public nvinfer1::ILoggerFinder {
        HostLogger logger_;
        nvinfer1::ILogger *findLogger() override { return &logger_; }
    };
    static auto *one = new Finder;  // libraries keep it
    return one;
}

nb::object read_cache(const ForeignCalibrator &calibrator) {
    size_t length = 0;
    const void *data =
        run_foreign([&] { return calibrator.calls.read_cache(calibrator.self, &length); });
    return data && length ? nb::object(nb::bytes(data, length)) : nb::none();
}

// The creators that a library exports a list of, which it does not register itself.
nb::list exported_creators(const custom::SharedObject &library) {
    using List = nvinfer1::IPluginCreatorInterface *const *(*)(int32_t &);
    using Find = void (*)(nvinfer1::ILoggerFinder *);
    if (void *set = library.symbol("setLoggerFinder"))
        run_foreign([&] { reinterpret_cast<Find>(set)(logger_finder()); });
    nb::list found;
    void *get = library.symbol("getCreators");
    if (!get) get = library.symbol("getPluginCreators");
    if (!get) return found;
    int32_t count = 0;
    const auto list = run_foreign([&] { return reinterpret_cast<List>(get)(count); });
    for (int32_t i = 0; list && i < count; ++i) {
        if (!list[i]) continue;
        void *self = nullptr;
        const headrace_creator_calls calls =
            run_foreign([&] { return list[i]->headraceCalls(&self); });
        if (!self) continue;
        const void *code = reinterpret_cast<const void *>(calls.name);
        found.append(hand_over(new ForeignCreator(self, calls, code)));
    }
    return found;
}

}  // namespace

Image::Image(const void *code, bool keep) {
    Dl_info where{};
    if (!dladdr(code, &where) || !where.dli_fname) return;
    base_ = where.dli_fbase;
    path_ = where.dli_fname;
    if (keep) handle_ = dlopen(where.dli_fname, RTLD_NOW | RTLD_NOLOAD);
}

Image::~Image() {
    if (!handle_) return;
    const core::UnlockedForLoader unlocked;
    dlclose(handle_);
}

bool Image::holds(const void *code) const {
    Dl_info where{};
    return base_ && dladdr(code, &where) && where.dli_fbase == base_;
}

const void *code_of(const void *object, const void *call) {
    static const void *const own = [] {
        Dl_info here{};
        return dladdr(reinterpret_cast<const void *>(&code_of), &here) ? here.dli_fbase : nullptr;
    }();
    Dl_info where{};
    if (!object || !dladdr(call, &where) || where.dli_fbase != own) return call;
    return *static_cast<const void *const *>(object);
}

const char *kept(const std::string &text) {
    static auto *all = new std::set<std::string>;  // outlives the libraries
    return all->insert(text).first->c_str();
}

nb::object plugin_to_python(const headrace_plugin &plugin, bool owned,
                            const std::shared_ptr<void> &keeper) {
    switch (plugin.generation) {
    case HEADRACE_PLUGIN_NONE: return nb::none();
    case HEADRACE_PLUGIN_OF_HOST: return headrace_object::behind(plugin.object);
    case HEADRACE_PLUGIN_V3: return world().attr("plugin_v3")(new_plugin_v3(plugin, owned));
    default: return world().attr("plugin_v2")(new_plugin_v2(plugin, owned, keeper));
    }
}

nb::object foreign_to_python(const headrace_value &v) {
    switch (v.kind) {
    case HEADRACE_PLUGINS_CREATOR: return wrapped(v, "creator", &headrace_creator_calls::name);
    case HEADRACE_LOGGER: return wrapped(v, "logger", &headrace_logger_calls::log);
    case HEADRACE_CALIBRATOR:
        return wrapped(v, "calibrator", &headrace_calibrator_calls::get_batch);
    case HEADRACE_CALLBACK: return wrapped(v, "callback", &headrace_callback_calls::call);
    default: {
        const auto calls = copied<headrace_factory_calls>(v.extra);
        return world().attr("factory")(hand_over(new ForeignFactory(v.data, calls, {})));
    }
    }
}

bool foreign_from_python(nb::handle value, headrace_value &out) {
    ForeignCreator *creator = nullptr;
    ForeignLogger *logger = nullptr;
    ForeignCallback *callback = nullptr;
    ForeignCalibrator *calibrator = nullptr;
    if (nb::try_cast(value, creator) && creator) {
        out.kind = HEADRACE_PLUGINS_CREATOR;
        out.data = creator->self;
    } else if (nb::try_cast(value, logger) && logger) {
        out.kind = HEADRACE_LOGGER;
        out.data = logger->self;
    } else if (nb::try_cast(value, calibrator) && calibrator) {
        out.kind = HEADRACE_CALIBRATOR;
        out.data = calibrator->self;
    } else if (nb::try_cast(value, callback) && callback) {
        out.kind = HEADRACE_CALLBACK;
        out.data = callback->self;
    } else {
        return false;
    }
    return true;
}

void bind(nb::module_ &m) {

    nb::class_<ForeignCreator>(m, "ForeignCreator", "A plugin creator of a C++ library.")
        .def_prop_ro("address", &ForeignCreator::address)
        .def_prop_ro("library", [](const ForeignCreator &c) { return c.image->path(); })
        .def_prop_ro("image", [](const ForeignCreator &c) { return c.image->base(); })
        .def_prop_ro(
            "third",
            [](const ForeignCreator &c) { return c.calls.generation == HEADRACE_PLUGIN_V3; })
        .def("is_of",
             [](const ForeignCreator &c, uintptr_t code) {
                 return c.image->holds(reinterpret_cast<const void *>(code));
             })
        .def(
            "copy",
            [](const ForeignCreator &c, bool keep) {
                const auto *call = reinterpret_cast<const void *>(c.calls.name);
                return new ForeignCreator(c.self, c.calls, code_of(c.self, call), keep);
            },
            "keep"_a, "The same, keeping its library loaded or not.")
        .def("class_name",
             [](const ForeignCreator &c) { return core::readable(c.calls.class_name(c.self)); })
        .def("name", [](const ForeignCreator &c) { return ask_text(c, c.calls.name); })
        .def("version", [](const ForeignCreator &c) { return ask_text(c, c.calls.version); })
        .def("get_namespace",
             [](const ForeignCreator &c) { return ask_text(c, c.calls.get_namespace); })
        .def("set_namespace",
             [](const ForeignCreator &c, const std::string &value) {
                 const char *const text = kept(value);
                 if (c.calls.set_namespace)
                     run_foreign([&] { c.calls.set_namespace(c.self, text); });
             })
        .def("field_names",
             [](const ForeignCreator &c) {
                 const auto *fields = run_foreign([&] { return c.calls.field_names(c.self); });
                 const int32_t count = fields ? fields->count : 0;
                 const bool nowhere = count > 0 && !fields->fields;
                 if (nowhere || count < 0 || count > kMaxFields)
                     throw std::invalid_argument("getFieldNames returned " + std::to_string(count) +
                                                 (nowhere ? " fields at null" : " fields"));
                 return fields_to_python(fields);
             })
        .def("field_count",
             [](const ForeignCreator &c) -> nb::object {
                 const auto *fields = run_foreign([&] { return c.calls.field_names(c.self); });
                 if (!fields || (fields->count > 0 && !fields->fields)) return nb::none();
                 return nb::int_(fields->count);
             })
        .def("create", &create, "name"_a, "fields"_a, "phase"_a)
        .def("deserialize", &deserialize, "name"_a, "data"_a);

    m.def(
        "host_lend_pages", [](bool on) { lend_pages() = on; }, "on"_a,
        "Lend the data of createPlugin and deserializePlugin in pages of their own, which cannot "
        "be "
        "accessed after the call. For a process that checks plugins.");
    m.def(
        "exported_creators", &exported_creators, "library"_a,
        "The creators that getCreators or getPluginCreators of a library gives; setLoggerFinder is "
        "called first.");

    nb::class_<ForeignLogger>(m, "ForeignLogger", "A logger of a C++ library.")
        .def("log", [](const ForeignLogger &l, int32_t severity, const std::string &text) {
            run_foreign([&] { l.calls.log(l.self, severity, text.c_str()); });
        });

    nb::class_<ForeignCallback>(m, "ForeignCallback",
                                "An error recorder, a monitor, a listener … of a C++ library.")
        .def_prop_ro("kind", [](const ForeignCallback &c) { return std::string(c.calls.kind); })
        .def("call", &call_back,
             nb::sig("def call(self, method: str, *arguments: object) -> object"),
             "Call a method by its name, with what follows as its arguments.");

    nb::class_<ForeignCalibrator>(m, "ForeignCalibrator", "An INT8 calibrator of a C++ library.")
        .def_prop_ro("algorithm", [](const ForeignCalibrator &c) { return c.calls.algorithm; })
        .def("batch_size",
             [](const ForeignCalibrator &c) {
                 return run_foreign([&] { return c.calls.batch_size(c.self); });
             })
        .def("get_batch", &get_batch, "names"_a)
        .def("read_cache", &read_cache)
        .def("write_cache", [](const ForeignCalibrator &c, const nb::bytes &data) {
            const std::string copy(data.c_str(), data.size());
            run_foreign([&] { c.calls.write_cache(c.self, copy.data(), copy.size()); });
        });

    nb::class_<ForeignFactory>(m, "ForeignFactory", "A factory of layers of a C++ library.")
        .def("is_plugin",
             [](const ForeignFactory &f, const std::string &layer) {
                 return f.calls.is_plugin &&
                        run_foreign([&] { return f.calls.is_plugin(f.self, layer.c_str()); }) != 0;
             })
        .def("create", &create_by_factory, "layer"_a, "weights"_a, "fields"_a, "namespace"_a)
        .def("deserialize", &deserialize_by_factory, "layer"_a, "data"_a);

    bind_plugins(m);
    bind_entry(m);
    bind_factory(m);
}

}  // namespace headrace::hosting
