// Networks by code.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_NETWORK_H
#define HEADRACE_TRT_NETWORK_H

#include "loops.h"
#include "registry.h"

namespace nvinfer1 {

class IBuilder;

using NetworkDefinitionCreationFlags = uint32_t;
enum class NetworkDefinitionCreationFlag : int32_t {
    kEXPLICIT_BATCH = 0,
    kSTRONGLY_TYPED = 1,
    kEXPLICIT_PRECISION = 2
};

class INetworkDefinition : public headrace::Object {
public:
    void destroy() { delete this; }

    void setName(const char *name) { headrace::set(this, "name", name); }
    HEADRACE_GET(const char *, getName, "name")
    HEADRACE_GET(int32_t, getNbInputs, "num_inputs")
    HEADRACE_GET(int32_t, getNbOutputs, "num_outputs")
    HEADRACE_GET(int32_t, getNbLayers, "num_layers")
    HEADRACE_GET(bool, hasImplicitBatchDimension, "has_implicit_batch_dimension")
    HEADRACE_GET(NetworkDefinitionCreationFlags, getFlags, "flags")
    bool getFlag(NetworkDefinitionCreationFlag flag) const {
        return (getFlags() >> static_cast<int32_t>(flag)) & 1U;
    }
    bool hasExplicitPrecision() const { return false; }
    ITensor *getInput(int32_t index) const {
        return headrace::call<ITensor *>(this, "get_input", {index});
    }
    ITensor *getOutput(int32_t index) const {
        return headrace::call<ITensor *>(this, "get_output", {index});
    }
    ILayer *getLayer(int32_t index) const {
        return headrace::call<ILayer *>(this, "get_layer", {index});
    }
    ITensor *addInput(const char *name, DataType type, const Dims &dimensions) {
        return headrace::call<ITensor *>(this, "add_input", {name, type, dimensions});
    }
    void markOutput(ITensor &tensor) { headrace::call<void>(this, "mark_output", {tensor}); }
    void unmarkOutput(ITensor &tensor) { headrace::call<void>(this, "unmark_output", {tensor}); }
    bool markOutputForShapes(ITensor &tensor) {
        return headrace::call<bool>(this, "mark_output_for_shapes", {tensor});
    }
    void removeTensor(ITensor &tensor) { headrace::call<void>(this, "remove_tensor", {tensor}); }
    bool setWeightsName(Weights weights, const char *name) {
        return headrace::call<bool>(this, "set_weights_name", {weights, name});
    }
    void setErrorRecorder(IErrorRecorder *) {}
    IErrorRecorder *getErrorRecorder() const { return nullptr; }
    IBuilder &getBuilder() const;

// Layer *name(parameters): the host's function of that name with those arguments.
#define HEADRACE_ADD(Layer, name, method, parameters, ...) \
    Layer *name parameters { return headrace::call<Layer *>(this, method, {__VA_ARGS__}); }

    HEADRACE_ADD(IConvolutionLayer, addConvolutionNd, "add_convolution_nd",
                 (ITensor & input, int64_t maps, const Dims &size, Weights kernel, Weights bias),
                 input, maps, size, kernel, bias)
    HEADRACE_ADD(IConvolutionLayer, addConvolution, "add_convolution_nd",
                 (ITensor & input, int32_t maps, DimsHW size, Weights kernel, Weights bias), input,
                 maps, size, kernel, bias)
    HEADRACE_ADD(IDeconvolutionLayer, addDeconvolutionNd, "add_deconvolution_nd",
                 (ITensor & input, int64_t maps, const Dims &size, Weights kernel, Weights bias),
                 input, maps, size, kernel, bias)
    HEADRACE_ADD(IDeconvolutionLayer, addDeconvolution, "add_deconvolution_nd",
                 (ITensor & input, int32_t maps, DimsHW size, Weights kernel, Weights bias), input,
                 maps, size, kernel, bias)
    HEADRACE_ADD(IFullyConnectedLayer, addFullyConnected, "add_fully_connected",
                 (ITensor & input, int32_t outputs, Weights kernel, Weights bias), input, outputs,
                 kernel, bias)
    HEADRACE_ADD(IActivationLayer, addActivation, "add_activation",
                 (ITensor & input, ActivationType type), input, type)
    HEADRACE_ADD(IPoolingLayer, addPoolingNd, "add_pooling_nd",
                 (ITensor & input, PoolingType type, const Dims &size), input, type, size)
    HEADRACE_ADD(IPoolingLayer, addPooling, "add_pooling_nd",
                 (ITensor & input, PoolingType type, DimsHW size), input, type, size)
    HEADRACE_ADD(ILRNLayer, addLRN, "add_lrn",
                 (ITensor & input, int64_t window, float alpha, float beta, float k), input, window,
                 alpha, beta, k)
    HEADRACE_ADD(IScaleLayer, addScale, "add_scale",
                 (ITensor & input, ScaleMode mode, Weights shift, Weights scale, Weights power),
                 input, mode, shift, scale, power)
    HEADRACE_ADD(IScaleLayer, addScaleNd, "add_scale_nd",
                 (ITensor & input, ScaleMode mode, Weights shift, Weights scale, Weights power,
                  int32_t channelAxis),
                 input, mode, shift, scale, power, channelAxis)
    HEADRACE_ADD(ISoftMaxLayer, addSoftMax, "add_softmax", (ITensor & input), input)
    HEADRACE_ADD(IConcatenationLayer, addConcatenation, "add_concatenation",
                 (ITensor *const *inputs, int32_t count), headrace::Value::objects(inputs, count))
    HEADRACE_ADD(IElementWiseLayer, addElementWise, "add_elementwise",
                 (ITensor & first, ITensor &second, ElementWiseOperation op), first, second, op)
    HEADRACE_ADD(IUnaryLayer, addUnary, "add_unary", (ITensor & input, UnaryOperation op), input,
                 op)
    HEADRACE_ADD(IShuffleLayer, addShuffle, "add_shuffle", (ITensor & input), input)
    HEADRACE_ADD(IReduceLayer, addReduce, "add_reduce",
                 (ITensor & input, ReduceOperation op, uint32_t axes, bool keep), input, op, axes,
                 keep)
    HEADRACE_ADD(ITopKLayer, addTopK, "add_topk",
                 (ITensor & input, TopKOperation op, int32_t k, uint32_t axes), input, op, k, axes)
    HEADRACE_ADD(IGatherLayer, addGather, "add_gather",
                 (ITensor & data, ITensor &indices, int32_t axis), data, indices, axis)
    HEADRACE_ADD(IGatherLayer, addGatherV2, "add_gather_v2",
                 (ITensor & data, ITensor &indices, GatherMode mode), data, indices, mode)
    HEADRACE_ADD(IScatterLayer, addScatter, "add_scatter",
                 (ITensor & data, ITensor &indices, ITensor &updates, ScatterMode mode), data,
                 indices, updates, mode)
    HEADRACE_ADD(IMatrixMultiplyLayer, addMatrixMultiply, "add_matrix_multiply",
                 (ITensor & first, MatrixOperation op0, ITensor &second, MatrixOperation op1),
                 first, op0, second, op1)
    IMatrixMultiplyLayer *addMatrixMultiply(ITensor &first, bool transpose0, ITensor &second,
                                            bool transpose1) {
        return addMatrixMultiply(
            first, transpose0 ? MatrixOperation::kTRANSPOSE : MatrixOperation::kNONE, second,
            transpose1 ? MatrixOperation::kTRANSPOSE : MatrixOperation::kNONE);
    }
    HEADRACE_ADD(IConstantLayer, addConstant, "add_constant",
                 (const Dims &dimensions, Weights weights), dimensions, weights)
    HEADRACE_ADD(IIdentityLayer, addIdentity, "add_identity", (ITensor & input), input)
    HEADRACE_ADD(ICastLayer, addCast, "add_cast", (ITensor & input, DataType type), input, type)
    HEADRACE_ADD(ISliceLayer, addSlice, "add_slice",
                 (ITensor & input, const Dims &start, const Dims &size, const Dims &stride), input,
                 start, size, stride)
    HEADRACE_ADD(IShapeLayer, addShape, "add_shape", (ITensor & input), input)
    HEADRACE_ADD(IParametricReLULayer, addParametricReLU, "add_parametric_relu",
                 (ITensor & input, ITensor &slope), input, slope)
    HEADRACE_ADD(IPaddingLayer, addPaddingNd, "add_padding_nd",
                 (ITensor & input, const Dims &pre, const Dims &post), input, pre, post)
    HEADRACE_ADD(IPaddingLayer, addPadding, "add_padding_nd",
                 (ITensor & input, DimsHW pre, DimsHW post), input, pre, post)
    HEADRACE_ADD(IResizeLayer, addResize, "add_resize", (ITensor & input), input)
    HEADRACE_ADD(ISelectLayer, addSelect, "add_select",
                 (ITensor & condition, ITensor &yes, ITensor &no), condition, yes, no)
    HEADRACE_ADD(IFillLayer, addFill, "add_fill", (const Dims &dimensions, FillOperation op),
                 dimensions, op)
    HEADRACE_ADD(IQuantizeLayer, addQuantize, "add_quantize", (ITensor & input, ITensor &scale),
                 input, scale)
    HEADRACE_ADD(IDequantizeLayer, addDequantize, "add_dequantize",
                 (ITensor & input, ITensor &scale), input, scale)
    HEADRACE_ADD(IEinsumLayer, addEinsum, "add_einsum",
                 (ITensor *const *inputs, int32_t count, const char *equation),
                 headrace::Value::objects(inputs, count), equation)
    HEADRACE_ADD(INMSLayer, addNMS, "add_nms", (ITensor & boxes, ITensor &scores, ITensor &most),
                 boxes, scores, most)
    HEADRACE_ADD(IGridSampleLayer, addGridSample, "add_grid_sample",
                 (ITensor & input, ITensor &grid), input, grid)
    HEADRACE_ADD(INormalizationLayer, addNormalization, "add_normalization",
                 (ITensor & input, ITensor &scale, ITensor &bias, uint32_t axes), input, scale,
                 bias, axes)
    HEADRACE_ADD(INonZeroLayer, addNonZero, "add_non_zero", (ITensor & input), input)
    HEADRACE_ADD(IOneHotLayer, addOneHot, "add_one_hot",
                 (ITensor & indices, ITensor &values, ITensor &depth, int32_t axis), indices,
                 values, depth, axis)
    HEADRACE_ADD(IAssertionLayer, addAssertion, "add_assertion",
                 (ITensor & condition, const char *message), condition, message)
    HEADRACE_ADD(IReverseSequenceLayer, addReverseSequence, "add_reverse_sequence",
                 (ITensor & input, ITensor &lengths), input, lengths)
#undef HEADRACE_ADD

    ILoop *addLoop() { return headrace::call<ILoop *>(this, "add_loop"); }
    IIfConditional *addIfConditional() {
        return headrace::call<IIfConditional *>(this, "add_if_conditional");
    }

    // The plugin is copied at once.
    IPluginV2Layer *addPluginV2(ITensor *const *inputs, int32_t nbInputs, IPluginV2 &plugin) {
        const headrace_plugin described = headrace::describe(&plugin);
        return headrace::call<IPluginV2Layer *>(
            this, "add_plugin_v2",
            {headrace::Value::objects(inputs, nbInputs), headrace::pluginValue(described)});
    }
    IPluginV2Layer *addPluginExt(ITensor *const *inputs, int32_t nbInputs, IPluginV2 &plugin) {
        return addPluginV2(inputs, nbInputs, plugin);
    }
    // Up to 7: the plugin is not copied and stays the caller's, for as long as an engine needs it.
    IPluginLayer *addPlugin(ITensor *const *inputs, int32_t nbInputs, IPlugin &plugin) {
        return addLegacy(inputs, nbInputs, headrace::describe(&plugin, false));
    }
    IPluginLayer *addPluginExt(ITensor *const *inputs, int32_t nbInputs, IPluginExt &plugin) {
        return addLegacy(inputs, nbInputs, headrace::describe(&plugin, true));
    }
    IPluginV3Layer *addPluginV3(ITensor *const *inputs, int32_t nbInputs,
                                ITensor *const *shapeInputs, int32_t nbShapeInputs,
                                IPluginV3 &plugin) {
        const headrace_plugin described = headrace::describe(&plugin);
        return headrace::call<IPluginV3Layer *>(
            this, "add_plugin_v3",
            {headrace::Value::objects(inputs, nbInputs),
             headrace::Value::objects(shapeInputs, nbShapeInputs),
             headrace::pluginValue(described)});
    }

private:
    INetworkDefinition() = delete;
    IPluginLayer *addLegacy(ITensor *const *inputs, int32_t nbInputs,
                            const headrace_plugin &shown) {
        IPluginLayer *made = headrace::call<IPluginLayer *>(
            this, "add_plugin_v2",
            {headrace::Value::objects(inputs, nbInputs), headrace::pluginValue(shown)});
        if (shown.owned) shown.v2.destroy(shown.self);
        return made;
    }
};

}  // namespace nvinfer1

#endif  // HEADRACE_TRT_NETWORK_H
