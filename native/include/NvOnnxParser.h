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
    kUNSUPPORTED_NODE = 8,
    kUNSUPPORTED_NODE_ATTR = 9,
    kUNSUPPORTED_NODE_INPUT = 10,
    kUNSUPPORTED_NODE_DATATYPE = 11,
    kUNSUPPORTED_NODE_DYNAMIC = 12,
    kUNSUPPORTED_NODE_SHAPE = 13,
    kREFIT_FAILED = 14
};

using OnnxParserFlags = uint32_t;
enum class OnnxParserFlag : int32_t {
    kNATIVE_INSTANCENORM = 0,
    kENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA = 1,
    kREPORT_CAPABILITY_DLA = 2,
    kENABLE_PLUGIN_OVERRIDE = 3,
    kADJUST_FOR_DLA = 4
};

// Numbers of the nodes that belong together, and whether all of them can be parsed.
using SubGraph_t = std::pair<std::vector<size_t>, bool>;
using SubGraphCollection_t = std::vector<SubGraph_t>;

}  // namespace nvonnxparser

namespace headrace {
inline namespace HEADRACE_GENERATION {
template <>
struct EnumName<nvonnxparser::OnnxParserFlag> {
    static const char *text() { return "OnnxParserFlag"; }
};
}  // namespace HEADRACE_GENERATION
}  // namespace headrace

namespace nvonnxparser {

class IParserError : public headrace::Object {
public:
    ErrorCode code() const { return headrace::call<ErrorCode>(this, "code"); }
    const char *desc() const { return headrace::call<const char *>(this, "desc"); }
    const char *file() const { return headrace::call<const char *>(this, "file"); }
    int line() const { return headrace::call<int>(this, "line"); }
    const char *func() const { return headrace::call<const char *>(this, "func"); }
    int node() const { return headrace::call<int>(this, "node"); }
    const char *nodeName() const { return headrace::call<const char *>(this, "node_name"); }
    const char *nodeOperator() const { return headrace::call<const char *>(this, "node_operator"); }
    int32_t localFunctionStackSize() const {
        return headrace::call<int32_t>(this, "local_function_stack_size");
    }
    // Functions of the model around the node, until the next call.
    const char *const *localFunctionStack() const {
        static headrace::Items<const char *> names(0);
        const int32_t count = localFunctionStackSize();
        headrace::Items<const char *> texts(count);
        for (int32_t i = 0; i < count; ++i)
            texts[i] =
                headrace::call<const char *>(nullptr, "stack_at", {headrace::Value(this), i});
        names.swap(texts);
        return names.data();
    }

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
    HEADRACE_PROPERTY(OnnxParserFlags, getFlags, setFlags, "flags")
    HEADRACE_CALL(void, setFlag(OnnxParserFlag flag), "set_flag", flag)
    HEADRACE_CALL(void, clearFlag(OnnxParserFlag flag), "clear_flag", flag)
    HEADRACE_CALL(bool, getFlag(OnnxParserFlag flag) const, "get_flag", flag)
    HEADRACE_CALL(bool, parseWithWeightDescriptors(const void *model, size_t size),
                  "parse_with_weight_descriptors", headrace::Value::bytes(model, size))
    bool supportsModel(const void *model, size_t size, SubGraphCollection_t &found,
                       const char *path = nullptr) {
        const bool all = supportsModelV2(model, size, path);
        const int64_t count = getNbSubgraphs();
        for (int64_t i = 0; i < count; ++i) {
            int64_t length = 0;
            const int64_t *nodes = getSubgraphNodes(i, length);
            found.emplace_back(std::vector<size_t>(nodes, nodes + length), isSubgraphSupported(i));
        }
        return all;
    }
    HEADRACE_CALL(bool, supportsModelV2(const void *model, size_t size, const char *path = nullptr),
                  "supports_model_v2", headrace::Value::bytes(model, size), path)
    HEADRACE_GET(int64_t, getNbSubgraphs, "num_subgraphs")
    HEADRACE_CALL(bool, isSubgraphSupported(int64_t index), "is_subgraph_supported", index)
    // Until the next call for the same parser and index.
    int64_t *getSubgraphNodes(int64_t index, int64_t &length) {
        return const_cast<int64_t *>(headrace::numbersFrom<int64_t>(
            headrace::callValue(nullptr, "subgraph_nodes", {headrace::Value(this), index}),
            &length));
    }
    // Plugins come from the registry: the parser loads no libraries.
    const char *const *getUsedVCPluginLibraries(int64_t &count) const {
        count = 0;
        return nullptr;
    }
    const nvinfer1::ITensor *getLayerOutputTensor(const char *name, int64_t i) {
        return headrace::call<nvinfer1::ITensor *>(this, "get_layer_output_tensor", {name, i});
    }
    // A model in parts: the graph first, then its initialisers, then the layers.
    HEADRACE_CALL(bool, loadModelProto(const void *model, size_t size, const char *path = nullptr),
                  "load_model_proto", headrace::Value::bytes(model, size), path)
    HEADRACE_CALL(bool, loadInitializer(const char *name, const void *data, size_t size),
                  "load_initializer", name, headrace::Value::address(data), size)
    bool parseModelProto() { return headrace::call<bool>(this, "parse_model_proto"); }
    HEADRACE_CALL(bool, setBuilderConfig(const nvinfer1::IBuilderConfig *config),
                  "set_builder_config", config)
    // Up to 7.2: the names of weights by layer and role, until the next call.
    int getRefitMap(const char **weightNames, const char **layerNames,
                    nvinfer1::WeightsRole *roles) {
        const int count = headrace::call<int>(nullptr, "count_refit_map", {headrace::Value(this)});
        for (int i = 0; i < count; ++i) {
            if (weightNames) weightNames[i] = refitText(i, 0);
            if (layerNames) layerNames[i] = refitText(i, 1);
            if (roles)
                roles[i] = headrace::call<nvinfer1::WeightsRole>(nullptr, "refit_map_at",
                                                                 {headrace::Value(this), i, 2});
        }
        return count;
    }

private:
    IParser() = delete;
    const char *refitText(int index, int column) {
        return headrace::call<const char *>(nullptr, "refit_map_at",
                                            {headrace::Value(this), index, column});
    }
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
    HEADRACE_CALL(bool, loadModelProto(const void *model, size_t size, const char *path = nullptr),
                  "load_model_proto", headrace::Value::bytes(model, size), path)
    HEADRACE_CALL(bool, loadInitializer(const char *name, const void *data, size_t size),
                  "load_initializer", name, headrace::Value::address(data), size)
    bool refitModelProto() noexcept { return headrace::call<bool>(this, "refit_model_proto"); }

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
