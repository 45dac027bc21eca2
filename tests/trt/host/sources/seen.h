// Notes of what a plugin is given: a line a call; compiled with SEEN, in the file
// that the environment names so.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace {

#ifdef SEEN
class Seen {
public:
    explicit Seen(const char *method) { std::fputs(method, file_); }
    ~Seen() {
        std::fputc('\n', file_);
        std::fclose(file_);
    }
    template <typename T, typename... More>
    void all(const T &one, const More &...more) {
        put(one);
        all(more...);
    }
    void all() {}
    template <typename T>
    Seen &many(const T *values, int n) {
        put(n);
        for (int i = 0; i < n; ++i) put(values[i]);
        return *this;
    }

private:
    void put(const char *text) { std::fprintf(file_, " '%s'", text); }
    void put(float value) { std::fprintf(file_, " %g", double(value)); }
    template <typename T>
    void put(T number) {
        std::fprintf(file_, " %lld", static_cast<long long>(number));
    }
    void put(const Dims &dims) { many(dims.d, dims.nbDims); }
    void put(const PluginTensorDesc &one) { all(one.dims, one.type, one.format, one.scale); }
    void put(const DynamicPluginTensorDesc &one) {
        all(one.desc, one.min, one.max);
#if NV_TENSORRT_MAJOR >= 10
        all(one.opt);
#endif
    }
    void put(const DimsExprs &exprs) {
        put(exprs.nbDims);
        for (int i = 0; i < exprs.nbDims; ++i)
            put(exprs.d[i]->isConstant() ? exprs.d[i]->getConstantValue() : -1);
    }
    void put(const PluginField &field) {
        all(field.name, int(field.type), field.length, *static_cast<const float *>(field.data));
    }
    std::FILE *file_ = std::fopen(std::getenv("SEEN"), "a");
};
#define SAW(method) Seen(method)
#else
struct Seen {
    template <typename... Any>
    void all(const Any &...) {}
    template <typename... Any>
    Seen &many(const Any &...) {
        return *this;
    }
};
#define SAW(method) Seen()
#endif

}  // namespace
