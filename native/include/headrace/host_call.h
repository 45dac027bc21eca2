// From C++ to the host: arguments become values, results become what the sources expect.
//
// Names here carry the generation, so that two libraries of different generations in one process
// never share a function. What changes its type changes its name: libraries of older headers share
// the process, too.
//
// Each unit of a library pays for what it includes: no virtual function is defined outside its
// class without `inline` in the class (all that it calls would be compiled into every unit), and
// there are no large headers or containers of the standard library where a few lines do.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_HOST_CALL_H
#define HEADRACE_HOST_CALL_H

#include <initializer_list>
#include <type_traits>
#include <typeinfo>

#include "host_abi.h"
#include "types.h"

#define HEADRACE_JOIN2(a, b) a##b
#define HEADRACE_JOIN(a, b) HEADRACE_JOIN2(a, b)
#ifndef HEADRACE_GENERATION
#define HEADRACE_GENERATION HEADRACE_JOIN(trt, NV_TENSORRT_MAJOR)
#endif

// Says which headers, and which generation of them, the library was compiled with: 8060 is 8.6.
#if defined(__ELF__) && !defined(HEADRACE_NO_ABI_MARKER)
extern "C" {
extern __attribute__((weak, visibility("default"))) const unsigned int headrace_headers_tensorrt;
__attribute__((used)) const unsigned int headrace_headers_tensorrt =
    NV_TENSORRT_MAJOR * 1000 + NV_TENSORRT_MINOR * 10;
// Counts the changes of classes whose virtual functions the host calls itself.
extern __attribute__((weak, visibility("default"))) const unsigned int headrace_headers_revision;
__attribute__((used)) const unsigned int headrace_headers_revision = 2;
#ifdef HEADRACE_CUDA_HOST
// What is CUDA in it was compiled for the host: plugins take the host's memory, with a GPU, too.
extern __attribute__((weak, visibility("default"))) const unsigned int headrace_headers_cuda_host;
__attribute__((used)) const unsigned int headrace_headers_cuda_host = 1;
#endif
}
#endif

namespace headrace {
inline namespace HEADRACE_GENERATION {

inline const headrace_host *host() { return headrace_host_api_1 ? headrace_host_api_1() : nullptr; }

// The class of an object of the library, as its compiler names it.
template <typename T>
const char *className(void *self) {
#if defined(__GXX_RTTI) || defined(__cpp_rtti)
    return typeid(*static_cast<T *>(self)).name();
#else
    (void)self;
    return nullptr;
#endif
}

// What pointers of the interface point to. Objects come from the host and go back by delete.
class Object {
public:
    Object(const Object &) = delete;
    Object &operator=(const Object &) = delete;
    static void operator delete(void *object) {
        const headrace_host *h = host();
        if (h && object) h->release(static_cast<headrace_object *>(object));
    }
    headrace_object *headraceObject() const {
        return reinterpret_cast<headrace_object *>(const_cast<Object *>(this));
    }

protected:
    Object() = default;
    ~Object() = default;
};

inline headrace_dims toHost(const nvinfer1::Dims &dims) {
    headrace_dims out = {};
    out.count = dims.nbDims;
    for (int i = 0; i < dims.nbDims && i < HEADRACE_MAX_AXES; ++i) out.axes[i] = dims.d[i];
    return out;
}

inline nvinfer1::Dims fromHost(const headrace_dims &dims) {
    nvinfer1::Dims out = {};
    out.nbDims = dims.count;
    for (int i = 0; i < dims.count && i < HEADRACE_MAX_AXES; ++i)
        out.d[i] = static_cast<nvinfer1::HeadraceExtent>(dims.axes[i]);
    return out;
}

// Names of enum types, as the host knows them.
template <typename E>
struct EnumName;
#define HEADRACE_ENUM(type)                         \
    template <>                                     \
    struct EnumName<nvinfer1::type> {               \
        static const char *text() { return #type; } \
    }
HEADRACE_ENUM(DataType);
HEADRACE_ENUM(TensorFormat);
HEADRACE_ENUM(EngineCapability);
HEADRACE_ENUM(DimensionOperation);

// One argument of a call.
struct Value : headrace_value {
    Value() : headrace_value() {}
    Value(bool v) : headrace_value() { kind = HEADRACE_BOOL, number = v; }
    Value(int v) : headrace_value() { kind = HEADRACE_INT, number = v; }
    Value(unsigned v) : headrace_value() { kind = HEADRACE_INT, number = v; }
    Value(long v) : headrace_value() { kind = HEADRACE_INT, number = v; }
    Value(long long v) : headrace_value() { kind = HEADRACE_INT, number = v; }
    Value(unsigned long v) : headrace_value() {
        kind = HEADRACE_INT, number = static_cast<int64_t>(v);
    }
    Value(unsigned long long v) : headrace_value() {
        kind = HEADRACE_INT, number = static_cast<int64_t>(v);
    }
    Value(float v) : headrace_value() { kind = HEADRACE_REAL, real = v; }
    Value(double v) : headrace_value() { kind = HEADRACE_REAL, real = v; }
    Value(const char *v) : headrace_value() { kind = v ? HEADRACE_TEXT : HEADRACE_NONE, data = v; }
    Value(std::nullptr_t) : headrace_value() {}
    Value(const nvinfer1::Dims &v) : headrace_value() { kind = HEADRACE_DIMS, dims = toHost(v); }
    Value(const nvinfer1::Permutation &v) : headrace_value() {
        kind = HEADRACE_DIMS;
        dims.count = HEADRACE_MAX_AXES;
        for (int i = 0; i < HEADRACE_MAX_AXES; ++i) dims.axes[i] = v.order[i];
    }
    Value(const nvinfer1::Weights &v) : headrace_value() {
        kind = HEADRACE_WEIGHTS, code = static_cast<int32_t>(v.type);
        data = v.values, number = v.values || v.count <= 0 ? v.count : 0;
    }
    Value(const Object *v) : headrace_value() {
        kind = v ? HEADRACE_OBJECT : HEADRACE_NONE, data = v ? v->headraceObject() : nullptr;
    }
    Value(const Object &v) : Value(&v) {}
    Value(const nvinfer1::PluginFieldCollection *v) : headrace_value() {
        kind = v ? HEADRACE_FIELDS : HEADRACE_NONE, data = v;
    }
    template <typename E, typename = typename std::enable_if<std::is_enum<E>::value>::type>
    Value(E v) : headrace_value() {
        kind = HEADRACE_ENUM, number = static_cast<int64_t>(v), extra = EnumName<E>::text();
    }

    static Value bytes(const void *data, size_t size) {
        Value v;
        v.kind = HEADRACE_BYTES, v.data = data, v.number = static_cast<int64_t>(size);
        return v;
    }
    static Value objects(const void *pointers, int64_t count) {
        Value v;
        v.kind = HEADRACE_OBJECTS, v.data = pointers, v.number = count;
        return v;
    }
    static Value ints(const int64_t *data, int64_t count) {
        Value v;
        v.kind = HEADRACE_INTS, v.data = data, v.number = count;
        return v;
    }
    static Value reals(const float *data, int64_t count) {
        Value v;
        v.kind = HEADRACE_REALS, v.data = data, v.number = count;
        return v;
    }
    static Value address(const void *data) {
        Value v;
        v.kind = HEADRACE_ADDRESS, v.data = data;
        return v;
    }
    static Value foreign(int32_t kind, const void *self, const void *calls) {
        Value v;
        v.kind = self ? kind : HEADRACE_NONE, v.data = self, v.extra = calls;
        return v;
    }
};

// What a result means, by the type that is asked for; nothing gives zero, null, false.
template <typename T, typename = void>
struct As;
template <>
struct As<void> {
    static void from(const headrace_value &) {}
};
template <typename T>
struct As<T, typename std::enable_if<std::is_arithmetic<T>::value>::type> {
    static T from(const headrace_value &v) {
        return v.kind == HEADRACE_REAL ? static_cast<T>(v.real) : static_cast<T>(v.number);
    }
};
template <typename T>
struct As<T, typename std::enable_if<std::is_enum<T>::value>::type> {
    static T from(const headrace_value &v) { return static_cast<T>(v.number); }
};
template <>
struct As<const char *> {
    static const char *from(const headrace_value &v) {
        return v.kind == HEADRACE_TEXT ? static_cast<const char *>(v.data) : nullptr;
    }
};
template <>
struct As<nvinfer1::Dims> {
    static nvinfer1::Dims from(const headrace_value &v) {
        if (v.kind == HEADRACE_DIMS) return fromHost(v.dims);
        nvinfer1::Dims none = {};
        none.nbDims = -1;
        return none;
    }
};
template <>
struct As<nvinfer1::Weights> {
    static nvinfer1::Weights from(const headrace_value &) {
        return nvinfer1::Weights{nvinfer1::DataType::kFLOAT, nullptr, 0};
    }
};
template <typename T>
struct As<T *, typename std::enable_if<std::is_base_of<Object, T>::value>::type> {
    static T *from(const headrace_value &v) {
        return v.kind == HEADRACE_OBJECT ? static_cast<T *>(const_cast<void *>(v.data)) : nullptr;
    }
};

inline headrace_value callValue(const Object *object, const char *method,
                                std::initializer_list<Value> arguments) {
    headrace_value result = {};
    if (const headrace_host *h = host())
        h->call(object ? object->headraceObject() : nullptr, method, arguments.begin(),
                static_cast<int32_t>(arguments.size()), &result);
    return result;
}

// What stands here for an object of the host. It is code of this library, so each library has its
// own, until it is unloaded. The list only grows, at its head, so that it needs no lock.
template <typename T>
struct StandIns {
    struct One {
        T value;
        headrace_object *object;
        One *next;
        explicit One(headrace_object *of) : value(of), object(of), next(nullptr) {}
    };
    One *first;
    ~StandIns() {
        while (One *one = first) {
            first = one->next;
            delete one;
        }
    }
};

template <typename T>
static inline T *standIn(headrace_object *object) {
    using One = typename StandIns<T>::One;
    static StandIns<T> all = {nullptr};
    One *made = nullptr;
    One *first = __atomic_load_n(&all.first, __ATOMIC_ACQUIRE);
    for (;;) {
        for (One *one = first; one; one = one->next) {
            if (one->object != object) continue;
            delete made;
            return &one->value;
        }
        if (!made) made = new One(object);
        made->next = first;
        if (__atomic_compare_exchange_n(&all.first, &first, made, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return &made->value;
    }
}

// Elements that live while one call does. A vector would do, but each unit that includes these
// headers would compile it for a dozen types, whether it has plugins or not.
template <typename T>
class Items {
public:
    explicit Items(int32_t count)
        : all_(count > 0 ? new T[static_cast<size_t>(count)]() : nullptr) {}
    Items(Items &&other) : all_(other.all_) { other.all_ = nullptr; }
    Items(const Items &) = delete;
    Items &operator=(const Items &) = delete;
    ~Items() { delete[] all_; }
    T &operator[](int32_t index) { return all_[index]; }
    T *data() const { return all_; }
    void swap(Items &other) {
        T *const mine = all_;
        all_ = other.all_, other.all_ = mine;
    }

private:
    T *all_;
};

template <typename R>
R call(const Object *object, const char *method, std::initializer_list<Value> arguments = {}) {
    return As<R>::from(callValue(object, method, arguments));
}

template <typename R>
R get(const Object *object, const char *name) {
    headrace_value result = {};
    if (const headrace_host *h = host()) h->get(object->headraceObject(), name, &result);
    return As<R>::from(result);
}

// Reports a method that Headrace does not have, by its name; gives zero, null or false.
template <typename R>
R refused(const char *method, const char *release) {
    return As<R>::from(callValue(nullptr, "refuse_method", {method, release}));
}

inline bool set(const Object *object, const char *name, const Value &value) {
    const headrace_host *h = host();
    return h && h->set(object->headraceObject(), name, &value);
}

}  // namespace HEADRACE_GENERATION
}  // namespace headrace

// A property that the host keeps under a name of its own.
#define HEADRACE_GET(type, getter, name) \
    type getter() const { return headrace::get<type>(this, name); }
#define HEADRACE_SET(type, setter, name) \
    void setter(type value) { headrace::set(this, name, value); }
#define HEADRACE_PROPERTY(type, getter, setter, name) \
    HEADRACE_GET(type, getter, name)                  \
    HEADRACE_SET(type, setter, name)

// A function that the host has under a name of its own, with the arguments behind it.
#define HEADRACE_CALL(type, function, method, ...) \
    type function { return headrace::call<type>(this, method, {__VA_ARGS__}); }

// A function that compiles and whose call is refused: `method` is class and name, `release` the one
// that brought it.
#define HEADRACE_REFUSED(type, function, method, release) \
    type function { return headrace::refused<type>(method, release); }

#endif  // HEADRACE_HOST_CALL_H
