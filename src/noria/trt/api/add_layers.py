"""The `add_*` methods of a network, as far as they make one layer each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from noria.plugins.types import DataType, Dims, DimsHW
from noria.trt import layers as kinds
from noria.trt.api.control import AddsControl
from noria.trt.api.enums import (
    ActivationType,
    BoundingBoxFormat,
    CumulativeOperation,
    ElementWiseOperation,
    FillOperation,
    GatherMode,
    InterpolationMode,
    MatrixOperation,
    PaddingMode,
    PoolingType,
    ReduceOperation,
    ResizeCoordinateTransformation,
    ResizeRoundMode,
    ResizeSelector,
    SampleMode,
    ScaleMode,
    ScatterMode,
    TopKOperation,
    UnaryOperation,
)
from noria.trt.api.tensor import ITensor
from noria.trt.api.values import as_array
from noria.trt.layers.base import ILayer
from noria.trt.release import versioned

Layer = TypeVar("Layer", bound=ILayer)


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
    }
)
class AddsLayers(AddsControl):
    """Base of `INetworkDefinition`. Maths: tensorrt-api spec 3.4."""

    def _add(
        self,
        cls: type[Layer],
        kind: str,
        inputs: Sequence[Any],
        params: Mapping[str, Any] | None = None,
        weights: Mapping[str, Any] | None = None,
        outputs: int = 1,
    ) -> Layer:
        for tensor in inputs:
            if not isinstance(tensor, ITensor):
                raise TypeError(f"an input is an ITensor, not a {type(tensor).__name__}")
            if tensor._network is not self:
                self._report(f"{tensor._name}: is a tensor of another network")
                return cast(Layer, None)  # as the original: scripts fail at their next line
        arrays = {role: as_array(value) for role, value in (weights or {}).items()}
        layer = cls(cast(Any, self), kind, inputs, params=params, weights=arrays, outputs=outputs)
        self._append(layer)
        return layer

    # windows

    def add_convolution_nd(
        self, input: ITensor, num_output_maps: int, kernel_shape: Sequence[int], kernel: Any = None,
        bias: Any = None,
    ) -> kinds.IConvolutionLayer:  # fmt: skip
        """Weights [num_output_maps, channels / groups, *kernel_shape]."""
        return self._convolving("CONVOLUTION", kinds.IConvolutionLayer, input, num_output_maps,
                                kernel_shape, kernel, bias)  # fmt: skip

    def add_convolution(
        self, input: ITensor, num_output_maps: int, kernel_shape: Sequence[int], kernel: Any = None,
        bias: Any = None,
    ) -> kinds.IConvolutionLayer:  # fmt: skip
        """`add_convolution_nd` over two axes."""
        return self.add_convolution_nd(input, num_output_maps, DimsHW(kernel_shape), kernel, bias)

    def add_deconvolution_nd(
        self, input: ITensor, num_output_maps: int, kernel_shape: Sequence[int], kernel: Any = None,
        bias: Any = None,
    ) -> kinds.IDeconvolutionLayer:  # fmt: skip
        """Weights [channels, num_output_maps / groups, *kernel_shape]."""
        return self._convolving("DECONVOLUTION", kinds.IDeconvolutionLayer, input, num_output_maps,
                                kernel_shape, kernel, bias)  # fmt: skip

    def add_deconvolution(
        self, input: ITensor, num_output_maps: int, kernel_shape: Sequence[int], kernel: Any = None,
        bias: Any = None,
    ) -> kinds.IDeconvolutionLayer:  # fmt: skip
        """`add_deconvolution_nd` over two axes."""
        return self.add_deconvolution_nd(input, num_output_maps, DimsHW(kernel_shape), kernel, bias)

    def _convolving(
        self, kind: str, cls: type[Layer], input: ITensor, maps: int, shape: Sequence[int],
        kernel: Any, bias: Any,
    ) -> Layer:  # fmt: skip
        params = {
            "num_output_maps": int(maps), "kernel_size": tuple(Dims(shape)), "num_groups": 1,
            "padding_mode": PaddingMode["EXPLICIT_ROUND_DOWN"],
        }  # fmt: skip
        return self._add(cls, kind, [input], params, {"KERNEL": kernel, "BIAS": bias})

    def add_pooling_nd(
        self, input: ITensor, type: Any, window_size: Sequence[int]
    ) -> kinds.IPoolingLayer:
        """Strides are 1 until they are set."""
        params = {
            "type": PoolingType(type), "window_size": tuple(Dims(window_size)),
            "padding_mode": PaddingMode["EXPLICIT_ROUND_DOWN"], "blend_factor": 0.0,
            "average_count_excludes_padding": True,
        }  # fmt: skip
        return self._add(kinds.IPoolingLayer, "POOLING", [input], params)

    def add_pooling(
        self, input: ITensor, type: Any, window_size: Sequence[int]
    ) -> kinds.IPoolingLayer:
        """`add_pooling_nd` over two axes."""
        return self.add_pooling_nd(input, type, DimsHW(window_size))

    def add_padding_nd(
        self, input: ITensor, pre_padding: Sequence[int], post_padding: Sequence[int]
    ) -> kinds.IPaddingLayer:
        """Zeros around the last axes; negative numbers cut."""
        params = {
            "pre_padding": tuple(Dims(pre_padding)),
            "post_padding": tuple(Dims(post_padding)),
        }
        return self._add(kinds.IPaddingLayer, "PADDING", [input], params)

    def add_padding(
        self, input: ITensor, pre_padding: Sequence[int], post_padding: Sequence[int]
    ) -> kinds.IPaddingLayer:
        """`add_padding_nd` over two axes."""
        return self.add_padding_nd(input, DimsHW(pre_padding), DimsHW(post_padding))

    def add_fully_connected(
        self, input: ITensor, num_outputs: int, kernel: Any, bias: Any = None
    ) -> kinds.IFullyConnectedLayer:
        """The last three axes as a vector, times a matrix [num_outputs, elements]."""
        params = {"num_output_maps": int(num_outputs)}
        weights = {"KERNEL": kernel, "BIAS": bias}
        return self._add(kinds.IFullyConnectedLayer, "FULLY_CONNECTED", [input], params, weights)

    # element by element

    def add_activation(self, input: ITensor, type: Any) -> kinds.IActivationLayer:
        """A function of each element; `alpha` and `beta` are set afterwards."""
        params = {"type": ActivationType(type), "alpha": 0.0, "beta": 0.0}
        return self._add(kinds.IActivationLayer, "ACTIVATION", [input], params)

    def add_unary(self, input: ITensor, op: Any) -> kinds.IUnaryLayer:
        """A function of each element."""
        return self._add(kinds.IUnaryLayer, "UNARY", [input], {"op": UnaryOperation(op)})

    def add_elementwise(self, input1: ITensor, input2: ITensor, op: Any) -> kinds.IElementWiseLayer:
        """Both inputs have as many axes; those of extent 1 are broadcast."""
        params = {"op": ElementWiseOperation(op)}
        return self._add(kinds.IElementWiseLayer, "ELEMENTWISE", [input1, input2], params)

    def add_scale(
        self, input: ITensor, mode: Any, shift: Any = None, scale: Any = None, power: Any = None
    ) -> kinds.IScaleLayer:
        """(x * scale + shift) ^ power; the channels are the third axis from behind."""
        axis = max(0, len(input.shape) - 3)
        return self.add_scale_nd(input, mode, shift, scale, power, axis)

    def add_scale_nd(
        self, input: ITensor, mode: Any, shift: Any = None, scale: Any = None, power: Any = None,
        channel_axis: int = 1,
    ) -> kinds.IScaleLayer:  # fmt: skip
        """(x * scale + shift) ^ power."""
        params = {"mode": ScaleMode(mode), "channel_axis": int(channel_axis)}
        weights = {"SHIFT": shift, "SCALE": scale, "POWER": power}
        return self._add(kinds.IScaleLayer, "SCALE", [input], params, weights)

    def add_lrn(
        self, input: ITensor, window: int, alpha: float, beta: float, k: float
    ) -> kinds.ILRNLayer:
        """Divide x by (k + alpha / window * sum of x² over a window of channels) ^ beta."""
        params = {"window_size": int(window), "alpha": float(alpha), "beta": float(beta),
                  "k": float(k)}  # fmt: skip
        return self._add(kinds.ILRNLayer, "LRN", [input], params)

    def add_parametric_relu(self, input: ITensor, slopes: ITensor) -> kinds.IParametricReLULayer:
        """Keep x, times its slope below 0."""
        return self._add(kinds.IParametricReLULayer, "PARAMETRIC_RELU", [input, slopes])

    def add_select(
        self, condition: ITensor, then_input: ITensor, else_input: ITensor
    ) -> kinds.ISelectLayer:
        """Element by element one of two."""
        return self._add(kinds.ISelectLayer, "SELECT", [condition, then_input, else_input])

    def add_identity(self, input: ITensor) -> kinds.IIdentityLayer:
        """The same; `set_output_type` converts."""
        return self._add(kinds.IIdentityLayer, "IDENTITY", [input])

    def add_cast(self, input: ITensor, to_type: DataType) -> kinds.ICastLayer:
        """Another element type."""
        return self._add(kinds.ICastLayer, "CAST", [input], {"to_type": DataType(to_type)})

    # sums

    def add_softmax(self, input: ITensor) -> kinds.ISoftMaxLayer:
        """Along axis max(0, rank - 3) until `axes` is set."""
        return self._add(kinds.ISoftMaxLayer, "SOFTMAX", [input])

    def add_ragged_softmax(self, input: ITensor, bounds: ITensor) -> kinds.IRaggedSoftMaxLayer:
        """Of the first `bounds` elements of each row."""
        return self._add(kinds.IRaggedSoftMaxLayer, "RAGGED_SOFTMAX", [input, bounds])

    def add_reduce(self, input: ITensor, op: Any, axes: int, keep_dims: bool) -> kinds.IReduceLayer:
        """Over the axes of a mask."""
        params = {"op": ReduceOperation(op), "axes": int(axes), "keep_dims": bool(keep_dims)}
        return self._add(kinds.IReduceLayer, "REDUCE", [input], params)

    def add_topk(
        self, input: ITensor, op: Any, k: int, axes: int, indices_type: DataType | None = None
    ) -> kinds.ITopKLayer:
        """Outputs: values and indices, the first one first."""
        params = {"op": TopKOperation(op), "k": int(k), "axes": int(axes),
                  "indices_type": _indices(indices_type)}  # fmt: skip
        return self._add(kinds.ITopKLayer, "TOPK", [input], params, outputs=2)

    def add_matrix_multiply(
        self, input0: ITensor, op0: Any, input1: ITensor, op1: Any
    ) -> kinds.IMatrixMultiplyLayer:
        """Batched product; leading axes are broadcast."""
        params = {"op0": MatrixOperation(op0), "op1": MatrixOperation(op1)}
        return self._add(kinds.IMatrixMultiplyLayer, "MATRIX_MULTIPLY", [input0, input1], params)

    def add_einsum(self, inputs: Sequence[ITensor], equation: str) -> kinds.IEinsumLayer:
        """Einstein's sum."""
        params = {"equation": str(equation)}
        return self._add(kinds.IEinsumLayer, "EINSUM", list(inputs), params)

    def add_cumulative(
        self, input: ITensor, axis: ITensor, op: Any, exclusive: bool, reverse: bool
    ) -> kinds.ICumulativeLayer:
        """Running sums along an axis."""
        params = {"op": CumulativeOperation(op), "exclusive": bool(exclusive),
                  "reverse": bool(reverse)}  # fmt: skip
        return self._add(kinds.ICumulativeLayer, "CUMULATIVE", [input, axis], params)

    def add_normalization(
        self, input: ITensor, scale: ITensor, bias: ITensor, axesMask: int
    ) -> kinds.INormalizationLayer:
        """(x - mean) / deviation * scale + bias over the axes of a mask."""
        params = {"axes": int(axesMask), "epsilon": 1e-5, "num_groups": 1,
                  "compute_precision": DataType.FLOAT}  # fmt: skip
        return self._add(kinds.INormalizationLayer, "NORMALIZATION", [input, scale, bias], params)

    def add_normalization_v2(
        self, input: ITensor, scale: ITensor, bias: ITensor, axesMask: int
    ) -> kinds.INormalizationLayer:
        """`add_normalization` with one scale and bias for each channel, in groups too."""
        return self.add_normalization(input, scale, bias, axesMask)

    def add_quantize(
        self, input: ITensor, scale: ITensor, output_type: DataType | None = None
    ) -> kinds.IQuantizeLayer:
        """Rounded to bytes."""
        params = {"axis": -1, "to_type": DataType(output_type or DataType.INT8)}
        return self._add(kinds.IQuantizeLayer, "QUANTIZE", [input, scale], params)

    def add_dequantize(
        self, input: ITensor, scale: ITensor, output_type: DataType | None = None
    ) -> kinds.IDequantizeLayer:
        """Bytes times their scale."""
        params = {"axis": -1, "to_type": DataType(output_type or DataType.FLOAT)}
        return self._add(kinds.IDequantizeLayer, "DEQUANTIZE", [input, scale], params)

    def add_dynamic_quantize(
        self, input: ITensor, axis: int, block_size: int, output_type: Any, scale_type: Any
    ) -> kinds.IDynamicQuantizeLayer:
        """Rounded in blocks along one axis. Of `add_dynamic_quantize_v2`'s types."""
        shape = [1] * len(input.shape)
        shape[int(axis)] = int(block_size)
        layer = self.add_dynamic_quantize_v2(input, shape, output_type, scale_type)
        if layer is not None:
            layer.axis, layer.block_size = int(axis), int(block_size)
        return layer

    def add_dynamic_quantize_v2(
        self, input: ITensor, block_shape: Sequence[int], output_type: Any, scale_type: Any
    ) -> kinds.IDynamicQuantizeLayer:
        """Rounded in blocks, each with the scale max|x| / 127; INT8 and FLOAT scales are built."""
        params = {"axis": -1, "block_size": -1, "block_shape": Dims(block_shape),
                  "to_type": DataType(output_type),
                  "scale_type": DataType(scale_type)}  # fmt: skip
        kind = kinds.IDynamicQuantizeLayer
        return self._add(kind, "DYNAMIC_QUANTIZE", [input], params, outputs=2)

    # shapes

    def add_shuffle(self, input: ITensor) -> kinds.IShuffleLayer:
        """Transpose, reshape, transpose; each is set afterwards."""
        return self._add(kinds.IShuffleLayer, "SHUFFLE", [input], {"zero_is_placeholder": True})

    def add_slice(
        self, input: ITensor, start: Sequence[int], shape: Sequence[int], stride: Sequence[int]
    ) -> kinds.ISliceLayer:
        """Elements start, start + stride …, `shape` of them along each axis."""
        params = {"start": tuple(Dims(start)), "shape": tuple(Dims(shape)),
                  "stride": tuple(Dims(stride)), "mode": SampleMode["STRICT_BOUNDS"]}  # fmt: skip
        return self._add(kinds.ISliceLayer, "SLICE", [input], params)

    def add_concatenation(self, inputs: Sequence[ITensor]) -> kinds.IConcatenationLayer:
        """Joined along the channels until `axis` is set."""
        return self._add(kinds.IConcatenationLayer, "CONCATENATION", list(inputs))

    def add_constant(self, shape: Sequence[int], weights: Any) -> kinds.IConstantLayer:
        """An array of this shape."""
        params = {"shape": tuple(Dims(shape))}
        return self._add(kinds.IConstantLayer, "CONSTANT", [], params, {"CONSTANT": weights})

    def add_shape(self, input: ITensor) -> kinds.IShapeLayer:
        """Extents as a tensor: INT32 up to 9.x, INT64 from 10.0 on."""
        return self._add(kinds.IShapeLayer, "SHAPE", [input])

    def add_squeeze(self, input: ITensor, axes: ITensor) -> kinds.ISqueezeLayer:
        """Without axes of extent 1."""
        return self._add(kinds.ISqueezeLayer, "SQUEEZE", [input, axes])

    def add_unsqueeze(self, input: ITensor, axes: ITensor) -> kinds.IUnsqueezeLayer:
        """With new axes of extent 1."""
        return self._add(kinds.IUnsqueezeLayer, "UNSQUEEZE", [input, axes])

    def add_resize(self, input: ITensor) -> kinds.IResizeLayer:
        """To a `shape` or by `scales`, which are set afterwards."""
        params = {
            "resize_mode": InterpolationMode["NEAREST"],
            "coordinate_transformation": ResizeCoordinateTransformation["ASYMMETRIC"],
            "selector_for_single_pixel": ResizeSelector["FORMULA"],
            "nearest_rounding": ResizeRoundMode["FLOOR"], "exclude_outside": False,
            "cubic_coeff": -0.75,
        }  # fmt: skip
        return self._add(kinds.IResizeLayer, "RESIZE", [input], params)

    def add_grid_sample(self, input: ITensor, grid: ITensor) -> kinds.IGridSampleLayer:
        """Pictures at places in -1 … 1."""
        params = {"interpolation_mode": InterpolationMode["LINEAR"], "align_corners": False,
                  "sample_mode": SampleMode["FILL"]}  # fmt: skip
        return self._add(kinds.IGridSampleLayer, "GRID_SAMPLE", [input, grid], params)

    def add_fill(
        self, shape: Sequence[int], op: Any, output_type: DataType | None = None
    ) -> kinds.IFillLayer:
        """A tensor of evenly spaced or random numbers."""
        params = {"shape": tuple(Dims(shape)), "operation": FillOperation(op), "alpha": None,
                  "beta": None, "to_type": DataType(output_type or DataType.FLOAT)}  # fmt: skip
        return self._add(kinds.IFillLayer, "FILL", [], params)

    def add_assertion(self, condition: ITensor, message: str) -> kinds.IAssertionLayer:
        """The network is refused if the condition is known to be false."""
        params = {"message": str(message)}
        return self._add(kinds.IAssertionLayer, "ASSERTION", [condition], params, outputs=0)

    # places

    def add_gather(self, input: ITensor, indices: ITensor, axis: int) -> kinds.IGatherLayer:
        """Elements along an axis."""
        params = {"axis": int(axis), "num_elementwise_dims": 0, "mode": GatherMode["DEFAULT"]}
        return self._add(kinds.IGatherLayer, "GATHER", [input, indices], params)

    def add_gather_v2(self, input: ITensor, indices: ITensor, mode: Any) -> kinds.IGatherLayer:
        """Elements by a mode; `axis` and `num_elementwise_dims` are set afterwards."""
        params = {"axis": 0, "num_elementwise_dims": 0, "mode": GatherMode(mode)}
        return self._add(kinds.IGatherLayer, "GATHER", [input, indices], params)

    def add_scatter(
        self, data: ITensor, indices: ITensor, updates: ITensor, mode: Any
    ) -> kinds.IScatterLayer:
        """Data with some elements replaced."""
        params = {"axis": 0, "mode": ScatterMode(mode)}
        return self._add(kinds.IScatterLayer, "SCATTER", [data, indices, updates], params)

    def add_one_hot(
        self, indices: ITensor, values: ITensor, depth: ITensor, axis: int
    ) -> kinds.IOneHotLayer:
        """One value at the index, another elsewhere."""
        params = {"axis": int(axis)}
        return self._add(kinds.IOneHotLayer, "ONE_HOT", [indices, values, depth], params)

    def add_non_zero(
        self, input: ITensor, indices_type: DataType | None = None
    ) -> kinds.INonZeroLayer:
        """Indices of elements that are not 0: (rank, count)."""
        params = {"indices_type": _indices(indices_type)}
        return self._add(kinds.INonZeroLayer, "NON_ZERO", [input], params)

    def add_nms(
        self, boxes: ITensor, scores: ITensor, max_output_boxes_per_class: ITensor,
        indices_type: DataType | None = None,
    ) -> kinds.INMSLayer:  # fmt: skip
        """Outputs: (M, 3) batch, class, box; M."""
        params = {"bounding_box_format": BoundingBoxFormat["CORNER_PAIRS"], "topk_box_limit": 5000,
                  "indices_type": _indices(indices_type)}  # fmt: skip
        inputs = [boxes, scores, max_output_boxes_per_class]
        return self._add(kinds.INMSLayer, "NMS", inputs, params, outputs=2)

    def add_reverse_sequence(
        self, input: ITensor, sequence_lens: ITensor
    ) -> kinds.IReverseSequenceLayer:
        """The first elements of each row in the opposite order."""
        params = {"batch_axis": 1, "sequence_axis": 0}
        return self._add(
            kinds.IReverseSequenceLayer, "REVERSE_SEQUENCE", [input, sequence_lens], params
        )


def _indices(asked: DataType | None) -> DataType:
    return DataType.INT32 if asked is None else DataType(asked)
