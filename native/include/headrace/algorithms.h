// Algorithm selectors, up to 10: what a source derives from to choose how layers are computed, and
// what it is shown.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_ALGORITHMS_H
#define HEADRACE_TRT_ALGORITHMS_H

#include "runtime.h"

namespace nvinfer1 {

class IAlgorithmIOInfo {
public:
    virtual TensorFormat getTensorFormat() const = 0;
    virtual DataType getDataType() const = 0;
    virtual Dims getStrides() const = 0;
    virtual int64_t getVectorizedDim() const = 0;
    virtual int64_t getComponentsPerElement() const = 0;

protected:
    virtual ~IAlgorithmIOInfo() = default;
};

class IAlgorithmVariant {
public:
    virtual int64_t getImplementation() const = 0;
    virtual int64_t getTactic() const = 0;

protected:
    virtual ~IAlgorithmVariant() = default;
};

class IAlgorithmContext {
public:
    virtual const char *getName() const = 0;
    virtual Dims getDimensions(int32_t index, OptProfileSelector select) const = 0;
    virtual int32_t getNbInputs() const = 0;
    virtual int32_t getNbOutputs() const = 0;

protected:
    virtual ~IAlgorithmContext() = default;
};

class IAlgorithm {
public:
    virtual const IAlgorithmIOInfo &getAlgorithmIOInfo(int32_t index) const = 0;
    virtual const IAlgorithmIOInfo *getAlgorithmIOInfoByIndex(int32_t index) const = 0;
    virtual const IAlgorithmVariant &getAlgorithmVariant() const = 0;
    virtual float getTimingMSec() const = 0;
    virtual size_t getWorkspaceSize() const = 0;

protected:
    virtual ~IAlgorithm() = default;
};

class IAlgorithmSelector {
public:
    virtual int32_t selectAlgorithms(const IAlgorithmContext &context,
                                     const IAlgorithm *const *choices, int32_t count,
                                     int32_t *selection) = 0;
    virtual void reportAlgorithms(const IAlgorithmContext *const *contexts,
                                  const IAlgorithm *const *choices, int32_t count) = 0;
    virtual ~IAlgorithmSelector() = default;
};

}  // namespace nvinfer1

namespace headrace {
inline namespace HEADRACE_GENERATION {

// An object of the host behind one of these classes.
template <typename Base>
class Shown : public Base {
public:
    explicit Shown(headrace_object *object) : object_(object) {}
    ~Shown() override = default;

protected:
    template <typename T>
    T ask(const char *name) const {
        return get<T>(reinterpret_cast<const Object *>(object_), name);
    }
    const Object *handle() const { return reinterpret_cast<const Object *>(object_); }

private:
    headrace_object *object_;
};

template <typename T>
T *shown(const headrace_value &value) {
    return standIn<T>(static_cast<headrace_object *>(const_cast<void *>(value.data)));
}

class HostIOInfo : public Shown<nvinfer1::IAlgorithmIOInfo> {
public:
    using Shown::Shown;
    nvinfer1::TensorFormat getTensorFormat() const override {
        return ask<nvinfer1::TensorFormat>("tensor_format");
    }
    nvinfer1::DataType getDataType() const override { return ask<nvinfer1::DataType>("dtype"); }
    nvinfer1::Dims getStrides() const override { return ask<nvinfer1::Dims>("strides"); }
    int64_t getVectorizedDim() const override { return ask<int64_t>("vectorized_dim"); }
    int64_t getComponentsPerElement() const override {
        return ask<int64_t>("components_per_element");
    }
};

class HostVariant : public Shown<nvinfer1::IAlgorithmVariant> {
public:
    using Shown::Shown;
    int64_t getImplementation() const override { return ask<int64_t>("implementation"); }
    int64_t getTactic() const override { return ask<int64_t>("tactic"); }
};

class HostContext : public Shown<nvinfer1::IAlgorithmContext> {
public:
    using Shown::Shown;
    const char *getName() const override { return ask<const char *>("name"); }
    nvinfer1::Dims getDimensions(int32_t index,
                                 nvinfer1::OptProfileSelector select) const override {
        return call<nvinfer1::Dims>(nullptr, "algorithm_shape",
                                    {Value(handle()), index, static_cast<int32_t>(select)});
    }
    int32_t getNbInputs() const override { return ask<int32_t>("num_inputs"); }
    int32_t getNbOutputs() const override { return ask<int32_t>("num_outputs"); }
};

class HostAlgorithm : public Shown<nvinfer1::IAlgorithm> {
public:
    using Shown::Shown;
    const nvinfer1::IAlgorithmIOInfo &getAlgorithmIOInfo(int32_t index) const override {
        return *getAlgorithmIOInfoByIndex(index);
    }
    const nvinfer1::IAlgorithmIOInfo *getAlgorithmIOInfoByIndex(int32_t index) const override {
        const headrace_value info = callValue(handle(), "get_algorithm_io_info", {index});
        return info.kind == HEADRACE_OBJECT ? shown<HostIOInfo>(info) : nullptr;
    }
    const nvinfer1::IAlgorithmVariant &getAlgorithmVariant() const override {
        headrace_value variant = {};
        host()->get(handle()->headraceObject(), "algorithm_variant", &variant);
        return *shown<HostVariant>(variant);
    }
    float getTimingMSec() const override { return ask<float>("timing_msec"); }
    size_t getWorkspaceSize() const override { return ask<size_t>("workspace_size"); }
};

template <>
struct Callback<nvinfer1::IAlgorithmSelector> {
    static const char *kind() { return "IAlgorithmSelector"; }
    static Value call(nvinfer1::IAlgorithmSelector &self, const char *method,
                      const headrace_value *a) {
        if (std::strcmp(method, "select_algorithms") == 0) {
            const nvinfer1::IAlgorithm *const one = shown<HostAlgorithm>(a[1]);
            nvinfer1::Dims chosen = {};
            int32_t selection = 0;
            chosen.nbDims = self.selectAlgorithms(*shown<HostContext>(a[0]), &one, 1, &selection);
            chosen.d[0] = selection;
            return Value(chosen);
        }
        const int32_t count = As<int32_t>::from(a[0]);
        Items<const nvinfer1::IAlgorithmContext *> contexts(count);
        Items<const nvinfer1::IAlgorithm *> choices(count);
        for (int32_t i = 0; i < count; ++i) {
            contexts[i] = shown<HostContext>(a[1 + i]);
            choices[i] = shown<HostAlgorithm>(a[1 + count + i]);
        }
        self.reportAlgorithms(contexts.data(), choices.data(), count);
        return Value();
    }
};

}  // namespace HEADRACE_GENERATION
}  // namespace headrace

#endif  // HEADRACE_TRT_ALGORITHMS_H
