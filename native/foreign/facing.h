// Faces of the host's objects for the libraries of one line. What includes it defines
// NV_TENSORRT_MAJOR, and compiles headrace's own headers of that major under names of their own:
// within one module the same class of two majors would be one. It becomes kFaces of that line.
//
// A function of a face (generated, tensorrt_faces.py) calls its namesake of the headers; arguments
// pass through the types below, which turn into whatever the namesake takes. Nothing throws into
// the library: its inline code is noexcept.
#pragma once

#ifndef NV_TENSORRT_MAJOR
#error "define NV_TENSORRT_MAJOR first"
#endif
#define HEADRACE_NO_ABI_MARKER
#define HEADRACE_FACES_OF2(major) faces##major
#define HEADRACE_FACES_OF(major) HEADRACE_FACES_OF2(major)
#define HEADRACE_GENERATION HEADRACE_FACES_OF(NV_TENSORRT_MAJOR)
#define HEADRACE_OF_LINE2(name, major) name##major
#define HEADRACE_OF_LINE(name, major) HEADRACE_OF_LINE2(name, major)
#define HEADRACE_FILE2(major) <foreign/generated_faces##major.h>
#define HEADRACE_FILE(major) HEADRACE_FILE2(major)
#define HEADRACE_RENAMED2(name, major) name##_faces##major
#define HEADRACE_RENAMED(name, major) HEADRACE_RENAMED2(name, major)
#define nvinfer1 HEADRACE_RENAMED(nvinfer, NV_TENSORRT_MAJOR)
#define nvonnxparser HEADRACE_RENAMED(nvonnx, NV_TENSORRT_MAJOR)

#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "foreign/faces.h"
#include "foreign/host.h"
#include "foreign/objects.h"
#include "foreign/refused.h"
#include "foreign/registry.h"

namespace headrace::foreign::HEADRACE_GENERATION {

using Line = HEADRACE_OF_LINE(Line, NV_TENSORRT_MAJOR);
using headrace::Object;

// ---- numbers of enums: those of a line, and the headers' own

template <typename E>
struct Numbers {  // the same, unless the generated header says otherwise
    static constexpr int count = 0;
    static constexpr const int *all = nullptr;
};

template <typename E>
E number_in(int number) {
    if constexpr (Numbers<E>::count > 0) {
        if (number < 0 || number >= Numbers<E>::count || Numbers<E>::all[number] < 0)
            refuse_number(number);
        return static_cast<E>(Numbers<E>::all[number]);
    } else {
        return static_cast<E>(number);
    }
}

template <typename E>
int number_out(E value) {
    const int number = static_cast<int>(value);
    if constexpr (Numbers<E>::count > 0) {
        for (int i = 0; i < Numbers<E>::count; ++i)
            if (Numbers<E>::all[i] == number) return i;
        return -1;
    }
    return number;
}

// Masks with a bit for each member.
template <typename E>
unsigned mask_in(unsigned mask) {
    unsigned out = 0;
    for (int i = 0; i < 32; ++i)
        if (mask >> i & 1U) out |= 1U << static_cast<int>(number_in<E>(i));
    return out;
}
template <typename E>
unsigned mask_out(unsigned mask) {
    unsigned out = 0;
    for (int i = 0; i < 32; ++i)
        if (const int number = mask >> i & 1U ? number_out(static_cast<E>(i)) : -1; number >= 0)
            out |= 1U << number;
    return out;
}

// ---- arguments

template <typename T>
T *behind(const void *shown) {
    return reinterpret_cast<T *>(object_behind(shown));
}

struct Reference {
    const void *shown;
    template <typename T, typename = std::enable_if_t<std::is_base_of_v<Object, T>>>
    operator T &() const {
        return *behind<T>(shown);
    }
};
struct Pointer {
    const void *shown;
    template <typename T, typename = std::enable_if_t<std::is_base_of_v<Object, T>>>
    operator T *() const {
        return shown ? behind<T>(shown) : nullptr;
    }
};
struct Objects {
    std::vector<headrace_object *> all;
    Objects(void *const *shown, int count) {
        if (count > 0 && !shown) throw std::invalid_argument("it was given null for a list");
        for (int i = 0; i < count; ++i) all.push_back(object_behind(shown[i]));
    }
    template <typename T, typename = std::enable_if_t<std::is_base_of_v<Object, T>>>
    operator T *const *() const {
        return reinterpret_cast<T *const *>(all.data());
    }
};
struct Enum {
    int number;
    template <typename E, typename = std::enable_if_t<std::is_enum_v<E>>>
    operator E() const {
        return number_in<E>(number);
    }
};
struct Numbered {  // a list of enums whose numbers are the same
    int *numbers;
    template <typename E, typename = std::enable_if_t<std::is_enum_v<E>>>
    operator E *() const {
        return reinterpret_cast<E *>(numbers);
    }
};
struct Struct {
    const void *data;
    template <typename T, typename = std::enable_if_t<std::is_base_of_v<nvinfer1::Dims, T> ||
                                                      std::is_same_v<T, nvinfer1::Weights> ||
                                                      std::is_same_v<T, nvinfer1::Permutation>>>
    operator T() const {
        if (!data) throw std::invalid_argument("it was given null for a struct");
        T out{};
        if constexpr (std::is_base_of_v<nvinfer1::Dims, T>) {
            const auto &in = *static_cast<const Line::Dims *>(data);
            if (in.nbDims < -1 || in.nbDims > 8) refuse_axes(in.nbDims);
            out.nbDims = in.nbDims;
            for (int i = 0; i < in.nbDims; ++i) out.d[i] = in.d[i];
        } else if constexpr (std::is_same_v<T, nvinfer1::Weights>) {
            const auto &in = *static_cast<const Line::Weights *>(data);
            out = {static_cast<nvinfer1::DataType>(in.type), in.values, in.count};
        } else {
            const auto &in = *static_cast<const Line::Permutation *>(data);
            for (int i = 0; i < 8; ++i) out.order[i] = in.order[i];
        }
        return out;
    }
};
inline cudaStream_t stream(void *given) { return static_cast<cudaStream_t>(given); }

// ---- results

template <typename T>
struct FaceOf;
template <typename T>
void *shown(T *object);
void *memory(nvinfer1::IHostMemory *bytes);

template <typename R, typename V>
R out(V &&value) {
    using P = std::decay_t<V>;
    if constexpr (std::is_base_of_v<Object, P>) {
        return shown(const_cast<P *>(&value));
    } else if constexpr (std::is_pointer_v<P>) {
        using T = std::remove_const_t<std::remove_pointer_t<P>>;
        if constexpr (std::is_same_v<T, nvinfer1::IHostMemory>)
            return memory(const_cast<T *>(value));
        else if constexpr (std::is_same_v<P, cudaStream_t>)
            return static_cast<R>(value);
        else if constexpr (std::is_base_of_v<Object, T>)
            return shown(const_cast<T *>(value));
        else
            return (R)value;  // the same memory, by another name
    } else if constexpr (std::is_base_of_v<nvinfer1::Dims, P>) {
        Line::Dims dims{};
        dims.nbDims = value.nbDims;
        for (int i = 0; i < value.nbDims && i < 8; ++i) dims.d[i] = value.d[i];
        return dims;
    } else if constexpr (std::is_same_v<P, nvinfer1::Weights>) {
        return {static_cast<int>(value.type), value.values, value.count};
    } else if constexpr (std::is_same_v<P, nvinfer1::Permutation>) {
        static thread_local Line::Permutation order{};  // the library gets a reference to it
        for (int i = 0; i < 8; ++i) order.order[i] = value.order[i];
        if constexpr (std::is_pointer_v<R>) {
            return &order;
        } else {
            return order;
        }
    } else if constexpr (std::is_enum_v<P>) {
        return static_cast<R>(number_out(value));
    } else {
        return static_cast<R>(value);
    }
}

// Calls a function of the headers' class; refuses one that it does not have.
template <typename R, typename T, typename F>
R ask(T *own, F function, const char *of_class, const char *name) noexcept {
    if constexpr (std::is_invocable_v<F, T &>) {
        try {
            if constexpr (std::is_void_v<std::invoke_result_t<F, T &>>) {
                function(*own);
                if constexpr (!std::is_void_v<R>) return R{1};
                return Zero<R>::of();
            } else {
                decltype(auto) value = function(*own);
                if constexpr (std::is_pointer_v<std::decay_t<decltype(value)>>)
                    if (!value) null_answer(of_class, name);
                if constexpr (!std::is_void_v<R>)
                    return out<R>(std::forward<decltype(value)>(value));
            }
        } catch (...) {
            thrown(of_class, name);
        }
    } else {
        refused(of_class, name);
    }
    return Zero<R>::of();
}

// ---- what all classes have

void *registry();
void *logger_of(const Object *own) noexcept;
void set_recorder(const Object *own, void *recorder) noexcept;
void *recorder_of(const Object *own) noexcept;

using Dims = Line::Dims;
using Weights = Line::Weights;
using Permutation = Line::Permutation;

#include HEADRACE_FILE(NV_TENSORRT_MAJOR)

}  // namespace headrace::foreign::HEADRACE_GENERATION

#include "foreign/faces_by_hand.h"
#include "foreign/showing.h"
#include "foreign/standard.h"

namespace headrace::foreign {

const Faces HEADRACE_OF_LINE(kFaces, NV_TENSORRT_MAJOR){
    &HEADRACE_GENERATION::show_object,
    [](const std::string &name) {
        void *const maker = HEADRACE_GENERATION::maker(name);
        return maker ? maker : HEADRACE_GENERATION::factory(name);
    },
    &HEADRACE_GENERATION::standard_creator};

}  // namespace headrace::foreign
