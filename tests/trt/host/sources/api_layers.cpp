// Every layer that a network can have, with all that can be set on it.
#include "checks.h"

using namespace nvinfer1;

namespace {

void windows(INetworkDefinition &net) {
    ITensor &x = *net.addInput("x", DataType::kFLOAT, dims({1, 4, 8, 8}));
    IConvolutionLayer &conv = *net.addConvolution(x, 4, DimsHW(3, 3), weights(144), weights(4));
    KEEP(conv, KernelSize, DimsHW(1, 3));
    KEEP(conv, KernelSizeNd, dims({3, 3}));
    KEEP(conv, NbOutputMaps, 2);
    KEEP(conv, NbOutputMaps, 4);
    KEEP(conv, Stride, DimsHW(2, 2));
    KEEP(conv, StrideNd, dims({1, 1}));
    KEEP(conv, Padding, DimsHW(1, 1));
    KEEP(conv, PaddingNd, dims({1, 2}));
    KEEP(conv, PrePadding, dims({1, 1}));
    KEEP(conv, PostPadding, dims({1, 1}));
    KEEP(conv, PaddingMode, PaddingMode::kEXPLICIT_ROUND_UP);
    KEEP(conv, PaddingMode, PaddingMode::kEXPLICIT_ROUND_DOWN);
    KEEP(conv, Dilation, DimsHW(2, 2));
    KEEP(conv, DilationNd, dims({1, 1}));
    KEEP(conv, NbGroups, 2);
    KEEP(conv, NbGroups, 1);
    KEEP(conv, KernelWeights, weights(144, 0.5f));
    KEEP(conv, BiasWeights, weights(4, 2.0f));
    CHECK(equal(conv.getOutput(0)->getDimensions(), dims({1, 4, 8, 8})));
    CHECK(conv.getType() == LayerType::kCONVOLUTION);

    IDeconvolutionLayer &up = *net.addDeconvolution(x, 3, DimsHW(2, 2), weights(48), weights(3));
    KEEP(up, KernelSize, DimsHW(1, 2));
    KEEP(up, KernelSizeNd, dims({2, 2}));
    KEEP(up, NbOutputMaps, 5);
    KEEP(up, NbOutputMaps, 3);
    KEEP(up, Stride, DimsHW(1, 1));
    KEEP(up, StrideNd, dims({2, 2}));
    KEEP(up, Padding, DimsHW(1, 1));
    KEEP(up, PaddingNd, dims({0, 0}));
    KEEP(up, PrePadding, dims({0, 1}));
    KEEP(up, PrePadding, dims({0, 0}));
    KEEP(up, PostPadding, dims({0, 0}));
    KEEP(up, PaddingMode, PaddingMode::kEXPLICIT_ROUND_DOWN);
    KEEP(up, DilationNd, dims({1, 1}));
    KEEP(up, NbGroups, 1);
    KEEP(up, KernelWeights, weights(48, 3.0f));
    KEEP(up, BiasWeights, weights(3, 2.0f));
    CHECK(equal(up.getOutput(0)->getDimensions(), dims({1, 3, 16, 16})));
    CHECK(net.addDeconvolutionNd(x, 3, dims({2, 2}), weights(48), weights(3)));

    IPoolingLayer &pool = *net.addPooling(x, PoolingType::kMAX, DimsHW(2, 2));
    KEEP(pool, PoolingType, PoolingType::kAVERAGE);
    KEEP(pool, WindowSize, DimsHW(3, 3));
    KEEP(pool, WindowSizeNd, dims({2, 2}));
    KEEP(pool, Stride, DimsHW(1, 1));
    KEEP(pool, StrideNd, dims({2, 2}));
    KEEP(pool, Padding, DimsHW(1, 1));
    KEEP(pool, PaddingNd, dims({0, 0}));
    KEEP(pool, PrePadding, dims({0, 0}));
    KEEP(pool, PostPadding, dims({0, 0}));
    KEEP(pool, PaddingMode, PaddingMode::kEXPLICIT_ROUND_DOWN);
    KEEP(pool, BlendFactor, 0.25f);
    KEEP(pool, AverageCountExcludesPadding, false);
    CHECK(equal(pool.getOutput(0)->getDimensions(), dims({1, 4, 4, 4})));

    IPaddingLayer &pad = *net.addPadding(x, DimsHW(1, 1), DimsHW(2, 2));
    KEEP(pad, PrePadding, DimsHW(0, 1));
    KEEP(pad, PostPadding, DimsHW(0, 2));
    KEEP(pad, PrePaddingNd, dims({1, 0}));
    KEEP(pad, PostPaddingNd, dims({1, 0}));
    CHECK(equal(pad.getOutput(0)->getDimensions(), dims({1, 4, 10, 8})));
    CHECK(net.addPaddingNd(x, dims({1, 1}), dims({1, 1})));

    IFullyConnectedLayer &full = *net.addFullyConnected(x, 2, weights(512), weights(2));
    KEEP(full, NbOutputChannels, 2);
    KEEP(full, KernelWeights, weights(512, 0.1f));
    KEEP(full, BiasWeights, weights(2, 4.0f));
    CHECK(full.getOutput(0)->getDimensions().d[1] == 2);
}

void elements(INetworkDefinition &net) {
    ITensor &x = *net.addInput("e", DataType::kFLOAT, dims({1, 4, 2, 2}));
    IActivationLayer &act = *net.addActivation(x, ActivationType::kRELU);
    KEEP(act, ActivationType, ActivationType::kCLIP);
    KEEP(act, Alpha, -0.5f);
    KEEP(act, Beta, 0.5f);
    IUnaryLayer &unary = *net.addUnary(x, UnaryOperation::kEXP);
    KEEP(unary, Operation, UnaryOperation::kABS);
    IElementWiseLayer &both = *net.addElementWise(x, x, ElementWiseOperation::kSUM);
    KEEP(both, Operation, ElementWiseOperation::kPROD);
    IScaleLayer &scale =
        *net.addScaleNd(x, ScaleMode::kCHANNEL, weights(4), weights(4), weights(0), 1);
    KEEP(scale, Mode, ScaleMode::kUNIFORM);
    KEEP(scale, Mode, ScaleMode::kCHANNEL);
    KEEP(scale, Shift, weights(4, 2.0f));
    KEEP(scale, Scale, weights(4, 3.0f));
    KEEP(scale, Power, weights(4, 1.0f));
    KEEP(scale, ChannelAxis, 1);
    ILRNLayer &lrn = *net.addLRN(x, 3, 1.0f, 0.5f, 2.0f);
    KEEP(lrn, WindowSize, 5);
    KEEP(lrn, Alpha, 0.5f);
    KEEP(lrn, Beta, 0.75f);
    KEEP(lrn, K, 1.5f);
    IConstantLayer &slopes = *net.addConstant(dims({1, 4, 1, 1}), weights(4));
    KEEP(slopes, Dimensions, dims({1, 4, 1, 1}));
    KEEP(slopes, Weights, weights(4, 0.5f));
    CHECK(net.addParametricReLU(x, *slopes.getOutput(0)));
    CHECK(net.addIdentity(x)->getType() == LayerType::kIDENTITY);
    ICastLayer &cast = *net.addCast(x, DataType::kINT32);
    KEEP(cast, ToType, DataType::kHALF);
    IUnaryLayer &no =
        *net.addUnary(*net.addCast(x, DataType::kBOOL)->getOutput(0), UnaryOperation::kNOT);
    ISelectLayer &select = *net.addSelect(*no.getOutput(0), x, x);
    CHECK(equal(select.getOutput(0)->getDimensions(), dims({1, 4, 2, 2})));

    ITensor &scalar = *net.addConstant(dims({}), weights(1))->getOutput(0);
    IQuantizeLayer &q = *net.addQuantize(x, scalar);
    KEEP(q, Axis, 1);
    KEEP(q, ToType, DataType::kINT8);
    KEEP(q, BlockShape, dims({1, 1, 1, 2}));
    CHECK(net.addQuantize(x, scalar, DataType::kINT8));
    IDequantizeLayer &dq = *net.addDequantize(*q.getOutput(0), scalar);
    KEEP(dq, Axis, 1);
    KEEP(dq, ToType, DataType::kFLOAT);
    KEEP(dq, BlockShape, dims({1, 1, 1, 2}));
    CHECK(net.addDequantize(*q.getOutput(0), scalar, DataType::kFLOAT));
    IDynamicQuantizeLayer &dynamic =
        *net.addDynamicQuantize(x, 3, 2, DataType::kINT8, DataType::kFLOAT);
    KEEP(dynamic, Axis, 3);
    KEEP(dynamic, BlockSize, 2);
    KEEP(dynamic, BlockShape, dims({1, 1, 1, 2}));
    KEEP(dynamic, ToType, DataType::kINT8);
    KEEP(dynamic, ScaleType, DataType::kFLOAT);
    CHECK(equal(dynamic.getOutput(1)->getDimensions(), dims({1, 4, 2, 1})));
    CHECK(net.addDynamicQuantize(x, dims({1, 1, 2, 2}), DataType::kINT8, DataType::kFLOAT));
}

void sums(INetworkDefinition &net) {
    ITensor &x = *net.addInput("s", DataType::kFLOAT, dims({2, 3, 4}));
    ISoftMaxLayer &softmax = *net.addSoftMax(x);
    KEEP(softmax, Axes, 4U);
    IConstantLayer &lengths = *net.addConstant(dims({2, 3, 1}), weights(6));
    CHECK(net.addRaggedSoftMax(
        x, *net.addCast(*lengths.getOutput(0), DataType::kINT32)->getOutput(0)));
    IReduceLayer &reduce = *net.addReduce(x, ReduceOperation::kSUM, 1U, false);
    KEEP(reduce, Operation, ReduceOperation::kMAX);
    KEEP(reduce, ReduceAxes, 2U);
    KEEP(reduce, KeepDimensions, true);
    CHECK(equal(reduce.getOutput(0)->getDimensions(), dims({2, 1, 4})));
    ITopKLayer &topk = *net.addTopK(x, TopKOperation::kMAX, 1, 4U);
    KEEP(topk, Operation, TopKOperation::kMIN);
    KEEP(topk, K, 2);
    KEEP(topk, ReduceAxes, 2U);
    KEEP(topk, IndicesType, DataType::kINT64);
    CHECK(net.addTopK(x, TopKOperation::kMAX, 1, 4U, DataType::kINT32));
    IMatrixMultiplyLayer &product =
        *net.addMatrixMultiply(x, MatrixOperation::kNONE, x, MatrixOperation::kNONE);
    product.setOperation(1, MatrixOperation::kTRANSPOSE);
    CHECK(product.getOperation(1) == MatrixOperation::kTRANSPOSE && product.getTranspose(1));
    product.setTranspose(0, true);
    CHECK(product.getOperation(0) == MatrixOperation::kTRANSPOSE);
    product.setTranspose(0, false);
    CHECK(equal(product.getOutput(0)->getDimensions(), dims({2, 3, 3})));
    ITensor *pair[] = {&x, &x};
    IEinsumLayer &einsum = *net.addEinsum(pair, 2, "bij,bij->b");
    KEEP(einsum, Equation, "bij,bij->bi");
    static const int32_t one = 1;
    ITensor &axis = *net.addConstant(dims({}), Weights{DataType::kINT32, &one, 1})->getOutput(0);
    ICumulativeLayer &running =
        *net.addCumulative(x, axis, CumulativeOperation::kSUM, false, false);
    KEEP(running, Operation, CumulativeOperation::kSUM);
    KEEP(running, Exclusive, true);
    KEEP(running, Reverse, true);
    ITensor &ones = *net.addConstant(dims({1, 3, 1}), weights(3))->getOutput(0);
    INormalizationLayer &norm = *net.addNormalization(x, ones, ones, 4U);
    KEEP(norm, Epsilon, 0.01f);
    KEEP(norm, Axes, 2U);
    KEEP(norm, NbGroups, 1);
    KEEP(norm, ComputePrecision, DataType::kHALF);
    CHECK(!norm.isV2());
    CHECK(net.addNormalizationV2(x, ones, ones, 4U)->isV2());
}

void shapes(INetworkDefinition &net) {
    ITensor &x = *net.addInput("h", DataType::kFLOAT, dims({2, 3, 4, 4}));
    IShuffleLayer &shuffle = *net.addShuffle(x);
    KEEP(shuffle, FirstTranspose, (Permutation{{0, 2, 3, 1}}));
    KEEP(shuffle, ReshapeDimensions, dims({0, 16, 3}));
    KEEP(shuffle, SecondTranspose, (Permutation{{1, 0, 2}}));
    KEEP(shuffle, ZeroIsPlaceholder, true);
    CHECK(equal(shuffle.getOutput(0)->getDimensions(), dims({16, 2, 3})));
    ISliceLayer &slice =
        *net.addSlice(x, dims({0, 0, 0, 0}), dims({1, 1, 1, 1}), dims({1, 1, 1, 1}));
    KEEP(slice, Start, dims({1, 0, 0, 0}));
    KEEP(slice, Size, dims({1, 2, 2, 2}));
    KEEP(slice, Stride, dims({1, 1, 2, 2}));
    KEEP(slice, Mode, SampleMode::kSTRICT_BOUNDS);
    CHECK(equal(slice.getOutput(0)->getDimensions(), dims({1, 2, 2, 2})));
    ISliceLayer &few = *net.addSlice(x, dims({1}), dims({2}), dims({1}));
    KEEP(few, Axes, dims({3}));
    ITensor *pair[] = {&x, &x};
    IConcatenationLayer &concat = *net.addConcatenation(pair, 2);
    KEEP(concat, Axis, 0);
    CHECK(concat.getOutput(0)->getDimensions().d[0] == 4);
    CHECK(net.addShape(x)->getOutput(0)->getDimensions().d[0] == 4);
    IResizeLayer &resize = *net.addResize(x);
    const float factors[] = {1, 1, 2, 2};
    float back[4] = {};
    resize.setScales(factors, 4);
    CHECK(resize.getScales(4, back) == 4 && back[3] == 2);
    CHECK(resize.getScales(2, nullptr) == 4);
    KEEP(resize, ResizeMode, InterpolationMode::kLINEAR);
    KEEP(resize, AlignCorners, true);
    KEEP(resize, CoordinateTransformation, ResizeCoordinateTransformation::kHALF_PIXEL);
    KEEP(resize, SelectorForSinglePixel, ResizeSelector::kUPPER);
    KEEP(resize, NearestRounding, ResizeRoundMode::kCEIL);
    KEEP(resize, CubicCoeff, -0.5f);
    KEEP(resize, ExcludeOutside, true);
    IResizeLayer &to = *net.addResize(x);
    KEEP(to, OutputDimensions, dims({2, 3, 5, 5}));
    CHECK(equal(to.getOutput(0)->getDimensions(), dims({2, 3, 5, 5})));
    static const int32_t zero = 0;
    ITensor &first = *net.addConstant(dims({1}), Weights{DataType::kINT32, &zero, 1})->getOutput(0);
    ITensor &more = *net.addUnsqueeze(x, first)->getOutput(0);
    CHECK(equal(more.getDimensions(), dims({1, 2, 3, 4, 4})));
    CHECK(equal(net.addSqueeze(more, first)->getOutput(0)->getDimensions(), dims({2, 3, 4, 4})));
    IFillLayer &fill = *net.addFill(dims({2}), FillOperation::kLINSPACE);
    KEEP(fill, Dimensions, dims({3}));
    KEEP(fill, Operation, FillOperation::kRANDOM_UNIFORM);
    KEEP(fill, Alpha, 1.5);
    KEEP(fill, Beta, 2.5);
    CHECK(!fill.isAlphaBetaInt64());
    KEEP(fill, ToType, DataType::kFLOAT);
    IFillLayer &whole = *net.addFill(dims({3}), FillOperation::kLINSPACE, DataType::kINT64);
    KEEP(whole, AlphaInt64, 5);
    KEEP(whole, BetaInt64, 7);
    CHECK(whole.isAlphaBetaInt64());
    IGridSampleLayer &grid =
        *net.addGridSample(x, *net.addInput("grid", DataType::kFLOAT, dims({2, 5, 5, 2})));
    KEEP(grid, InterpolationMode, InterpolationMode::kNEAREST);
    KEEP(grid, AlignCorners, true);
    KEEP(grid, SampleMode, SampleMode::kCLAMP);
    CHECK(equal(grid.getOutput(0)->getDimensions(), dims({2, 3, 5, 5})));
    static const bool yes = true;
    IAssertionLayer &assertion = *net.addAssertion(
        *net.addConstant(dims({}), Weights{DataType::kBOOL, &yes, 1})->getOutput(0), "holds");
    KEEP(assertion, Message, "still holds");
}

void places(INetworkDefinition &net) {
    ITensor &x = *net.addInput("g", DataType::kFLOAT, dims({4, 3}));
    static const int32_t numbers[] = {1, 0};
    ITensor &indices =
        *net.addConstant(dims({2}), Weights{DataType::kINT32, numbers, 2})->getOutput(0);
    IGatherLayer &gather = *net.addGather(x, indices, 1);
    KEEP(gather, GatherAxis, 0);
    KEEP(gather, NbElementWiseDims, 0);
    CHECK(equal(gather.getOutput(0)->getDimensions(), dims({2, 3})));
    IGatherLayer &second = *net.addGatherV2(x, indices, GatherMode::kDEFAULT);
    KEEP(second, Mode, GatherMode::kND);
    ITensor &at =
        *net.addConstant(dims({1, 2}), Weights{DataType::kINT32, numbers, 2})->getOutput(0);
    ITensor &updates = *net.addConstant(dims({1}), weights(1))->getOutput(0);
    IScatterLayer &scatter = *net.addScatter(x, at, updates, ScatterMode::kELEMENT);
    KEEP(scatter, Mode, ScatterMode::kND);
    KEEP(scatter, Axis, 1);
    static const int32_t three = 3;
    ITensor &depth = *net.addConstant(dims({}), Weights{DataType::kINT32, &three, 1})->getOutput(0);
    ITensor &values = *net.addConstant(dims({2}), weights(2))->getOutput(0);
    IOneHotLayer &hot = *net.addOneHot(indices, values, depth, 0);
    KEEP(hot, Axis, 1);
    INonZeroLayer &nonzero = *net.addNonZero(x);
    KEEP(nonzero, IndicesType, DataType::kINT64);
    CHECK(net.addNonZero(x, DataType::kINT32));
    ITensor &boxes = *net.addInput("boxes", DataType::kFLOAT, dims({1, 10, 4}));
    ITensor &scores = *net.addInput("scores", DataType::kFLOAT, dims({1, 10, 2}));
    INMSLayer &nms = *net.addNMS(boxes, scores, depth);
    KEEP(nms, BoundingBoxFormat, BoundingBoxFormat::kCENTER_SIZES);
    KEEP(nms, TopKBoxLimit, 100);
    KEEP(nms, IndicesType, DataType::kINT64);
    CHECK(net.addNMS(boxes, scores, depth, DataType::kINT32));
    static const int32_t counts[] = {1, 2, 3};
    ITensor &lengths =
        *net.addConstant(dims({3}), Weights{DataType::kINT32, counts, 3})->getOutput(0);
    IReverseSequenceLayer &reverse = *net.addReverseSequence(x, lengths);
    KEEP(reverse, BatchAxis, 1);
    KEEP(reverse, SequenceAxis, 0);
}

void control(INetworkDefinition &net) {
    ITensor &x = *net.addInput("c", DataType::kFLOAT, dims({3, 2}));
    static const int32_t three = 3;
    ITensor &count = *net.addConstant(dims({}), Weights{DataType::kINT32, &three, 1})->getOutput(0);
    ILoop &loop = *net.addLoop();
    KEEP(loop, Name, "each row");
    ITripLimitLayer &limit = *loop.addTripLimit(count, TripLimit::kCOUNT);
    CHECK(limit.getTripLimit() == TripLimit::kCOUNT && limit.getLoop());
    IIteratorLayer &rows = *loop.addIterator(x, 1, true);
    KEEP(rows, Axis, 0);
    KEEP(rows, Reverse, false);
    IRecurrenceLayer &state =
        *loop.addRecurrence(*net.addConstant(dims({2}), weights(2))->getOutput(0));
    ITensor &next =
        *net.addElementWise(*state.getOutput(0), *rows.getOutput(0), ElementWiseOperation::kSUM)
             ->getOutput(0);
    state.setInput(1, next);
    ILoopOutputLayer &last = *loop.addLoopOutput(*state.getOutput(0), LoopOutput::kLAST_VALUE);
    CHECK(last.getLoopOutput() == LoopOutput::kLAST_VALUE);
    KEEP(last, Axis, 0);
    CHECK(equal(last.getOutput(0)->getDimensions(), dims({2})));
    IIfConditional &branch = *net.addIfConditional();
    KEEP(branch, Name, "one of two");
    static const bool yes = true;
    IConditionLayer &condition = *branch.setCondition(
        *net.addConstant(dims({}), Weights{DataType::kBOOL, &yes, 1})->getOutput(0));
    CHECK(condition.getConditional());
    ITensor &inside = *branch.addInput(x)->getOutput(0);
    CHECK(equal(branch.addOutput(inside, x)->getOutput(0)->getDimensions(), dims({3, 2})));
}

// Two heads of queries share one of keys; the values are those that the last position sees alone.
void attention(INetworkDefinition &net) {
    ITensor &q = *net.addInput("q", DataType::kFLOAT, dims({1, 2, 3, 4}));
    ITensor &k = *net.addInput("k", DataType::kFLOAT, dims({1, 1, 3, 4}));
    IAttention &a = *net.addAttention(q, k, k, AttentionNormalizationOp::kSOFTMAX, true);
    KEEP(a, Name, "attends");
    KEEP(a, Metadata, "text");
    KEEP(a, NormalizationOperation, AttentionNormalizationOp::kNONE);
    KEEP(a, NormalizationOperation, AttentionNormalizationOp::kSOFTMAX);
    KEEP(a, Causal, false);
    KEEP(a, CausalKind, CausalMaskKind::kLOWER_RIGHT);
    KEEP(a, Decomposable, true);
    ITensor &mask = *net.addInput("mask", DataType::kBOOL, dims({1, 2, 3, 3}));
    CHECK(a.setMask(mask) && a.getMask() == &mask);
    ITensor &scale = *net.addConstant(dims({1}), weights(1))->getOutput(0);
    CHECK(a.setNormalizationQuantizeScale(scale) && a.getNormalizationQuantizeScale() == &scale);
    KEEP(a, NormalizationQuantizeToType, DataType::kINT8);
    CHECK(a.getNbInputs() == 3 && a.getNbOutputs() == 1 && a.getInput(1) == &k);
    CHECK(a.setInput(2, k) && !a.setInput(3, k));
    CHECK(equal(a.getOutput(0)->getDimensions(), dims({1, 2, 3, 4})));
    ILayer *layer = net.getLayer(net.getNbLayers() - 2);
    CHECK(layer->getType() == LayerType::kATTENTION_OUTPUT);
    CHECK(static_cast<IAttentionOutputLayer *>(layer)->getAttention() == &a);
    CHECK(net.addAttention(q, k, k, AttentionNormalizationOp::kSOFTMAX, CausalMaskKind::kNONE));

    ITensor &angles = *net.addInput("angles", DataType::kFLOAT, dims({1, 3, 2}));
    IRotaryEmbeddingLayer &turned = *net.addRotaryEmbedding(q, angles, angles, false, 0);
    KEEP(turned, Interleaved, true);
    KEEP(turned, RotaryEmbeddingDim, 4);
    turned.setInput(0, q);
    CHECK(equal(turned.getOutput(0)->getDimensions(), dims({1, 2, 3, 4})));
    ITensor &cache = *net.addInput("cache", DataType::kFLOAT, dims({1, 1, 8, 4}));
    ITensor &first = *net.addInput("first", DataType::kINT32, dims({1}));
    IKVCacheUpdateLayer &update = *net.addKVCacheUpdate(cache, k, first, KVCacheMode::kLINEAR);
    KEEP(update, CacheMode, KVCacheMode::kLINEAR);
    CHECK(equal(update.getOutput(0)->getDimensions(), dims({1, 1, 8, 4})));
}

// Methods that a call refuses, each with the name that the report has.
void refused(INetworkDefinition &net) {
    ITensor &x = *net.addInput("r", DataType::kFLOAT, dims({1, 2, 3}));
    CHECK(net.addMoE(x, x, x) == nullptr);
    CHECK(net.addDistCollective(x, CollectiveOperation::kALL_REDUCE, ReduceOperation::kSUM, 0,
                                nullptr, 0) == nullptr);
    CHECK(net.addRNNv2(x, 1, 2, 3, RNNOperation::kLSTM) == nullptr);
    CHECK(!net.addIdentity(x)->setNbRanks(2));
}

void tensors(INetworkDefinition &net) {
    ITensor &x = *net.addInput("t", DataType::kFLOAT, dims({2, 3}));
    KEEP(x, Name, "renamed");
    KEEP(x, Dimensions, dims({-1, 4}));
    KEEP(x, Type, DataType::kHALF);
    KEEP(x, Location, TensorLocation::kHOST);
    KEEP(x, AllowedFormats, 1U);
    KEEP(x, BroadcastAcrossBatch, false);
    x.setDimensionName(0, "batch");
    CHECK(equal(x.getDimensionName(0), "batch"));
    CHECK(!x.dynamicRangeIsSet() && std::isnan(x.getDynamicRangeMin()));
    CHECK(x.setDynamicRange(-2.0f, 3.0f) && x.dynamicRangeIsSet());
    CHECK(x.getDynamicRangeMin() == -2.0f && x.getDynamicRangeMax() == 3.0f);
    CHECK(x.getDynamicRange() == 3.0f);
    x.resetDynamicRange();
    CHECK(!x.dynamicRangeIsSet());
    CHECK(x.isNetworkInput() && !x.isNetworkOutput() && x.isExecutionTensor() &&
          !x.isShapeTensor());
    ILayer &layer = *net.addIdentity(x);
    KEEP(layer, Name, "same");
    KEEP(layer, Metadata, "made here");
    CHECK(!layer.precisionIsSet());
    KEEP(layer, Precision, DataType::kHALF);
    CHECK(layer.precisionIsSet());
    layer.resetPrecision();
    CHECK(!layer.precisionIsSet());
    layer.setOutputType(0, DataType::kINT32);
    CHECK(layer.outputTypeIsSet(0) && layer.getOutputType(0) == DataType::kINT32);
    layer.resetOutputType(0);
    CHECK(!layer.outputTypeIsSet(0));
    CHECK(layer.getNbInputs() == 1 && layer.getNbOutputs() == 1 && layer.getInput(0) == &x);
}

using Part = void (*)(INetworkDefinition &);
const Part kParts[] = {windows, elements,  sums,    shapes, places,
                       control, attention, tensors, refused};

}  // namespace

// The checks of a part that fail, one a line.
extern "C" const char *check_layers(int part) {
    static Log log;
    failed().clear();
    std::unique_ptr<IBuilder> builder(createInferBuilder(log));
    std::unique_ptr<INetworkDefinition> net(builder->createNetworkV2(1));
    kParts[part](*net);
    return failed().c_str();
}
