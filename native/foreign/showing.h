// What a library of a line holds: an object of its own form around a face, made once for each
// object of the host; and the functions that make the first ones. Part of facing.h.
#pragma once

namespace headrace::foreign::HEADRACE_GENERATION {

#if NV_TENSORRT_MAJOR >= 8
// From line 8 on the public object holds pointers: a layer's to VLayer, to the class of the border
// that it is at, and to its own class.
template <typename Base>
struct PublicObject final : Base {
    void *to[3] = {};
    void complete() override { release(this); }
    void deleting() override { release(this); }
};

// Some public classes have virtual functions of their own, whose bodies call the implementation.
template <typename T>
struct PublicBase {
    using type = Line::VRoot;
};
struct NetworkBase : Line::INetworkDefinition {
    void *getBuilder() override {
        return static_cast<Line::VNetworkDefinition *>(to())->getBuilder();
    }
    void *to() { return reinterpret_cast<void **>(this)[1]; }
};
template <>
struct PublicBase<nvinfer1::INetworkDefinition> {
    using type = NetworkBase;
};
struct ConfigBase : Line::IBuilderConfig {
    Line::VBuilderConfig *to() {
        return static_cast<Line::VBuilderConfig *>(reinterpret_cast<void **>(this)[1]);
    }
#if NV_TENSORRT_MAJOR < 10
    void setMinTimingIterations(int count) override { to()->setMinTimingIterations(count); }
    int getMinTimingIterations() override { return to()->getMinTimingIterations(); }
#endif
    void setAvgTimingIterations(int count) override { to()->setAvgTimingIterations(count); }
};
template <>
struct PublicBase<nvinfer1::IBuilderConfig> {
    using type = ConfigBase;
};

template <typename T>
auto *face_of(T *own) {
    auto *face = new typename FaceOf<T>::type;
    face->own = own;
    return face;
}

template <typename T>
void *held(T *own) {
    auto *object = new PublicObject<typename PublicBase<T>::type>;
    void **to = object->to;
    if constexpr (std::is_base_of_v<nvinfer1::ILayer, T>) *to++ = face_of<nvinfer1::ILayer>(own);
    if constexpr (std::is_base_of_v<nvinfer1::ILoopBoundaryLayer, T>)
        *to++ = face_of<nvinfer1::ILoopBoundaryLayer>(own);
    if constexpr (std::is_base_of_v<nvinfer1::IIfConditionalBoundaryLayer, T>)
        *to++ = face_of<nvinfer1::IIfConditionalBoundaryLayer>(own);
    if constexpr (!std::is_same_v<T, nvinfer1::ILayer>) *to = face_of<T>(own);
    return object;
}
#endif

// Before line 8, and in parsers of ONNX files, the face is the object.
template <typename T>
void *made(T *own) {
#if NV_TENSORRT_MAJOR >= 8
    constexpr bool pure = std::is_same_v<T, nvonnxparser::IParser> ||
                          std::is_same_v<T, nvonnxparser::IParserError> ||
                          std::is_same_v<T, nvonnxparser::IParserRefitter>;
    if constexpr (!pure) {
        return held<T>(own);
    } else {
        return face_of<T>(own);
    }
#else
    auto *face = new typename FaceOf<T>::type;
    face->own = own;
    return face;
#endif
}

struct AsLayer {
    nvinfer1::ILayer *layer;
    template <typename T>
    void *operator()() const {
        return made(static_cast<T *>(layer));
    }
};

template <typename T>
void *shown(T *object) {
    if (!object) return nullptr;
    headrace_object *const handle = object->headraceObject();
    if (void *known = shown_for(handle, Line::number)) return known;
    void *one = nullptr;
    if constexpr (std::is_same_v<T, nvinfer1::ILayer>)
        one = by_type(object->getType(), AsLayer{object});  // libraries cast it to its own class
    else
        one = made(object);
    remember(one, handle, Line::number);
    return one;
}

// Memory of the host: the library deletes it.
#if NV_TENSORRT_MAJOR >= 8
struct MemoryFace final : Line::VHostMemory {
    nvinfer1::IHostMemory *own = nullptr;
    void *data() override { return own->data(); }
    unsigned long size() override { return own->size(); }
    int type() override { return static_cast<int>(own->type()); }
};
struct MemoryObject final : Line::VRoot {
    MemoryFace *to;
    explicit MemoryObject(MemoryFace *face) : to(face) {}
    void complete() override {}
    void deleting() override {
        delete to->own;
        delete to;
        delete this;
    }
};
inline void *memory(nvinfer1::IHostMemory *bytes) {
    if (!bytes) return nullptr;
    auto *face = new MemoryFace;
    face->own = bytes;
    return new MemoryObject(face);
}
#else
struct MemoryFace final : Line::IHostMemory {
    nvinfer1::IHostMemory *own = nullptr;
    void *data() override { return own->data(); }
    unsigned long size() override { return own->size(); }
    int type() override { return static_cast<int>(own->type()); }
    void destroy() override { deleting(); }
    void complete() override {}
    void deleting() override {
        delete own;
        delete this;
    }
};
inline void *memory(nvinfer1::IHostMemory *bytes) {
    if (!bytes) return nullptr;
    auto *face = new MemoryFace;
    face->own = bytes;
    return face;
}
#endif

inline void *show_object(const char *of_class, headrace_object *object) {
    const std::string name = of_class;
    if (name == "IBuilder") return shown(reinterpret_cast<nvinfer1::IBuilder *>(object));
    if (name == "IBuilderConfig")
        return shown(reinterpret_cast<nvinfer1::IBuilderConfig *>(object));
    if (name == "INetworkDefinition")
        return shown(reinterpret_cast<nvinfer1::INetworkDefinition *>(object));
    return nullptr;
}

// ---- what libnvinfer and libnvonnxparser export

// A function that makes an object of the host, for a library's logger and of the library's release.
template <typename T, typename Make>
void *make_for(void *logger, int version, const void *caller, const char *function,
               Make make) noexcept {
    try {
        require_line(Line::number, version, function);
        note_caller(caller, Line::number, version);
        if (!logger) throw std::invalid_argument("it was given no logger");
        const Logger given(logger);
        const headrace_value made = make(given.value);
        if (headrace_object *object = as_object(made)) return shown(reinterpret_cast<T *>(object));
    } catch (const std::exception &error) {
        fail(function, error.what());
    }
    return nullptr;
}

inline void *create_builder(void *logger, int version) {
    return make_for<nvinfer1::IBuilder>(
        logger, version, __builtin_return_address(0), "createInferBuilder",
        [](const headrace_value &log) { return call(nullptr, "create_infer_builder", {log}); });
}
inline void *create_runtime(void *logger, int version) {
    return make_for<nvinfer1::IRuntime>(
        logger, version, __builtin_return_address(0), "createInferRuntime",
        [](const headrace_value &log) { return call(nullptr, "create_infer_runtime", {log}); });
}
inline void *create_refitter(void *engine, void *logger, int version) {
    return make_for<nvinfer1::IRefitter>(logger, version, __builtin_return_address(0),
                                         "createInferRefitter", [=](const headrace_value &log) {
                                             return call(nullptr, "create_infer_refitter",
                                                         {object(object_behind(engine)), log});
                                         });
}
// The version is the parser's own, and tells nothing.
inline void *create_parser(void *network, void *logger, int) {
    return make_for<nvonnxparser::IParser>(logger, 0, __builtin_return_address(0),
                                           "createNvOnnxParser", [=](const headrace_value &log) {
                                               return call(nullptr, "create_onnx_parser",
                                                           {object(object_behind(network)), log});
                                           });
}

inline void *maker(const std::string &name) {
    if (name == "createInferBuilder_INTERNAL") return reinterpret_cast<void *>(&create_builder);
    if (name == "createInferRuntime_INTERNAL") return reinterpret_cast<void *>(&create_runtime);
    if (name == "createInferRefitter_INTERNAL") return reinterpret_cast<void *>(&create_refitter);
    if (name == "createNvOnnxParser_INTERNAL") return reinterpret_cast<void *>(&create_parser);
    return nullptr;
}

}  // namespace headrace::foreign::HEADRACE_GENERATION
