// What sources derive from to be told: loggers, error recorders, allocators.
//
// Virtual functions that users override carry no noexcept: sources of every generation compile, and
// what they throw is caught by the host. Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_LOGGER_H
#define HEADRACE_TRT_LOGGER_H

#include "host_call.h"

struct CUstream_st;
struct CUevent_st;
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
struct cudnnContext;
struct cublasContext;

namespace nvinfer1 {

class IVersionedInterface {
public:
    virtual APILanguage getAPILanguage() const { return APILanguage::kCPP; }
    virtual InterfaceInfo getInterfaceInfo() const { return InterfaceInfo{"", 1, 0}; }
    virtual ~IVersionedInterface() = default;
};

class ILogger {
public:
    enum class Severity : int32_t {
        kINTERNAL_ERROR = 0,
        kERROR = 1,
        kWARNING = 2,
        kINFO = 3,
        kVERBOSE = 4
    };
    virtual void log(Severity severity, const AsciiChar *msg) = 0;
    ILogger() = default;
    virtual ~ILogger() = default;
};

// Given to libraries that export setLoggerFinder.
class ILoggerFinder {
public:
    virtual ILogger *findLogger() = 0;
    virtual ~ILoggerFinder() = default;
};

class IErrorRecorder {
public:
    using ErrorDesc = const char *;
    using RefCount = int32_t;
    static constexpr size_t kMAX_DESC_LENGTH = 127U;
    virtual int32_t getNbErrors() const = 0;
    virtual ErrorCode getErrorCode(int32_t errorIdx) const = 0;
    virtual ErrorDesc getErrorDesc(int32_t errorIdx) const = 0;
    virtual bool hasOverflowed() const = 0;
    virtual void clear() = 0;
    virtual bool reportError(ErrorCode val, ErrorDesc desc) = 0;
    virtual RefCount incRefCount() = 0;
    virtual RefCount decRefCount() = 0;
    virtual ~IErrorRecorder() = default;
};

using AllocatorFlags = uint32_t;
enum class AllocatorFlag : int32_t { kRESIZABLE = 0 };

// Accepted wherever TensorRT takes one, and not asked: memory here is the host's.
class IGpuAllocator {
public:
    virtual ~IGpuAllocator() = default;
    virtual void *allocate(uint64_t size, uint64_t alignment, AllocatorFlags flags) = 0;
    virtual void *reallocate(void *, uint64_t, uint64_t) { return nullptr; }
    virtual bool deallocate(void *) { return false; }
    virtual void free(void *) {}
    virtual void *allocateAsync(uint64_t size, uint64_t alignment, AllocatorFlags flags,
                                cudaStream_t) {
        return allocate(size, alignment, flags);
    }
    virtual bool deallocateAsync(void *memory, cudaStream_t) { return deallocate(memory); }
    virtual APILanguage getAPILanguage() const { return APILanguage::kCPP; }
    virtual InterfaceInfo getInterfaceInfo() const { return InterfaceInfo{"IGpuAllocator", 1, 0}; }
};

class IGpuAsyncAllocator : public IGpuAllocator {
public:
    void *allocate(uint64_t size, uint64_t alignment, AllocatorFlags flags) override {
        return allocateAsync(size, alignment, flags, nullptr);
    }
    bool deallocate(void *memory) override { return deallocateAsync(memory, nullptr); }
    void *allocateAsync(uint64_t size, uint64_t alignment, AllocatorFlags flags,
                        cudaStream_t stream) override = 0;
    bool deallocateAsync(void *memory, cudaStream_t stream) override = 0;
    InterfaceInfo getInterfaceInfo() const override {
        return InterfaceInfo{"IGpuAsyncAllocator", 1, 0};
    }
};

// Asked for memory of outputs whose sizes are known only after the run.
class IOutputAllocator {
public:
    virtual int32_t getInterfaceVersion() const { return 1; }
    virtual void *reallocateOutput(const char *tensorName, void *currentMemory, uint64_t size,
                                   uint64_t alignment) {
        (void)tensorName, (void)size, (void)alignment;
        return currentMemory;
    }
    virtual void *reallocateOutputAsync(const char *tensorName, void *currentMemory, uint64_t size,
                                        uint64_t alignment, cudaStream_t) {
        return reallocateOutput(tensorName, currentMemory, size, alignment);
    }
    virtual void notifyShape(const char *tensorName, const Dims &dims) = 0;
    virtual ~IOutputAllocator() = default;
};

// Gives the bytes of an engine; fewer than were asked for, or none, at the end.
class IStreamReader : public IVersionedInterface {
public:
    virtual int64_t read(void *destination, int64_t nbBytes) = 0;
};

enum class SeekPosition : int32_t { kSET = 0, kCUR = 1, kEND = 2 };

class IStreamReaderV2 : public IVersionedInterface {
public:
    virtual int64_t read(void *destination, int64_t nbBytes, cudaStream_t stream) = 0;
    virtual bool seek(int64_t offset, SeekPosition where) = 0;
};

class IProfiler {
public:
    virtual void reportLayerTime(const char *layerName, float ms) = 0;
    virtual ~IProfiler() = default;
};

}  // namespace nvinfer1

namespace headrace {
inline namespace HEADRACE_GENERATION {

struct LoggerCalls {
    static void log(void *self, int32_t severity, const char *text) {
        static_cast<nvinfer1::ILogger *>(self)->log(
            static_cast<nvinfer1::ILogger::Severity>(severity), text);
    }
};

// The host's logger, where a source asks a builder for its own.
class HostLogger : public nvinfer1::ILogger {
public:
    explicit HostLogger(headrace_object *object) : object_(object) {}
    void log(Severity severity, const char *text) override {
        Value arguments[2] = {Value(static_cast<int>(severity)), Value(text)};
        headrace_value result = {};
        if (const headrace_host *h = host()) h->call(object_, "log", arguments, 2, &result);
    }
    headrace_object *object() const { return object_; }

private:
    headrace_object *object_;
};

// A logger that came from getLogger goes back as the same object; others are called.
struct LoggerValue {
    headrace_logger_calls calls;
    nvinfer1::ILogger *logger;
    explicit LoggerValue(nvinfer1::ILogger *given) : calls(), logger(given) {
        calls.size = sizeof(calls);
        calls.log = &LoggerCalls::log;
    }
    Value value() const { return Value::foreign(HEADRACE_LOGGER, logger, &calls); }
};

// Where a source has no builder to ask: what it logs becomes messages of the library.
inline nvinfer1::ILogger *programLogger() {
    class Telling : public nvinfer1::ILogger {
        void log(Severity severity, const char *text) override {
            if (const headrace_host *h = host()) h->tell(static_cast<int32_t>(severity), text);
        }
    };
    static Telling one;
    return &one;
}

inline nvinfer1::ILogger *getLogger(const Object *owner) {
    const headrace_host *h = host();
    headrace_value result = {};
    if (!h || !h->get(owner->headraceObject(), "logger", &result)) return nullptr;
    if (result.kind == HEADRACE_LOGGER)
        return static_cast<nvinfer1::ILogger *>(const_cast<void *>(result.data));
    if (result.kind != HEADRACE_OBJECT) return nullptr;
    return standIn<HostLogger>(static_cast<headrace_object *>(const_cast<void *>(result.data)));
}

}  // namespace HEADRACE_GENERATION
}  // namespace headrace

#endif  // HEADRACE_TRT_LOGGER_H
