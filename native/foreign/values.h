// Values between the host and a line's own structs. `L` is a struct of the generated headers.
#pragma once

#include <cstdint>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "headrace/host_abi.h"

namespace headrace::foreign {

template <typename L>
headrace_dims to_host(const typename L::Dims &dims) {
    headrace_dims out{};
    out.count = dims.nbDims;
    for (int i = 0; i < dims.nbDims && i < HEADRACE_MAX_AXES; ++i) out.axes[i] = dims.d[i];
    return out;
}

template <typename L>
typename L::Dims from_host(const headrace_dims &dims) {
    using Extent = std::remove_reference_t<decltype(L::Dims::d[0])>;
    typename L::Dims out{};
    out.nbDims = dims.count;
    for (int i = 0; i < dims.count && i < HEADRACE_MAX_AXES; ++i)
        out.d[i] = static_cast<Extent>(dims.axes[i]);
    return out;
}

template <typename L>
typename L::PluginTensorDesc to_desc(const headrace_desc &desc) {
    return {from_host<L>(desc.dims), desc.type, desc.format, desc.scale};
}

template <typename L>
std::vector<typename L::Dims> all_dims(const headrace_dims *dims, int32_t n) {
    std::vector<typename L::Dims> out;
    for (int32_t i = 0; i < n; ++i) out.push_back(from_host<L>(dims[i]));
    return out;
}

template <typename L>
std::vector<typename L::PluginTensorDesc> all_descs(const headrace_desc *descs, int32_t n) {
    std::vector<typename L::PluginTensorDesc> out;
    for (int32_t i = 0; i < n; ++i) out.push_back(to_desc<L>(descs[i]));
    return out;
}

template <typename L>
std::vector<typename L::DynamicPluginTensorDesc> all_dynamic_descs(const headrace_desc *descs,
                                                                   int32_t n) {
    std::vector<typename L::DynamicPluginTensorDesc> out(static_cast<size_t>(n));
    for (int32_t i = 0; i < n; ++i) {
        auto &one = out[static_cast<size_t>(i)];
        one.desc = to_desc<L>(descs[i]);
        one.min = from_host<L>(descs[i].least);
        one.max = from_host<L>(descs[i].most);
        if constexpr (L::number >= 10) one.opt = from_host<L>(descs[i].best);
    }
    return out;
}

// The class of an object of the library as its compiler names it, by the type information before
// its virtual table; null without any (-fno-rtti).
inline const char *class_name(void *self) {
    void **table = *static_cast<void ***>(self);
    auto *type = static_cast<const std::type_info *>(table[-1]);
    return type ? type->name() : nullptr;
}

}  // namespace headrace::foreign
