// What sources derive from to be asked or told while the host works: progress monitors, listeners,
// writers; and how the host calls them, error recorders, profilers and allocators.
//
// The host names a method; its table has one entry for all of them. Virtual functions carry no
// noexcept, see logger.h. Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_CALLBACKS_H
#define HEADRACE_TRT_CALLBACKS_H

#include <cstring>

#include "layer_enums.h"
#include "logger.h"

namespace nvinfer1 {

class IProgressMonitor : public IVersionedInterface {
public:
    InterfaceInfo getInterfaceInfo() const override {
        return InterfaceInfo{"IProgressMonitor", 1, 0};
    }
    virtual void phaseStart(const char *phaseName, const char *parentPhase, int32_t nbSteps) = 0;
    virtual bool stepComplete(const char *phaseName, int32_t step) = 0;
    virtual void phaseFinish(const char *phaseName) = 0;
};

class IDebugListener : public IVersionedInterface {
public:
    InterfaceInfo getInterfaceInfo() const override {
        return InterfaceInfo{"IDebugListener", 1, 0};
    }
    virtual bool processDebugTensor(const void *addr, TensorLocation location, DataType type,
                                    const Dims &shape, const char *name, cudaStream_t stream) = 0;
};

class IStreamWriter : public IVersionedInterface {
public:
    InterfaceInfo getInterfaceInfo() const override { return InterfaceInfo{"IStreamWriter", 1, 0}; }
    virtual int64_t write(const void *data, int64_t nbBytes) = 0;
};

namespace v_1_0 {
using nvinfer1::IDebugListener;
using nvinfer1::IErrorRecorder;
using nvinfer1::IGpuAllocator;
using nvinfer1::IGpuAsyncAllocator;
using nvinfer1::IOutputAllocator;
using nvinfer1::IProfiler;
using nvinfer1::IProgressMonitor;
using nvinfer1::IStreamReader;
using nvinfer1::IStreamWriter;
}  // namespace v_1_0
namespace v_2_0 {
using IStreamReader = nvinfer1::IStreamReaderV2;
}  // namespace v_2_0

}  // namespace nvinfer1

namespace headrace {
inline namespace HEADRACE_GENERATION {

// The methods of an interface by the names that the host gives them.
template <typename T>
struct Callback;

template <>
struct Callback<nvinfer1::IErrorRecorder> {
    static const char *kind() { return "IErrorRecorder"; }
    static Value call(nvinfer1::IErrorRecorder &self, const char *method, const headrace_value *a) {
        if (std::strcmp(method, "report_error") == 0)
            return Value(self.reportError(static_cast<nvinfer1::ErrorCode>(a[0].number),
                                          As<const char *>::from(a[1])));
        if (std::strcmp(method, "num_errors") == 0) return Value(self.getNbErrors());
        if (std::strcmp(method, "get_error_code") == 0)
            return Value(static_cast<int>(self.getErrorCode(As<int32_t>::from(a[0]))));
        if (std::strcmp(method, "get_error_desc") == 0)
            return Value(self.getErrorDesc(As<int32_t>::from(a[0])));
        if (std::strcmp(method, "has_overflowed") == 0) return Value(self.hasOverflowed());
        self.clear();
        return Value();
    }
};

template <>
struct Callback<nvinfer1::IProgressMonitor> {
    static const char *kind() { return "IProgressMonitor"; }
    static Value call(nvinfer1::IProgressMonitor &self, const char *method,
                      const headrace_value *a) {
        const char *phase = As<const char *>::from(a[0]);
        if (std::strcmp(method, "step_complete") == 0)
            return Value(self.stepComplete(phase, As<int32_t>::from(a[1])));
        if (std::strcmp(method, "phase_start") == 0)
            self.phaseStart(phase, As<const char *>::from(a[1]), As<int32_t>::from(a[2]));
        else
            self.phaseFinish(phase);
        return Value();
    }
};

template <>
struct Callback<nvinfer1::IProfiler> {
    static const char *kind() { return "IProfiler"; }
    static Value call(nvinfer1::IProfiler &self, const char *, const headrace_value *a) {
        self.reportLayerTime(As<const char *>::from(a[0]), As<float>::from(a[1]));
        return Value();
    }
};

template <>
struct Callback<nvinfer1::IDebugListener> {
    static const char *kind() { return "IDebugListener"; }
    static Value call(nvinfer1::IDebugListener &self, const char *, const headrace_value *a) {
        return Value(self.processDebugTensor(
            reinterpret_cast<const void *>(static_cast<intptr_t>(a[0].number)),
            As<nvinfer1::TensorLocation>::from(a[1]), As<nvinfer1::DataType>::from(a[2]),
            As<nvinfer1::Dims>::from(a[3]), As<const char *>::from(a[4]), nullptr));
    }
};

// The host's memory needs none: it keeps the allocator for those who ask for it.
template <>
struct Callback<nvinfer1::IGpuAllocator> {
    static const char *kind() { return "IGpuAllocator"; }
    static Value call(nvinfer1::IGpuAllocator &self, const char *method, const headrace_value *a) {
        if (std::strcmp(method, "allocate") == 0)
            return Value::address(self.allocate(As<uint64_t>::from(a[0]), As<uint64_t>::from(a[1]),
                                                As<uint32_t>::from(a[2])));
        return Value(self.deallocate(reinterpret_cast<void *>(static_cast<intptr_t>(a[0].number))));
    }
};

template <typename T>
void invoke(void *self, const char *method, const headrace_value *arguments, int32_t,
            headrace_value *result) {
    *result = Callback<T>::call(*static_cast<T *>(self), method, arguments);
}

// `give` gets the value, for the time of a call.
template <typename T, typename Give>
void withCallback(T *object, Give give) {
    headrace_callback_calls calls = {};
    calls.size = sizeof(calls);
    calls.kind = Callback<T>::kind();
    calls.call = &invoke<T>;
    give(Value::foreign(HEADRACE_CALLBACK, object, &calls));
}

template <typename T>
void setCallback(const Object *owner, const char *name, T *object) {
    withCallback(object, [&](const Value &value) { set(owner, name, value); });
}

template <typename T>
T *callbackFrom(const headrace_value &value) {
    return value.kind == HEADRACE_CALLBACK ? static_cast<T *>(const_cast<void *>(value.data))
                                           : nullptr;
}

template <typename T>
T *getCallback(const Object *owner, const char *name) {
    headrace_value result = {};
    if (const headrace_host *h = host()) h->get(owner->headraceObject(), name, &result);
    return callbackFrom<T>(result);
}

// A recorder counts those who hold it.
inline void setRecorder(const Object *owner, nvinfer1::IErrorRecorder *recorder) {
    nvinfer1::IErrorRecorder *const before =
        getCallback<nvinfer1::IErrorRecorder>(owner, "error_recorder");
    if (recorder) recorder->incRefCount();
    setCallback(owner, "error_recorder", recorder);
    if (before) before->decRefCount();
}

}  // namespace HEADRACE_GENERATION
}  // namespace headrace

#define HEADRACE_RECORDER                                                                      \
    void setErrorRecorder(IErrorRecorder *recorder) { headrace::setRecorder(this, recorder); } \
    IErrorRecorder *getErrorRecorder() const {                                                 \
        return headrace::getCallback<IErrorRecorder>(this, "error_recorder");                  \
    }

#endif  // HEADRACE_TRT_CALLBACKS_H
