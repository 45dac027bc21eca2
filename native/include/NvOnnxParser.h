// Networks from ONNX files. Part of headrace, Apache-2.0. Valid C++11.
#if defined(NV_INFER_H) && !defined(HEADRACE_NV_INFER_H) && !defined(NV_ONNX_PARSER_H)
// NVIDIA's own NvInfer.h was included first; only the name is needed then.
namespace nvonnxparser {
class IParser;
class IParserRefitter;
}  // namespace nvonnxparser
#elif !defined(HEADRACE_NV_ONNX_PARSER_H) && !defined(NV_ONNX_PARSER_H)
#define HEADRACE_NV_ONNX_PARSER_H
#define NV_ONNX_PARSER_H  // NVIDIA's own header, before or after this one, declares the same

#include "NvInfer.h"

#define NV_ONNX_PARSER_MAJOR 0
#define NV_ONNX_PARSER_MINOR 1
#define NV_ONNX_PARSER_PATCH 0

namespace nvonnxparser {

enum class ErrorCode : int {
    kSUCCESS = 0,
    kINTERNAL_ERROR = 1,
    kMEM_ALLOC_FAILED = 2,
    kMODEL_DESERIALIZE_FAILED = 3,
    kINVALID_VALUE = 4,
    kINVALID_GRAPH = 5,
    kINVALID_NODE = 6,
    kUNSUPPORTED_GRAPH = 7,
    kUNSUPPORTED_NODE = 8
};

using OnnxParserFlags = uint32_t;
enum class OnnxParserFlag : int32_t { kNATIVE_INSTANCENORM = 0 };

class IParserError : public headrace::Object {
public:
    ErrorCode code() const { return headrace::call<ErrorCode>(this, "code"); }
    const char *desc() const { return headrace::call<const char *>(this, "desc"); }
    const char *file() const { return headrace::call<const char *>(this, "file"); }
    int line() const { return headrace::call<int>(this, "line"); }
    const char *func() const { return headrace::call<const char *>(this, "func"); }
    int node() const { return headrace::call<int>(this, "node"); }

private:
    IParserError() = delete;
};

class IParser : public headrace::Object {
public:
    void destroy() { delete this; }
    HEADRACE_CALL(bool, parse(const void *model, size_t size, const char *path = nullptr), "parse",
                  headrace::Value::bytes(model, size), path)
    HEADRACE_CALL(bool, parseFromFile(const char *file, int /*verbosity*/ = 0), "parse_from_file",
                  file)
    HEADRACE_CALL(bool, supportsOperator(const char *name) const, "supports_operator", name)
    HEADRACE_GET(int, getNbErrors, "num_errors")
    const IParserError *getError(int index) const {
        return headrace::call<IParserError *>(this, "get_error", {index});
    }
    void clearErrors() { headrace::call<void>(this, "clear_errors"); }
    void setFlag(OnnxParserFlag) {}
    void clearFlag(OnnxParserFlag) {}
    bool getFlag(OnnxParserFlag) const { return true; }

private:
    IParser() = delete;
};

// Gives a refitter the weights of a model of the same graph.
class IParserRefitter : public headrace::Object {
public:
    bool refitFromFile(const char *file) noexcept {
        return headrace::call<bool>(this, "refit_from_file", {file});
    }
    bool refitFromBytes(const void *model, size_t size, const char *path = nullptr) noexcept {
        return headrace::call<bool>(this, "refit_from_bytes",
                                    {headrace::Value::bytes(model, size), path});
    }
    HEADRACE_GET(int32_t, getNbErrors, "num_errors")
    const IParserError *getError(int32_t index) {
        return headrace::call<IParserError *>(this, "get_error", {index});
    }
    void clearErrors() { headrace::call<void>(this, "clear_errors"); }

private:
    IParserRefitter() = delete;
};

inline IParserRefitter *createParserRefitter(nvinfer1::IRefitter &refitter,
                                             nvinfer1::ILogger &logger) {
    const headrace::LoggerValue given(&logger);
    return headrace::call<IParserRefitter *>(nullptr, "create_parser_refitter",
                                             {refitter, given.value()});
}

inline IParser *createParser(nvinfer1::INetworkDefinition &network, nvinfer1::ILogger &logger) {
    const headrace::LoggerValue given(&logger);
    return headrace::call<IParser *>(nullptr, "create_onnx_parser", {network, given.value()});
}

}  // namespace nvonnxparser

#endif  // HEADRACE_NV_ONNX_PARSER_H
