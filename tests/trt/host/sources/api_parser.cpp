// The ONNX parser, its errors, flags and subgraphs, and the refitter that reads models.
#include "NvOnnxParser.h"
#include "checks.h"

using namespace nvinfer1;
using namespace nvonnxparser;

namespace {

template <typename T>
using Held = std::unique_ptr<T>;

Log gLog;

struct Parsing {
    Held<IBuilder> builder{createInferBuilder(gLog)};
    Held<INetworkDefinition> net{builder->createNetworkV2(1)};
    Held<IParser> parser{createParser(*net, gLog)};
};

// `model` is sound: a convolution "conv" with weights "w" and "b", then a ReLU.
void parses(const std::string &model, const std::string &path, const std::string &) {
    Parsing one;
    IParser &parser = *one.parser;
    CHECK(parser.getFlag(OnnxParserFlag::kNATIVE_INSTANCENORM));
    parser.clearFlag(OnnxParserFlag::kNATIVE_INSTANCENORM);
    CHECK(!parser.getFlag(OnnxParserFlag::kNATIVE_INSTANCENORM) && parser.getFlags() == 0);
    parser.setFlag(OnnxParserFlag::kENABLE_PLUGIN_OVERRIDE);
    CHECK(parser.getFlags() == 8);
    KEEP(parser, Flags, 5U);
    KEEP(parser, Flags, 1U);
    CHECK(parser.supportsOperator("Conv") && !parser.supportsOperator("NoSuchOperator"));
    Held<IBuilderConfig> config(one.builder->createBuilderConfig());
    CHECK(parser.setBuilderConfig(config.get()));
    CHECK(parser.parse(model.data(), model.size()) && parser.getNbErrors() == 0);
    CHECK(one.net->getNbLayers() >= 2);
    const ITensor *made = parser.getLayerOutputTensor("conv", 0);
    CHECK(made && equal(made->getName(), "c") && !parser.getLayerOutputTensor("none", 0));
    int64_t libraries = -1;
    CHECK(!parser.getUsedVCPluginLibraries(libraries) && libraries == 0);
    const char *names[8] = {}, *layers[8] = {};
    WeightsRole roles[8] = {};
    CHECK(parser.getRefitMap(names, layers, roles) == 2);
    CHECK(equal(names[0], "w") && equal(layers[0], "conv") && roles[1] == WeightsRole::kBIAS);
    Parsing file, described;
    CHECK(file.parser->parseFromFile(path.c_str(), 0));
    CHECK(described.parser->parseWithWeightDescriptors(model.data(), model.size()));
}

// `broken`: one node that is sound, then one of an operator that is not there.
void fails(const std::string &, const std::string &, const std::string &broken) {
    Parsing one;
    IParser &parser = *one.parser;
    CHECK(!parser.parse(broken.data(), broken.size()) && parser.getNbErrors() == 1);
    const IParserError &error = *parser.getError(0);
    CHECK(error.node() == 1 && equal(error.nodeName(), "odd"));
    CHECK(equal(error.nodeOperator(), "NoSuchOperator"));
    CHECK(std::strstr(error.desc(), "NoSuchOperator"));
    CHECK(error.file()[0] && error.func()[0] && error.line() >= 0);
    CHECK(error.code() != nvonnxparser::ErrorCode::kSUCCESS);
    CHECK(error.localFunctionStackSize() == 0);
    error.localFunctionStack();
    parser.clearErrors();
    CHECK(parser.getNbErrors() == 0);
    SubGraphCollection_t graphs;
    CHECK(!parser.supportsModel(broken.data(), broken.size(), graphs));
    CHECK(graphs.size() == 2 && graphs[0].second && !graphs[1].second && graphs[1].first[0] == 1);
    CHECK(!parser.supportsModelV2(broken.data(), broken.size()) && parser.getNbSubgraphs() == 2);
    int64_t length = 0;
    const int64_t *nodes = parser.getSubgraphNodes(0, length);
    CHECK(length == 1 && nodes[0] == 0);
    CHECK(parser.isSubgraphSupported(0) && !parser.isSubgraphSupported(1));
}

// A model in parts, with other weights, and an engine that takes them.
void parts(const std::string &model, const std::string &path, const std::string &) {
    std::vector<float> kernel(4, 0.5f);
    Parsing one;
    CHECK(one.parser->loadModelProto(model.data(), model.size()));
    CHECK(one.parser->loadInitializer("w", kernel.data(), 16));
    CHECK(!one.parser->loadInitializer("none", kernel.data(), 16));
    CHECK(one.parser->parseModelProto());
    Held<IBuilderConfig> config(one.builder->createBuilderConfig());
    config->setFlag(BuilderFlag::kREFIT);
    Held<IHostMemory> plan(one.builder->buildSerializedNetwork(*one.net, *config));
    Held<IRuntime> runtime(createInferRuntime(gLog));
    Held<ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    Held<IRefitter> refitter(createInferRefitter(*engine, gLog));
    Held<IParserRefitter> reads(createParserRefitter(*refitter, gLog));
    CHECK(reads->refitFromBytes(model.data(), model.size()) && reads->refitFromFile(path.c_str()));
    CHECK(reads->loadModelProto(model.data(), model.size()));
    CHECK(reads->loadInitializer("w", kernel.data(), 16) && reads->refitModelProto());
    CHECK(!reads->refitFromFile("/no/such/model.onnx") && reads->getNbErrors() == 1);
    CHECK(reads->getError(0)->code() == nvonnxparser::ErrorCode::kREFIT_FAILED);
    reads->clearErrors();
    CHECK(reads->getNbErrors() == 0 && refitter->refitCudaEngine());
}

using Part = void (*)(const std::string &, const std::string &, const std::string &);
const Part kParts[] = {parses, fails, parts};

}  // namespace

extern "C" const char *check_parser(int part, const char *model, int size, const char *path,
                                    const char *broken, int broken_size) {
    failed().clear();
    kParts[part](std::string(model, size_t(size)), path, std::string(broken, size_t(broken_size)));
    return failed().c_str();
}
