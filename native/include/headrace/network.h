// Networks by code.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_NETWORK_H
#define HEADRACE_TRT_NETWORK_H

#include "loops.h"
#include "recurrent.h"
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

    HEADRACE_PROPERTY(const char *, getName, setName, "name")
    HEADRACE_GET(int32_t, getNbInputs, "num_inputs")
    HEADRACE_GET(int32_t, getNbOutputs, "num_outputs")
    HEADRACE_GET(int32_t, getNbLayers, "num_layers")
    HEADRACE_GET(bool, hasImplicitBatchDimension, "has_implicit_batch_dimension")
    NetworkDefinitionCreationFlags getFlags() const {
        return headrace::call<NetworkDefinitionCreationFlags>(nullptr, "network_flags",
                                                              {headrace::Value(this)});
    }
    bool getFlag(NetworkDefinitionCreationFlag flag) const {
        return (getFlags() >> static_cast<int32_t>(flag)) & 1U;
    }
    bool hasExplicitPrecision() const {
        return getFlag(NetworkDefinitionCreationFlag::kEXPLICIT_PRECISION);
    }
    bool usingStronglyTyped() const {
        return getFlag(NetworkDefinitionCreationFlag::kSTRONGLY_TYPED);
    }
    HEADRACE_CALL(ITensor *, getInput(int32_t index) const, "get_input", index)
    HEADRACE_CALL(ITensor *, getOutput(int32_t index) const, "get_output", index)
    HEADRACE_CALL(ILayer *, getLayer(int32_t index) const, "get_layer", index)
    HEADRACE_CALL(ITensor *, addInput(const char *name, DataType type, const Dims &dimensions),
                  "add_input", name, type, dimensions)
    void markOutput(ITensor &tensor) { headrace::call<void>(this, "mark_output", {tensor}); }
    void unmarkOutput(ITensor &tensor) { headrace::call<void>(this, "unmark_output", {tensor}); }
    HEADRACE_CALL(bool, markOutputForShapes(ITensor &tensor), "mark_output_for_shapes", tensor)
    HEADRACE_CALL(bool, unmarkOutputForShapes(ITensor &tensor), "unmark_output_for_shapes", tensor)
    HEADRACE_CALL(bool, markDebug(ITensor &tensor), "mark_debug", tensor)
    HEADRACE_CALL(bool, unmarkDebug(ITensor &tensor), "unmark_debug", tensor)
    HEADRACE_CALL(bool, isDebugTensor(const ITensor &tensor) const, "is_debug_tensor", tensor)
    bool markUnfusedTensorsAsDebugTensors() {
        return headrace::call<bool>(this, "mark_unfused_tensors_as_debug_tensors");
    }
    bool unmarkUnfusedTensorsAsDebugTensors() {
        return headrace::call<bool>(this, "unmark_unfused_tensors_as_debug_tensors");
    }
    HEADRACE_CALL(bool, markWeightsRefittable(const char *name), "mark_weights_refittable", name)
    HEADRACE_CALL(bool, unmarkWeightsRefittable(const char *name), "unmark_weights_refittable",
                  name)
    HEADRACE_CALL(bool, areWeightsMarkedRefittable(const char *name) const,
                  "are_weights_marked_refittable", name)
    void removeTensor(ITensor &tensor) { headrace::call<void>(this, "remove_tensor", {tensor}); }
    HEADRACE_CALL(bool, setWeightsName(Weights weights, const char *name), "set_weights_name",
                  weights, name)
    HEADRACE_RECORDER
    IBuilder &getBuilder() const;

    HEADRACE_CALL(IConvolutionLayer *,
                  addConvolutionNd(ITensor &input, int64_t maps, const Dims &size, Weights kernel,
                                   Weights bias),
                  "add_convolution_nd", input, maps, size, kernel, bias)
    HEADRACE_CALL(IConvolutionLayer *,
                  addConvolution(ITensor &input, int32_t maps, DimsHW size, Weights kernel,
                                 Weights bias),
                  "add_convolution_nd", input, maps, size, kernel, bias)
    HEADRACE_CALL(IDeconvolutionLayer *,
                  addDeconvolutionNd(ITensor &input, int64_t maps, const Dims &size, Weights kernel,
                                     Weights bias),
                  "add_deconvolution_nd", input, maps, size, kernel, bias)
    HEADRACE_CALL(IDeconvolutionLayer *,
                  addDeconvolution(ITensor &input, int32_t maps, DimsHW size, Weights kernel,
                                   Weights bias),
                  "add_deconvolution_nd", input, maps, size, kernel, bias)
    HEADRACE_CALL(IFullyConnectedLayer *,
                  addFullyConnected(ITensor &input, int32_t outputs, Weights kernel, Weights bias),
                  "add_fully_connected", input, outputs, kernel, bias)
    HEADRACE_CALL(IActivationLayer *, addActivation(ITensor &input, ActivationType type),
                  "add_activation", input, type)
    HEADRACE_CALL(IPoolingLayer *, addPoolingNd(ITensor &input, PoolingType type, const Dims &size),
                  "add_pooling_nd", input, type, size)
    HEADRACE_CALL(IPoolingLayer *, addPooling(ITensor &input, PoolingType type, DimsHW size),
                  "add_pooling_nd", input, type, size)
    HEADRACE_CALL(ILRNLayer *,
                  addLRN(ITensor &input, int64_t window, float alpha, float beta, float k),
                  "add_lrn", input, window, alpha, beta, k)
    HEADRACE_CALL(IScaleLayer *,
                  addScale(ITensor &input, ScaleMode mode, Weights shift, Weights scale,
                           Weights power),
                  "add_scale", input, mode, shift, scale, power)
    HEADRACE_CALL(IScaleLayer *,
                  addScaleNd(ITensor &input, ScaleMode mode, Weights shift, Weights scale,
                             Weights power, int32_t channelAxis),
                  "add_scale_nd", input, mode, shift, scale, power, channelAxis)
    HEADRACE_CALL(ISoftMaxLayer *, addSoftMax(ITensor &input), "add_softmax", input)
    HEADRACE_CALL(IConcatenationLayer *, addConcatenation(ITensor *const *inputs, int32_t count),
                  "add_concatenation", headrace::Value::objects(inputs, count))
    HEADRACE_CALL(IElementWiseLayer *,
                  addElementWise(ITensor &first, ITensor &second, ElementWiseOperation op),
                  "add_elementwise", first, second, op)
    HEADRACE_CALL(IUnaryLayer *, addUnary(ITensor &input, UnaryOperation op), "add_unary", input,
                  op)
    HEADRACE_CALL(IShuffleLayer *, addShuffle(ITensor &input), "add_shuffle", input)
    HEADRACE_CALL(IReduceLayer *,
                  addReduce(ITensor &input, ReduceOperation op, uint32_t axes, bool keep),
                  "add_reduce", input, op, axes, keep)
    HEADRACE_CALL(ITopKLayer *, addTopK(ITensor &input, TopKOperation op, int32_t k, uint32_t axes),
                  "add_topk", input, op, k, axes)
    HEADRACE_CALL(IGatherLayer *, addGather(ITensor &data, ITensor &indices, int32_t axis),
                  "add_gather", data, indices, axis)
    HEADRACE_CALL(IGatherLayer *, addGatherV2(ITensor &data, ITensor &indices, GatherMode mode),
                  "add_gather_v2", data, indices, mode)
    HEADRACE_CALL(IScatterLayer *,
                  addScatter(ITensor &data, ITensor &indices, ITensor &updates, ScatterMode mode),
                  "add_scatter", data, indices, updates, mode)
    HEADRACE_CALL(IMatrixMultiplyLayer *,
                  addMatrixMultiply(ITensor &first, MatrixOperation op0, ITensor &second,
                                    MatrixOperation op1),
                  "add_matrix_multiply", first, op0, second, op1)
    IMatrixMultiplyLayer *addMatrixMultiply(ITensor &first, bool transpose0, ITensor &second,
                                            bool transpose1) {
        return addMatrixMultiply(
            first, transpose0 ? MatrixOperation::kTRANSPOSE : MatrixOperation::kNONE, second,
            transpose1 ? MatrixOperation::kTRANSPOSE : MatrixOperation::kNONE);
    }
    HEADRACE_CALL(IConstantLayer *, addConstant(const Dims &dimensions, Weights weights),
                  "add_constant", dimensions, weights)
    HEADRACE_CALL(IIdentityLayer *, addIdentity(ITensor &input), "add_identity", input)
    HEADRACE_CALL(ICastLayer *, addCast(ITensor &input, DataType type), "add_cast", input, type)
    HEADRACE_CALL(ISliceLayer *,
                  addSlice(ITensor &input, const Dims &start, const Dims &size, const Dims &stride),
                  "add_slice", input, start, size, stride)
    HEADRACE_CALL(IShapeLayer *, addShape(ITensor &input), "add_shape", input)
    HEADRACE_CALL(IParametricReLULayer *, addParametricReLU(ITensor &input, ITensor &slope),
                  "add_parametric_relu", input, slope)
    HEADRACE_CALL(IPaddingLayer *, addPaddingNd(ITensor &input, const Dims &pre, const Dims &post),
                  "add_padding_nd", input, pre, post)
    HEADRACE_CALL(IPaddingLayer *, addPadding(ITensor &input, DimsHW pre, DimsHW post),
                  "add_padding_nd", input, pre, post)
    HEADRACE_CALL(IResizeLayer *, addResize(ITensor &input), "add_resize", input)
    HEADRACE_CALL(ISelectLayer *, addSelect(ITensor &condition, ITensor &yes, ITensor &no),
                  "add_select", condition, yes, no)
    HEADRACE_CALL(IFillLayer *, addFill(const Dims &dimensions, FillOperation op), "add_fill",
                  dimensions, op)
    HEADRACE_CALL(IQuantizeLayer *, addQuantize(ITensor &input, ITensor &scale), "add_quantize",
                  input, scale)
    HEADRACE_CALL(IDequantizeLayer *, addDequantize(ITensor &input, ITensor &scale),
                  "add_dequantize", input, scale)
    HEADRACE_CALL(IEinsumLayer *,
                  addEinsum(ITensor *const *inputs, int32_t count, const char *equation),
                  "add_einsum", headrace::Value::objects(inputs, count), equation)
    HEADRACE_CALL(INMSLayer *, addNMS(ITensor &boxes, ITensor &scores, ITensor &most), "add_nms",
                  boxes, scores, most)
    HEADRACE_CALL(IGridSampleLayer *, addGridSample(ITensor &input, ITensor &grid),
                  "add_grid_sample", input, grid)
    HEADRACE_CALL(INormalizationLayer *,
                  addNormalization(ITensor &input, ITensor &scale, ITensor &bias, uint32_t axes),
                  "add_normalization", input, scale, bias, axes)
    HEADRACE_CALL(INonZeroLayer *, addNonZero(ITensor &input), "add_non_zero", input)
    HEADRACE_CALL(IOneHotLayer *,
                  addOneHot(ITensor &indices, ITensor &values, ITensor &depth, int32_t axis),
                  "add_one_hot", indices, values, depth, axis)
    HEADRACE_CALL(IAssertionLayer *, addAssertion(ITensor &condition, const char *message),
                  "add_assertion", condition, message)
    HEADRACE_CALL(IRaggedSoftMaxLayer *, addRaggedSoftMax(ITensor &input, ITensor &bounds),
                  "add_ragged_softmax", input, bounds)
    HEADRACE_CALL(ITopKLayer *,
                  addTopK(ITensor &input, TopKOperation op, int32_t k, uint32_t axes,
                          DataType indicesType),
                  "add_topk", input, op, k, axes, indicesType)
    HEADRACE_CALL(INonZeroLayer *, addNonZero(ITensor &input, DataType indicesType), "add_non_zero",
                  input, indicesType)
    HEADRACE_CALL(INMSLayer *,
                  addNMS(ITensor &boxes, ITensor &scores, ITensor &most, DataType indicesType),
                  "add_nms", boxes, scores, most, indicesType)
    HEADRACE_CALL(IFillLayer *,
                  addFill(const Dims &dimensions, FillOperation op, DataType outputType),
                  "add_fill", dimensions, op, outputType)
    HEADRACE_CALL(IQuantizeLayer *,
                  addQuantize(ITensor &input, ITensor &scale, DataType outputType), "add_quantize",
                  input, scale, outputType)
    HEADRACE_CALL(IDequantizeLayer *,
                  addDequantize(ITensor &input, ITensor &scale, DataType outputType),
                  "add_dequantize", input, scale, outputType)
    HEADRACE_CALL(IDynamicQuantizeLayer *,
                  addDynamicQuantize(ITensor &input, int32_t axis, int32_t blockSize,
                                     DataType outputType, DataType scaleType),
                  "add_dynamic_quantize", input, axis, blockSize, outputType, scaleType)
    HEADRACE_CALL(IDynamicQuantizeLayer *,
                  addDynamicQuantize(ITensor &input, const Dims &blockShape, DataType outputType,
                                     DataType scaleType),
                  "add_dynamic_quantize_v2", input, blockShape, outputType, scaleType)
    HEADRACE_CALL(INormalizationLayer *,
                  addNormalizationV2(ITensor &input, ITensor &scale, ITensor &bias, uint32_t axes),
                  "add_normalization_v2", input, scale, bias, axes)
    HEADRACE_CALL(ICumulativeLayer *,
                  addCumulative(ITensor &input, ITensor &axis, CumulativeOperation op,
                                bool exclusive, bool reverse),
                  "add_cumulative", input, axis, op, exclusive, reverse)
    HEADRACE_CALL(ISqueezeLayer *, addSqueeze(ITensor &input, ITensor &axes), "add_squeeze", input,
                  axes)
    HEADRACE_CALL(IUnsqueezeLayer *, addUnsqueeze(ITensor &input, ITensor &axes), "add_unsqueeze",
                  input, axes)
    HEADRACE_CALL(IAttention *,
                  addAttention(ITensor &query, ITensor &key, ITensor &value,
                               AttentionNormalizationOp op, bool causal),
                  "add_attention", query, key, value, op, causal)
    HEADRACE_CALL(IAttention *,
                  addAttention(ITensor &query, ITensor &key, ITensor &value,
                               AttentionNormalizationOp op, CausalMaskKind kind),
                  "add_attention_v2", query, key, value, op, kind)
    HEADRACE_CALL(IRotaryEmbeddingLayer *,
                  addRotaryEmbedding(ITensor &input, ITensor &cosines, ITensor &sines,
                                     bool interleaved, int32_t dim),
                  "add_rotary_embedding", input, cosines, sines, interleaved, dim)
    HEADRACE_CALL(IKVCacheUpdateLayer *,
                  addKVCacheUpdate(ITensor &cache, ITensor &update, ITensor &writeIndices,
                                   KVCacheMode mode),
                  "add_kv_cache_update", cache, update, writeIndices, mode)
    HEADRACE_REFUSED(IMoELayer *, addMoE(ITensor &, ITensor &, ITensor &),
                     "INetworkDefinition::addMoE", "10.16")
    HEADRACE_REFUSED(IDistCollectiveLayer *,
                     addDistCollective(ITensor &, CollectiveOperation, ReduceOperation, int64_t,
                                       int64_t *, int64_t),
                     "INetworkDefinition::addDistCollective", "10.16")
    HEADRACE_CALL(IReverseSequenceLayer *, addReverseSequence(ITensor &input, ITensor &lengths),
                  "add_reverse_sequence", input, lengths)

    ILoop *addLoop() { return headrace::call<ILoop *>(this, "add_loop"); }
    IIfConditional *addIfConditional() {
        return headrace::call<IIfConditional *>(this, "add_if_conditional");
    }

    HEADRACE_REFUSED(IRNNv2Layer *, addRNNv2(ITensor &, int32_t, int32_t, int32_t, RNNOperation),
                     "INetworkDefinition::addRNNv2", "5")
    HEADRACE_REFUSED(IRNNLayer *,
                     addRNN(ITensor &, int32_t, size_t, int32_t, RNNOperation, RNNInputMode,
                            RNNDirection, Weights, Weights),
                     "INetworkDefinition::addRNN", "5")

    // Up to 7: the extents of windows by a formula of the source; null is the default.
    HEADRACE_FORMULA(getPoolingOutputDimensionsFormula, setPoolingOutputDimensionsFormula,
                     "pooling")
    HEADRACE_FORMULA(getConvolutionOutputDimensionsFormula, setConvolutionOutputDimensionsFormula,
                     "convolution")
    HEADRACE_FORMULA(getDeconvolutionOutputDimensionsFormula,
                     setDeconvolutionOutputDimensionsFormula, "deconvolution")

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

inline IPluginV2 &IPluginV2Layer::getPlugin() { return *headrace::pluginOf<IPluginV2>(this); }
inline IPluginV3 &IPluginV3Layer::getPlugin() { return *headrace::pluginOf<IPluginV3>(this); }
inline IPlugin &IPluginLayer::getPlugin() {
    return headrace::LegacyPlugin::behind(headrace::pluginOf<IPluginV2>(this));
}

}  // namespace nvinfer1

#endif  // HEADRACE_TRT_NETWORK_H
