"""Graphs of one image: the batch axis that nvinfer's models have is put in front.

torchvision's detectors, SCRFD's older files and YOLOv7 with NMS in the graph write rows of one
image: their number stands where the batch would, and some take an image without a batch, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headrace.network.shapes.graph_shapes import ShapeView

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

OF_IMAGES = frozenset(("im_shape", "im_info", "image_shape", "scale_factor", "orig_target_sizes"))
"""Inputs that say the size of the image in another one."""

_COUNTED_AT_RUN = frozenset(("NonMaxSuppression", "NonZero", "Compress", "Unique"))
_BOX_COLUMNS = range(4, 8)  # boxes, with score, class and number of the image
_COLORS = 3
_PADDLE_ROW = 6  # class, score, two corners
_SMALLEST = 16  # side of an image
_AXES_ARE_INPUT = 13  # opset from which Squeeze and Unsqueeze take their axes so


def with_batch(proto: ModelProto) -> tuple[str, ...]:
    """Put the image before the other inputs, and a batch axis before outputs without a batch.

    Inputs that nothing reads go, as TensorRT leaves them out of an engine.

    Args:
        proto: changed in place.

    Returns:
        The outputs that got a batch axis.
    """
    graph = proto.graph
    weights = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    if not inputs:
        return ()
    _drop_unused(graph, _image_of(inputs).name)
    inputs = [value for value in graph.input if value.name not in weights]
    image = _image_of(inputs)
    if image is not inputs[0]:
        others = [value for value in graph.input if value is not image]
        first = type(image).FromString(image.SerializeToString())
        del graph.input[:]
        graph.input.extend([first, *(type(v).FromString(v.SerializeToString()) for v in others)])
        image = graph.input[0]
    alone = _is_one_image(image)
    names = [o.name for o in graph.output] if alone else _of_one_item(proto, image)
    made = {name for node in graph.node for name in node.output}
    names = [name for name in names if name in made]
    if not names:
        return ()
    ends = [_rewired(proto, name, "Unsqueeze") for name in names]
    if alone:
        graph.node.insert(0, _rewired(proto, image.name, "Squeeze"))
        image.type.tensor_type.shape.dim.insert(0, _axis_of_one(image))
    else:
        axis = image.type.tensor_type.shape.dim[0]
        axis.Clear()
        axis.dim_value = 1
    graph.node.extend(ends)
    for output in graph.output:
        if output.name in names and output.type.tensor_type.HasField("shape"):
            output.type.tensor_type.shape.dim.insert(0, _axis_of_one(output))
    kept = [info for info in graph.value_info if info.name not in (*names, image.name)]
    del graph.value_info[:]
    graph.value_info.extend(kept)
    return tuple(names)


def _drop_unused(graph: GraphProto, image: str) -> None:
    """Drop inputs beside the image that no node reads, as Keras' EfficientNet has two."""
    used = {name for node in _nodes(graph) for name in node.input}
    used |= {value.name for node in _nodes(graph) for part in node.attribute
             for body in (*part.graphs, *([part.g] if part.HasField("g") else ()))
             for value in body.output}  # fmt: skip
    used |= {image, *(value.name for value in graph.output)}
    kept = [value for value in graph.input if value.name in used]
    if len(kept) < len(graph.input):
        copies = [type(value).FromString(value.SerializeToString()) for value in kept]
        del graph.input[:]
        graph.input.extend(copies)


def _image_of(inputs: list[ValueInfoProto]) -> ValueInfoProto:
    """The image: the first input, or the only one of four axes where the first is none."""
    first = inputs[0]
    if first.name in OF_IMAGES or len(_dims(first)) < _COLORS:
        planes = [value for value in inputs if _looks_like_images(_dims(value))]
        if len(planes) == 1:
            return planes[0]
    return first


def _looks_like_images(dims: list[Any]) -> bool:
    free = (None, 1, _COLORS)
    return len(dims) == 4 and (_number(dims[1]) in free or dims[3] in (1, _COLORS))


def _is_one_image(image: ValueInfoProto) -> bool:
    dims = _dims(image)
    if len(dims) != 3:
        return False
    sides = dims[1:] if dims[0] == _COLORS else dims[:2] if dims[2] == _COLORS else [1]
    large = all(not isinstance(side, int) or side >= _SMALLEST for side in sides)
    # points in space have three coordinates, too: [batch, points, 3]
    return large and (dims[0] == _COLORS or all(isinstance(side, int) for side in sides))


def _of_one_item(proto: ModelProto, image: ValueInfoProto) -> list[str]:
    """List outputs without a batch axis, of a graph that takes a batch of images."""
    dims = _dims(image)
    batch = dims[0] if len(dims) == 4 else 0
    if _number(batch) not in (None, 1):
        return []
    doubtful = [o for o in proto.graph.output if _doubtful(_dims(o), batch)]
    if not doubtful:
        return []
    view = ShapeView(proto, {image.name: (1, *map(_number, dims[1:]))})
    known = view.known([o.name for o in doubtful])
    axes = {}
    for output, type_ in zip(doubtful, known, strict=True):
        told = _dims(output) if type_ is None or type_.axes is None else type_.axes
        axes[output.name] = [_number(axis) for axis in told]
    fixed = [name for name, dims in axes.items() if dims and dims[0] not in (None, 1)]
    open_ = [name for name, dims in axes.items() if dims and dims[0] is None]
    shapes = [axes[name] for name in open_]
    rows = _counts_at_run(proto.graph) and _hold_rows(shapes)
    if not (rows or _are_counted_beside(proto.graph)):
        open_ = []
    return [o.name for o in proto.graph.output if o.name in (*fixed, *open_)]


def _doubtful(dims: list[Any], batch: Any) -> bool:
    """Whether the first axis is neither one item nor the input's batch by its name."""
    if not dims or dims[0] == 1:
        return False
    return dims[0] != batch or isinstance(batch, int)


def _hold_rows(shapes: list[list[int | None]]) -> bool:
    """Whether boxes are rows of one image: two axes, and no output has them behind a batch."""
    ends = [(len(dims), dims[-1]) for dims in shapes]
    boxes = {rank for rank, last in ends if last in _BOX_COLUMNS}
    return 2 in boxes and 3 not in boxes


def _are_counted_beside(graph: GraphProto) -> bool:
    """Whether rows of all images stand in one list beside a count for each, as Paddle's do."""
    names = {value.name for value in graph.input}
    outputs = sorted(([_number(d) for d in _dims(o)] for o in graph.output), key=len)
    ranks = [len(dims) for dims in outputs]
    return bool(names & OF_IMAGES) and ranks == [1, 2] and outputs[1][1] == _PADDLE_ROW


def _counts_at_run(graph: GraphProto) -> bool:
    return any(node.op_type in _COUNTED_AT_RUN for node in _nodes(graph))


def _nodes(graph: GraphProto) -> Iterator[NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())):
                yield from _nodes(body)


def _rewired(proto: ModelProto, name: str, operator: str) -> NodeProto:
    """Rename a value inside; make the node between it and the outer value of its old name."""
    from onnx import helper  # noqa: PLC0415 - it takes its time

    inside = f"{name}/of_one_image"
    for node in _nodes(proto.graph):
        node.input[:] = [inside if value == name else value for value in node.input]
        node.output[:] = [inside if value == name else value for value in node.output]
    for node in _nodes(proto.graph):
        for attribute in node.attribute:
            for body in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())):
                for output in body.output:
                    output.name = inside if output.name == name else output.name
    ends = [name, inside] if operator == "Squeeze" else [inside, name]
    opset = next((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), 1)
    if opset < _AXES_ARE_INPUT:
        return helper.make_node(operator, ends[:1], ends[1:], inside, axes=[0])
    axes = f"{inside}/axes"
    proto.graph.initializer.append(helper.make_tensor(axes, 7, [1], [0]))
    return helper.make_node(operator, [ends[0], axes], ends[1:], inside)


def _axis_of_one(value: ValueInfoProto) -> Any:
    axis = type(value.type.tensor_type.shape).Dimension()
    axis.dim_value = 1
    return axis


def _dims(value: ValueInfoProto) -> list[Any]:
    """Each axis: its number, its name, or None; empty where no shape is declared."""
    dims = value.type.tensor_type.shape.dim
    return [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in dims]


def _number(axis: Any) -> int | None:
    return axis if isinstance(axis, int) and axis >= 0 else None
