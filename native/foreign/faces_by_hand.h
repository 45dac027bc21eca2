// Functions of faces that take or give objects of the library's own classes: loggers, recorders,
// calibrators, plugins, readers; and those whose numbers are masks. Part of facing.h.
#pragma once

#include <cstring>

namespace headrace::foreign::HEADRACE_GENERATION {

// A library's own logger as a value; one that came from getLogger goes back as it is.
struct Logger {
    headrace_logger_calls calls{};
    headrace_value value;
    explicit Logger(void *logger) {
        calls.size = sizeof(calls);
        calls.log = [](void *self, int32_t severity, const char *message) {
            static_cast<Line::ILogger *>(self)->log(severity, message);
        };
        value = pointer(HEADRACE_LOGGER, logger, &calls);
    }
    Logger(const Logger &) = delete;
    Logger &operator=(const Logger &) = delete;
};

inline headrace_value asked(const Object *own, const char *name) noexcept {
    headrace_value value{};
    headrace_host_api_1()->get(own->headraceObject(), name, &value);
    return value;
}

inline void *logger_of(const Object *own) noexcept {
    const headrace_value value = asked(own, "logger");
    return value.kind == HEADRACE_LOGGER ? const_cast<void *>(value.data) : logger<Line>();
}

inline void *recorder_of(const Object *own) noexcept {
    const headrace_value value = asked(own, "error_recorder");
    return value.kind == HEADRACE_CALLBACK ? const_cast<void *>(value.data) : nullptr;
}

inline void call_recorder(void *self, const char *method, const headrace_value *given, int32_t,
                          headrace_value *result) {
    auto &recorder = *static_cast<Line::IErrorRecorder *>(self);
    const auto is = [method](const char *name) { return std::strcmp(method, name) == 0; };
    *result = headrace_value{};
    if (is("report_error")) {
        const char *text =
            given[1].kind == HEADRACE_TEXT ? static_cast<const char *>(given[1].data) : "";
        recorder.reportError(static_cast<int>(given[0].number), text);
    } else if (is("num_errors")) {
        *result = number(recorder.getNbErrors());
    } else if (is("get_error_code")) {
        *result = number(recorder.getErrorCode(static_cast<int>(given[0].number)));
    } else if (is("get_error_desc")) {
        *result = text(recorder.getErrorDesc(static_cast<int>(given[0].number)));
    } else if (is("has_overflowed")) {
        *result = number(recorder.hasOverflowed());
        result->kind = HEADRACE_BOOL;
    } else {
        recorder.clear();
    }
}

inline void set_recorder(const Object *own, void *recorder) noexcept {
    headrace_callback_calls calls{sizeof(calls), "IErrorRecorder", &call_recorder};
    const headrace_value value = pointer(HEADRACE_CALLBACK, recorder, &calls);
    try {  // a recorder counts those who hold it
        auto *before = static_cast<Line::IErrorRecorder *>(recorder_of(own));
        if (recorder) static_cast<Line::IErrorRecorder *>(recorder)->incRefCount();
        headrace_host_api_1()->set(own->headraceObject(), "error_recorder", &value);
        if (before) before->decRefCount();
    } catch (...) {
        fail("setErrorRecorder", "the recorder threw");
    }
}

inline void *registry() {
    return reinterpret_cast<void *(*)()>(
        HEADRACE_OF_LINE(function, NV_TENSORRT_MAJOR)("getPluginRegistry"))();
}

// ---- networks

using Flag = nvinfer1::NetworkDefinitionCreationFlag;

struct NetworkFace final : INetworkDefinitionFace {
    void *addPluginV2(void *const *inputs, int count, void *plugin) override {
        return add<nvinfer1::IPluginV2Layer>("addPluginV2", [&] {
            const headrace_plugin one = described<Line>(plugin);
            return given("add_plugin_v2", one, {Objects(inputs, count)});
        });
    }
#if NV_TENSORRT_MAJOR >= 10
    void *addPluginV3(void *const *inputs, int count, void *const *shapes, int shape_count,
                      void *plugin) override {
        return add<nvinfer1::IPluginV3Layer>("addPluginV3", [&] {
            headrace_plugin one{};
            one.generation = plugin ? HEADRACE_PLUGIN_V3 : HEADRACE_PLUGIN_NONE;
            one.self = plugin;
            one.v3 = PluginV3Calls<Line>::table();
            return given("add_plugin_v3", one,
                         {Objects(inputs, count), Objects(shapes, shape_count)});
        });
    }
#endif
#if NV_TENSORRT_MAJOR >= 8
    unsigned int getFlags() override {
        return ask<unsigned>(
            own, [](auto &o) { return mask_out<Flag>(o.getFlags()); }, "INetworkDefinition",
            "getFlags");
    }
#endif

private:
    headrace_value given(const char *method, const headrace_plugin &plugin,
                         std::vector<Objects> lists) {
        std::vector<headrace_value> values;
        for (const Objects &list : lists) {
            headrace_value v{};
            v.kind = HEADRACE_OBJECTS, v.data = list.all.data();
            v.number = static_cast<int64_t>(list.all.size());
            values.push_back(v);
        }
        if (plugin.generation == HEADRACE_PLUGIN_NONE)
            throw std::invalid_argument("it was given null for a plugin");
        values.push_back(pointer(HEADRACE_PLUGIN, &plugin, nullptr));
        headrace_value result{};
        headrace_host_api_1()->call(own->headraceObject(), method, values.data(),
                                    static_cast<int32_t>(values.size()), &result);
        return result;
    }
    template <typename Layer, typename F>
    void *add(const char *name, F body) noexcept {
        return ask<void *>(
            own, [&](auto &) { return reinterpret_cast<Layer *>(as_object(body())); },
            "INetworkDefinition", name);
    }
};

template <typename Face>
struct PluginLayerFace : Face {
    void *getPlugin() override {
        const void *caller = __builtin_return_address(0);
        headrace_value address{};
        address.kind = HEADRACE_ADDRESS, address.data = caller;
        const headrace_value plugin =
            call(nullptr, "plugin_of", {object(this->own->headraceObject()), address});
        if (plugin.kind == HEADRACE_ADDRESS) return const_cast<void *>(plugin.data);
        fail("getPlugin", "the layer's plugin is not of this library");
        return nullptr;
    }
};
struct PluginV2LayerFace final : PluginLayerFace<IPluginV2LayerFace> {};
#if NV_TENSORRT_MAJOR >= 10
struct PluginV3LayerFace final : PluginLayerFace<IPluginV3LayerFace> {};
#endif

// ---- builders

#if NV_TENSORRT_MAJOR < 11
// The functions that a calibrator of line 10 or before has behind those of its interface.
inline void give_calibrator(const Object *own, void *calibrator) {
    using Calibrator = Line::IInt8Calibrator;
    headrace_calibrator_calls calls{};
    calls.size = sizeof(calls);
    auto *given = static_cast<Calibrator *>(calibrator);
    calls.algorithm = given ? given->getAlgorithm() : 0;
    calls.batch_size = [](void *self) -> int32_t {
        return static_cast<Calibrator *>(self)->getBatchSize();
    };
    calls.get_batch = [](void *self, void **bindings, const char **names, int32_t count) {
        return static_cast<int32_t>(
            static_cast<Calibrator *>(self)->getBatch(bindings, names, count));
    };
    calls.read_cache = [](void *self, size_t *length) {
        return static_cast<Calibrator *>(self)->readCalibrationCache(length);
    };
    calls.write_cache = [](void *self, const void *data, size_t length) {
        static_cast<Calibrator *>(self)->writeCalibrationCache(data, length);
    };
    const headrace_value value = pointer(HEADRACE_CALIBRATOR, calibrator, &calls);
    headrace_host_api_1()->set(own->headraceObject(), "int8_calibrator", &value);
}
#define HEADRACE_CALIBRATED(of_class)                                         \
    void setInt8Calibrator(void *calibrator) override {                       \
        ask<void>(                                                            \
            own, [&](auto &o) { give_calibrator(&o, calibrator); }, of_class, \
            "setInt8Calibrator");                                             \
    }
#else
#define HEADRACE_CALIBRATED(of_class)
#endif

struct BuilderFace final : IBuilderFace {
    void *createNetworkV2(unsigned int flags) override {
        return ask<void *>(
            own, [&](auto &o) { return o.createNetworkV2(mask_in<Flag>(flags)); }, "IBuilder",
            "createNetworkV2");
    }
#if NV_TENSORRT_MAJOR < 8
    HEADRACE_CALIBRATED("IBuilder")
#endif
};

using Setting = nvinfer1::BuilderFlag;

struct ConfigFace final : IBuilderConfigFace {
    HEADRACE_CALIBRATED("IBuilderConfig")
#if NV_TENSORRT_MAJOR < 11
    void *getInt8Calibrator() override {
        const headrace_value value = asked(own, "int8_calibrator");
        return value.kind == HEADRACE_CALIBRATOR ? const_cast<void *>(value.data) : nullptr;
    }
#endif
    void setFlags(unsigned int flags) override {
        ask<void>(
            own, [&](auto &o) { o.setFlags(mask_in<Setting>(flags)); }, "IBuilderConfig",
            "setFlags");
    }
    unsigned int getFlags() override {
        return ask<unsigned>(
            own, [](auto &o) { return mask_out<Setting>(o.getFlags()); }, "IBuilderConfig",
            "getFlags");
    }
};

struct RuntimeFace final : IRuntimeFace {
#if NV_TENSORRT_MAJOR < 10
    void *deserializeCudaEngine(const void *blob, unsigned long size, void *factory) override {
        if (factory) {
            refused("IRuntime", "deserializeCudaEngine with a plugin factory");
            return nullptr;
        }
        return ask<void *>(
            own, [&](auto &o) { return o.deserializeCudaEngine(blob, size); }, "IRuntime",
            "deserializeCudaEngine");
    }
#elif NV_TENSORRT_MAJOR == 10
    void *deserializeCudaEngine(const void *blob, unsigned long size) override {
        return IRuntimeFace::deserializeCudaEngine(blob, size);
    }
    void *deserializeCudaEngine(void *reader) override {
        return ask<void *>(
            own,
            [&](auto &o) {
                auto *bytes = static_cast<Line::IStreamReader *>(reader);
                std::string all, part(1 << 20, '\0');
                for (;;) {
                    const long got = bytes->read(part.data(), static_cast<long>(part.size()));
                    if (got <= 0) break;
                    all.append(part, 0, static_cast<size_t>(got));
                }
                return o.deserializeCudaEngine(all.data(), all.size());
            },
            "IRuntime", "deserializeCudaEngine");
    }
#endif
};

struct ParserFace final : IParserFace {
#if NV_TENSORRT_MAJOR < 8
    bool supportsModel(const void *model, unsigned long size, void *graphs) override {
        return supported(model, size, graphs, nullptr);
    }
#elif NV_TENSORRT_MAJOR < 11
    bool supportsModel(const void *model, unsigned long size, void *graphs,
                       const char *path) override {
        return supported(model, size, graphs, path);
    }
#endif

private:
    bool supported(const void *model, unsigned long size, void *graphs, const char *path) {
        using Graphs = nvonnxparser::SubGraphCollection_t;
        return ask<bool>(
            own,
            [&](auto &o) {
                return o.supportsModel(model, size, *static_cast<Graphs *>(graphs), path);
            },
            "IParser", "supportsModel");
    }
};

#undef HEADRACE_CALIBRATED

}  // namespace headrace::foreign::HEADRACE_GENERATION
