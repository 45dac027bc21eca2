"""The `add_*` methods of a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, cast

from headrace._core.errors import HeadraceError
from headrace.plugins.types import DataType, DimsHW
from headrace.trt.api.add_attention import AddsAttention
from headrace.trt.api.layer_graph import LayerGraph
from headrace.trt.layers import (
    control,
    elementwise,
    plugins,
    quantizing,
    sampling,
    selection,
    shaping,
    sums,
    windows,
)
from headrace.trt.layers.base import Layer, check_tensors
from headrace.trt.release import versioned
from headrace.trt.types.tensor import ITensor
from headrace.trt.types.values import as_array

if TYPE_CHECKING:
    from headrace.plugins.types import NumberedEnum
    from headrace.trt.types.owner import Owner
    from headrace.trt.types.values import WeightsLike


class _PluginCall(Protocol):
    """The result of `headrace.trt.plugin.op.ns.name(…)`."""

    inputs: Sequence[ITensor]

    def plugin(self, aot: bool | None) -> object: ...


@versioned(
    {
        "<10 deprecated>=8": (
            "add_convolution -> add_convolution_nd, add_deconvolution -> add_deconvolution_nd, "
            "add_pooling -> add_pooling_nd, add_padding -> add_padding_nd"
        ),
        "<10 deprecated>=8.4": "add_fully_connected -> add_matrix_multiply",
        ">=8.6": "add_cast, add_normalization",
        ">=10.5": "add_cumulative",
        ">=10.8": "add_dynamic_quantize",
        ">=10.15": "add_dynamic_quantize_v2, add_normalization_v2",
        ">=10.4": "add_squeeze, add_unsqueeze",
        ">=10": "add_plugin_v3",
        ">=10.6": "add_plugin",
    }
)
class AddsLayers(AddsAttention, LayerGraph):
    """Base of `INetworkDefinition`. Maths: tensorrt-api spec 3.4."""

    def _add(
        self, cls: type[Layer], *inputs: ITensor, outputs: int = 1,
        weights: dict[str, WeightsLike] | None = None, **settings: object,
    ) -> Layer:  # fmt: skip
        """Append a layer; its class converts the settings."""
        params = cls._started(settings)
        for tensor in inputs:
            check_tensors([tensor])
            if tensor._network is not cast("Owner", self):
                self._report(f"{tensor._name}: is a tensor of another network")
                return cast(Layer, None)  # as the original: scripts fail at their next line
        arrays = {role: as_array(value) for role, value in (weights or {}).items()}
        layer = cls(self, inputs, params=params, weights=arrays, outputs=outputs)
        self._append(layer)
        return layer

    # windows

    def add_convolution_nd(
        self,
        input: ITensor,
        num_output_maps: int,
        kernel_shape: Sequence[int],
        kernel: WeightsLike = None,
        bias: WeightsLike = None,
    ) -> windows.IConvolutionLayer:
        """Weights [num_output_maps, channels / groups, *kernel_shape]."""
        return self._add(
            windows.IConvolutionLayer, input, weights={"KERNEL": kernel, "BIAS": bias},
            num_output_maps=num_output_maps, kernel_size=kernel_shape,
        )  # fmt: skip

    def add_convolution(
        self,
        input: ITensor,
        num_output_maps: int,
        kernel_shape: Sequence[int],
        kernel: WeightsLike = None,
        bias: WeightsLike = None,
    ) -> windows.IConvolutionLayer:
        """`add_convolution_nd` over two axes."""
        return self.add_convolution_nd(input, num_output_maps, DimsHW(kernel_shape), kernel, bias)

    def add_deconvolution_nd(
        self,
        input: ITensor,
        num_output_maps: int,
        kernel_shape: Sequence[int],
        kernel: WeightsLike = None,
        bias: WeightsLike = None,
    ) -> windows.IDeconvolutionLayer:
        """Weights [channels, num_output_maps / groups, *kernel_shape]."""
        return self._add(
            windows.IDeconvolutionLayer, input, weights={"KERNEL": kernel, "BIAS": bias},
            num_output_maps=num_output_maps, kernel_size=kernel_shape,
        )  # fmt: skip

    def add_deconvolution(
        self,
        input: ITensor,
        num_output_maps: int,
        kernel_shape: Sequence[int],
        kernel: WeightsLike = None,
        bias: WeightsLike = None,
    ) -> windows.IDeconvolutionLayer:
        """`add_deconvolution_nd` over two axes."""
        return self.add_deconvolution_nd(input, num_output_maps, DimsHW(kernel_shape), kernel, bias)

    def add_pooling_nd(
        self, input: ITensor, type: NumberedEnum, window_size: Sequence[int]
    ) -> windows.IPoolingLayer:
        """Strides are 1 until they are set."""
        return self._add(windows.IPoolingLayer, input, type=type, window_size=window_size)

    def add_pooling(
        self, input: ITensor, type: NumberedEnum, window_size: Sequence[int]
    ) -> windows.IPoolingLayer:
        """`add_pooling_nd` over two axes."""
        return self.add_pooling_nd(input, type, DimsHW(window_size))

    def add_padding_nd(
        self, input: ITensor, pre_padding: Sequence[int], post_padding: Sequence[int]
    ) -> windows.IPaddingLayer:
        """Zeros around the last axes; negative numbers cut."""
        return self._add(
            windows.IPaddingLayer, input, pre_padding=pre_padding, post_padding=post_padding
        )

    def add_padding(
        self, input: ITensor, pre_padding: Sequence[int], post_padding: Sequence[int]
    ) -> windows.IPaddingLayer:
        """`add_padding_nd` over two axes."""
        return self.add_padding_nd(input, DimsHW(pre_padding), DimsHW(post_padding))

    def add_fully_connected(
        self, input: ITensor, num_outputs: int, kernel: WeightsLike, bias: WeightsLike = None
    ) -> windows.IFullyConnectedLayer:
        """The last three axes as a vector, times a matrix [num_outputs, elements]."""
        weights = {"KERNEL": kernel, "BIAS": bias}
        return self._add(
            windows.IFullyConnectedLayer, input, weights=weights, num_output_maps=num_outputs
        )

    # element by element

    def add_activation(self, input: ITensor, type: NumberedEnum) -> elementwise.IActivationLayer:
        """A function of each element; `alpha` and `beta` are set afterwards.

        They start at 0, of SOFTPLUS at 1: torch2trt's converter sets neither.
        """
        layer = self._add(elementwise.IActivationLayer, input, type=type)
        if layer.type.name == "SOFTPLUS":
            layer.alpha = layer.beta = 1.0
        return layer

    def add_unary(self, input: ITensor, op: NumberedEnum) -> elementwise.IUnaryLayer:
        """A function of each element."""
        return self._add(elementwise.IUnaryLayer, input, op=op)

    def add_elementwise(
        self, input1: ITensor, input2: ITensor, op: NumberedEnum
    ) -> elementwise.IElementWiseLayer:
        """Both inputs have as many axes; those of extent 1 are broadcast."""
        return self._add(elementwise.IElementWiseLayer, input1, input2, op=op)

    def add_scale(
        self,
        input: ITensor,
        mode: NumberedEnum,
        shift: WeightsLike = None,
        scale: WeightsLike = None,
        power: WeightsLike = None,
    ) -> elementwise.IScaleLayer:
        """(x * scale + shift) ^ power; the channels are the third axis from behind."""
        axis = max(0, len(input.shape) - 3)
        return self.add_scale_nd(input, mode, shift, scale, power, axis)

    def add_scale_nd(
        self,
        input: ITensor,
        mode: NumberedEnum,
        shift: WeightsLike = None,
        scale: WeightsLike = None,
        power: WeightsLike = None,
        channel_axis: int = 1,
    ) -> elementwise.IScaleLayer:
        """(x * scale + shift) ^ power."""
        weights = {"SHIFT": shift, "SCALE": scale, "POWER": power}
        return self._add(
            elementwise.IScaleLayer, input, weights=weights, mode=mode, channel_axis=channel_axis
        )

    def add_lrn(
        self, input: ITensor, window: int, alpha: float, beta: float, k: float
    ) -> elementwise.ILRNLayer:
        """Divide x by (k + alpha / window * sum of x² over a window of channels) ^ beta."""
        return self._add(
            elementwise.ILRNLayer, input, window_size=window, alpha=alpha, beta=beta, k=k
        )

    def add_parametric_relu(
        self, input: ITensor, slopes: ITensor
    ) -> elementwise.IParametricReLULayer:
        """Keep x, times its slope below 0."""
        return self._add(elementwise.IParametricReLULayer, input, slopes)

    def add_select(
        self, condition: ITensor, then_input: ITensor, else_input: ITensor
    ) -> elementwise.ISelectLayer:
        """Element by element one of two."""
        return self._add(elementwise.ISelectLayer, condition, then_input, else_input)

    def add_identity(self, input: ITensor) -> elementwise.IIdentityLayer:
        """The same; `set_output_type` converts."""
        return self._add(elementwise.IIdentityLayer, input)

    def add_cast(self, input: ITensor, to_type: DataType) -> elementwise.ICastLayer:
        """Another element type."""
        return self._add(elementwise.ICastLayer, input, to_type=to_type)

    # sums

    def add_softmax(self, input: ITensor) -> sums.ISoftMaxLayer:
        """Along axis max(0, rank - 3) until `axes` is set."""
        return self._add(sums.ISoftMaxLayer, input)

    def add_ragged_softmax(self, input: ITensor, bounds: ITensor) -> sums.IRaggedSoftMaxLayer:
        """Of the first `bounds` elements of each row."""
        return self._add(sums.IRaggedSoftMaxLayer, input, bounds)

    def add_reduce(
        self, input: ITensor, op: NumberedEnum, axes: int, keep_dims: bool
    ) -> sums.IReduceLayer:
        """Over the axes of a mask."""
        return self._add(sums.IReduceLayer, input, op=op, axes=axes, keep_dims=keep_dims)

    def add_topk(
        self,
        input: ITensor,
        op: NumberedEnum,
        k: int,
        axes: int,
        indices_type: DataType | None = None,
    ) -> sums.ITopKLayer:
        """Outputs: values and indices, the first one first."""
        return self._add(
            sums.ITopKLayer, input, outputs=2, op=op, k=k, axes=axes,
            indices_type=_indices(indices_type),
        )  # fmt: skip

    def add_matrix_multiply(
        self, input0: ITensor, op0: NumberedEnum, input1: ITensor, op1: NumberedEnum
    ) -> sums.IMatrixMultiplyLayer:
        """Batched product; leading axes are broadcast."""
        return self._add(sums.IMatrixMultiplyLayer, input0, input1, op0=op0, op1=op1)

    def add_einsum(self, inputs: Sequence[ITensor], equation: str) -> sums.IEinsumLayer:
        """Einstein's sum."""
        return self._add(sums.IEinsumLayer, *inputs, equation=equation)

    def add_cumulative(
        self, input: ITensor, axis: ITensor, op: NumberedEnum, exclusive: bool, reverse: bool
    ) -> sums.ICumulativeLayer:
        """Running sums along an axis."""
        return self._add(
            sums.ICumulativeLayer, input, axis, op=op, exclusive=exclusive, reverse=reverse
        )

    def add_normalization(
        self, input: ITensor, scale: ITensor, bias: ITensor, axesMask: int
    ) -> sums.INormalizationLayer:
        """(x - mean) / deviation * scale + bias over the axes of a mask."""
        return self._add(sums.INormalizationLayer, input, scale, bias, axes=axesMask, is_v2=False)

    def add_normalization_v2(
        self, input: ITensor, scale: ITensor, bias: ITensor, axesMask: int
    ) -> sums.INormalizationLayer:
        """`add_normalization` with one scale and bias for each channel, in groups too."""
        return self._add(sums.INormalizationLayer, input, scale, bias, axes=axesMask, is_v2=True)

    def add_quantize(
        self, input: ITensor, scale: ITensor, output_type: DataType | None = None
    ) -> quantizing.IQuantizeLayer:
        """Rounded to bytes."""
        return self._add(
            quantizing.IQuantizeLayer, input, scale, to_type=output_type or DataType.INT8
        )

    def add_dequantize(
        self, input: ITensor, scale: ITensor, output_type: DataType | None = None
    ) -> quantizing.IDequantizeLayer:
        """Bytes times their scale."""
        return self._add(
            quantizing.IDequantizeLayer, input, scale, to_type=output_type or DataType.FLOAT
        )

    def add_dynamic_quantize(
        self,
        input: ITensor,
        axis: int,
        block_size: int,
        output_type: DataType,
        scale_type: DataType,
    ) -> quantizing.IDynamicQuantizeLayer:
        """Rounded in blocks along one axis. Of `add_dynamic_quantize_v2`'s types."""
        shape = [1] * len(input.shape)
        shape[int(axis)] = int(block_size)
        layer = self.add_dynamic_quantize_v2(input, shape, output_type, scale_type)
        if layer is not None:
            layer.axis, layer.block_size = int(axis), int(block_size)
        return layer

    def add_dynamic_quantize_v2(
        self,
        input: ITensor,
        block_shape: Sequence[int],
        output_type: DataType,
        scale_type: DataType,
    ) -> quantizing.IDynamicQuantizeLayer:
        """Rounded in blocks, each with the scale max|x| / 127; INT8 and FLOAT scales are built."""
        return self._add(
            quantizing.IDynamicQuantizeLayer, input, outputs=2,
            block_shape=block_shape, to_type=output_type, scale_type=scale_type,
        )  # fmt: skip

    # shapes

    def add_shuffle(self, input: ITensor) -> shaping.IShuffleLayer:
        """Transpose, reshape, transpose; each is set afterwards."""
        return self._add(shaping.IShuffleLayer, input)

    def add_slice(
        self, input: ITensor, start: Sequence[int], shape: Sequence[int], stride: Sequence[int]
    ) -> sampling.ISliceLayer:
        """Elements start, start + stride …, `shape` of them along each axis."""
        return self._add(sampling.ISliceLayer, input, start=start, shape=shape, stride=stride)

    def add_concatenation(self, inputs: Sequence[ITensor]) -> shaping.IConcatenationLayer:
        """Joined along the channels until `axis` is set."""
        return self._add(shaping.IConcatenationLayer, *inputs)

    def add_constant(self, shape: Sequence[int], weights: WeightsLike) -> shaping.IConstantLayer:
        """An array of this shape."""
        layer = self._add(shaping.IConstantLayer, weights={"CONSTANT": weights}, shape=shape)
        if weights is not None and 0 in layer.shape:  # no element knows the type
            layer._params["empty"] = getattr(weights.dtype, "numpy", weights.dtype)
        return layer

    def add_shape(self, input: ITensor) -> shaping.IShapeLayer:
        """Extents as a tensor: INT32 up to 9.x, INT64 from 10.0 on."""
        return self._add(shaping.IShapeLayer, input)

    def add_squeeze(self, input: ITensor, axes: ITensor) -> shaping.ISqueezeLayer:
        """Without axes of extent 1."""
        return self._add(shaping.ISqueezeLayer, input, axes)

    def add_unsqueeze(self, input: ITensor, axes: ITensor) -> shaping.IUnsqueezeLayer:
        """With new axes of extent 1."""
        return self._add(shaping.IUnsqueezeLayer, input, axes)

    def add_resize(self, input: ITensor) -> sampling.IResizeLayer:
        """To a `shape` or by `scales`, which are set afterwards."""
        return self._add(sampling.IResizeLayer, input)

    def add_grid_sample(self, input: ITensor, grid: ITensor) -> sampling.IGridSampleLayer:
        """Images at places in -1 … 1."""
        return self._add(sampling.IGridSampleLayer, input, grid)

    def add_fill(
        self, shape: Sequence[int], op: NumberedEnum, output_type: DataType | None = None
    ) -> shaping.IFillLayer:
        """A tensor of evenly spaced or random numbers."""
        to_type = output_type or DataType.FLOAT
        return self._add(shaping.IFillLayer, shape=shape, operation=op, to_type=to_type)

    def add_assertion(self, condition: ITensor, message: str) -> shaping.IAssertionLayer:
        """The network is refused if the condition is known to be false."""
        return self._add(shaping.IAssertionLayer, condition, outputs=0, message=message)

    # places

    def add_gather(self, input: ITensor, indices: ITensor, axis: int) -> selection.IGatherLayer:
        """Elements along an axis."""
        return self._add(selection.IGatherLayer, input, indices, axis=axis)

    def add_gather_v2(
        self, input: ITensor, indices: ITensor, mode: NumberedEnum
    ) -> selection.IGatherLayer:
        """Elements by a mode; `axis` and `num_elementwise_dims` are set afterwards."""
        return self._add(selection.IGatherLayer, input, indices, mode=mode)

    def add_scatter(
        self, data: ITensor, indices: ITensor, updates: ITensor, mode: NumberedEnum
    ) -> selection.IScatterLayer:
        """Data with some elements replaced."""
        return self._add(selection.IScatterLayer, data, indices, updates, mode=mode)

    def add_one_hot(
        self, indices: ITensor, values: ITensor, depth: ITensor, axis: int
    ) -> selection.IOneHotLayer:
        """One value at the index, another elsewhere."""
        return self._add(selection.IOneHotLayer, indices, values, depth, axis=axis)

    def add_non_zero(
        self, input: ITensor, indices_type: DataType | None = None
    ) -> selection.INonZeroLayer:
        """Indices of elements that are not 0: (rank, count)."""
        return self._add(selection.INonZeroLayer, input, indices_type=_indices(indices_type))

    def add_nms(
        self, boxes: ITensor, scores: ITensor, max_output_boxes_per_class: ITensor,
        indices_type: DataType | None = None,
    ) -> selection.INMSLayer:  # fmt: skip
        """Outputs: (M, 3) batch, class, box; M."""
        inputs = boxes, scores, max_output_boxes_per_class
        return self._add(
            selection.INMSLayer, *inputs, outputs=2, indices_type=_indices(indices_type)
        )

    def add_reverse_sequence(
        self, input: ITensor, sequence_lens: ITensor
    ) -> selection.IReverseSequenceLayer:
        """The first elements of each row in the opposite order."""
        return self._add(selection.IReverseSequenceLayer, input, sequence_lens)

    # control flow and plugins

    def add_loop(self) -> control.ILoop:
        """A loop; its borders are added to it, the layers between them to the network."""
        return control.ILoop(self)

    def add_if_conditional(self) -> control.IIfConditional:
        """One of two branches."""
        return control.IIfConditional(self)

    def add_plugin_v2(self, inputs: Sequence[ITensor], plugin: object) -> plugins.IPluginV2Layer:
        """A layer that a plugin of the version-2 line computes; the network keeps a clone."""
        layer = plugins.add_plugin(self, plugin, inputs, cls=plugins.IPluginV2Layer)
        return cast("plugins.IPluginV2Layer", layer)

    def add_plugin_v3(
        self, inputs: Sequence[ITensor], shape_inputs: Sequence[ITensor], plugin: object
    ) -> plugins.IPluginV3Layer:
        """A layer that a plugin of version 3 computes; the network keeps a clone."""
        layer = plugins.add_plugin(self, plugin, inputs, shape_inputs, cls=plugins.IPluginV3Layer)
        return cast("plugins.IPluginV3Layer", layer)

    def add_plugin(
        self, tuple: _PluginCall, aot: bool | None = None
    ) -> plugins.IPluginV3Layer | None:
        """A layer of a plugin that was written with decorators.

        Args:
            tuple: the result of `headrace.trt.plugin.op.ns.name(…)`.
            aot: True asks for code ahead of time, which is not run here.
        """
        try:
            plugin = tuple.plugin(aot)
        except HeadraceError as error:
            self._report(str(error))
            return None
        return self.add_plugin_v3(list(tuple.inputs), [], plugin)


def _indices(asked: DataType | None) -> DataType:
    return DataType.INT32 if asked is None else DataType(asked)
