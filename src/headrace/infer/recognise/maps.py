"""Outputs that are vectors or maps: classifiers, embeddings, segmentation, images of values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.config.enums import NetworkType, TensorOrder
from headrace.infer.recognise.heads import DETECTOR, HeadReading, View, class_reading
from headrace.infer.recognise.values import reach_of, unit, values_of

if TYPE_CHECKING:
    from headrace.network.tensor_spec import TensorSpec

_ACTIVATIONS = frozenset(
    ("Relu", "LeakyRelu", "PRelu", "Elu", "Selu", "Celu", "Gelu", "HardSwish", "Mish", "Tanh",
     "BatchNormalization", "InstanceNormalization", "LayerNormalization", "GroupNormalization",
     "MaxPool", "AveragePool")
)  # fmt: skip
"""Operators that end features, or values around 0; scores of classes end in weights or chances."""
_EMBEDS = _ACTIVATIONS | {"GlobalAveragePool", "ReduceMean", "LpNormalization"}
"""Operators that end a vector of features; scores of classes end in weights of their own."""

_NORMS = frozenset(("ReduceL2", "LpNormalization"))
_FEATURES = frozenset(
    ("last_hidden_state", "pooler_output", "image_embeds", "embedding", "embeddings", "fc_pred")
)
_FEATURE_AXES = frozenset(
    ("dim", "emb", "embed", "embed_dim", "embedding", "embedding_dim", "embedding_size", "feature",
     "features", "feature_dim", "hidden", "hidden_dim", "hidden_size")
)  # fmt: skip
_CROPS = {(112, 112): "faces", (256, 128): "persons", (384, 128): "persons"}
_FEATURE_WIDTHS = (128, 256, 384, 512, 768, 1024, 1536, 2048)
_DEPTH = ("depth", "disparity")


def vectors(view: View) -> list[HeadReading] | None:
    """Readings of outputs of one axis: scores of classes, or features; None for other outputs."""
    if len(view.items) == 1 and view.items[0].name in _FEATURES:
        return [_features(f"output {view.items[0].name!r}")]
    shapes = [tuple(d for d in item.shape if d != 1) for item in view.items]
    if any(len(shape) != 1 or item.dtype.kind != "f" for shape, item in
           zip(shapes, view.items, strict=True)):  # fmt: skip
        return None
    ends = set(view.evidence.ends.values())
    widths = {shape[0] for shape in shapes}
    if len(shapes) == 1 and "Softmax" not in ends:
        why = _why_features(view, ends)
        if why:
            return [_features(why)]
    if len(widths) != 1 or (widths == {4} and "Softmax" not in ends):
        return None
    return [class_reading(view, "one value for each class")]


def _why_features(view: View, ends: set[str]) -> str:
    """Evidence that a vector holds features, or an empty text."""
    width = next(d for d in view.items[0].shape if d != 1)
    if _EMBEDS & ends and not (ends <= _POOLS and _is_of_classes(view, width)):
        return f"a vector behind {', '.join(sorted(ends))}"
    if "Div" in ends and view.evidence.operators & _NORMS:
        return "a vector that is divided by its length"
    named = {d.lower() for spec in view.evidence.outputs for d in spec.shape if isinstance(d, str)}
    if axes := sorted(named & _FEATURE_AXES):
        return f"an axis that the model calls {axes[0]!r}"
    size = view.network.height, view.network.width
    if width in _FEATURE_WIDTHS and width != view.names and size in _CROPS:
        return f"{width} values of a crop of {size[1]}x{size[0]}, as models of {_CROPS[size]} take"
    return ""


def _is_of_classes(view: View, width: object) -> bool:
    """Whether a vector behind a pooling is as wide as the classes, as SqueezeNet ends."""
    if width == view.names or width in _IMAGENET:
        return True
    return isinstance(width, int) and width % 8 != 0  # widths of layers are multiples of 8


_POOLS = frozenset(("GlobalAveragePool", "AveragePool", "ReduceMean", "Relu"))
_IMAGENET = (1000, 1001)


def _features(why: str) -> HeadReading:
    return HeadReading(NetworkType.OTHER, None, None, "embedding", why)


def maps(view: View, *, anywhere: bool = False) -> list[HeadReading] | None:
    """Readings of one map: of scores, of class numbers, of one value; None for other outputs.

    Args:
        view: the outputs.
        anywhere: metadata say that it is segmentation: the map may be of any size.
    """
    if {item.name for item in view.items} == {"class_queries_logits", "masks_queries_logits"}:
        return _mask_queries(view)
    if len({item.shape for item in view.items}) != 1:
        return None  # of several maps of one shape the first is the main one
    item = view.items[0]
    match tuple(d for d in item.shape if d != 1):
        case (int() as height, int() as width) if item.dtype.kind in "iu" and (
            anywhere or _alike(view, height, width)
        ):
            why = f"a map of class numbers, {width}x{height}"
            words, parser = "semantic segmentation with arg-max inside", "HeadraceParseClassMap"
            return [HeadReading(NetworkType.SEGMENTATION, parser, view.names or None, words, why)]
        case (int() as height, int() as width) if item.dtype.kind == "f" and _large(view, item):
            return _one_value(view, f"a map of one value, {width}x{height}")
    found = _channels(view, item)
    if found is None:
        return None
    channels, height, width, last = found
    # of transformers: maps of 1/32 of the image
    named = anywhere or (item.name == "logits" and _alike(view, height, width))
    if not named and (height * 4 < view.network.height or width * 4 < view.network.width):
        return None
    told = "" if anywhere else _why_image(view, item, channels, height)
    if told:
        return [image_output(told)]
    if channels < 2 or item.dtype.kind != "f":
        return []
    if _is_pose(view, channels, height, width):
        why = f"{channels} maps of a quarter of a crop of {view.network.width}x"
        why += f"{view.network.height}, as models of poses take"
        return [HeadReading(DETECTOR, "HeadraceParseHeatmapPose", 1, "points of a crop", why,
                            suppressed=True)]  # fmt: skip
    why = f"a map of {channels} scores for each of {width}x{height} cells"
    fields = {"segmentation_output_order": TensorOrder.NHWC} if last else {}
    classes = HeadReading(
        NetworkType.SEGMENTATION, None, channels, "semantic segmentation", why, fields=fields
    )
    if told is None:
        return [classes, image_output("three maps of the image's size")]
    if anywhere or view.names:
        return [classes]
    end = view.evidence.ends.get(item.name, "")
    if end in _ACTIVATIONS:
        return [_feature_map(f"{channels} maps of {width}x{height} cells behind {end}")]
    if end in _CHANCES or named or height == view.network.height:
        return [classes]
    if channels % _WIDTHS == 0:
        return [classes, _feature_map(f"{channels} maps of {width}x{height} cells")]
    if channels in _POINTS and max(view.network.height, view.network.width) <= _LARGEST_CROP:
        points = HeadReading(DETECTOR, "HeadraceParseHeatmapPose", 1, "points of a crop", why,
                             suppressed=True)  # fmt: skip
        quarter = (4 * height, 4 * width) == (view.network.height, view.network.width)
        return [classes, points] if quarter else [classes]
    return [classes]


_CHANCES = ("Softmax", "LogSoftmax", "Sigmoid")
_WIDTHS = 64
"""Layers are as wide as a multiple of it; data sets have other numbers of classes."""
_LARGEST_CROP = 512


def _feature_map(why: str) -> HeadReading:
    return HeadReading(NetworkType.OTHER, None, None, "feature map", why)


def _mask_queries(view: View) -> list[HeadReading]:
    """Queries of transformers' MaskFormer and Mask2Former, each with classes and a mask."""
    logits = next(item for item in view.items if item.name.startswith("class"))
    last = logits.shape[-1]
    classes = last - 1 if isinstance(last, int) else view.names or None
    words = "semantic segmentation by mask queries"
    return [HeadReading(NetworkType.SEGMENTATION, "HeadraceParseMaskQueries", classes, words,
                        "names of the outputs; the last logit means no class")]  # fmt: skip


def depth_map(why: str) -> HeadReading:
    """A map of distances, drawn in colours."""
    return HeadReading(NetworkType.OTHER, None, None, "depth map", why,
                       fields={"output_image": "depth"})  # fmt: skip


def image_output(why: str, words: str = "image to image") -> HeadReading:
    """An output that is an image, drawn as it is."""
    return HeadReading(NetworkType.OTHER, None, None, words, why,
                       fields={"output_image": "image"})  # fmt: skip


_POSITIVE = ("Relu", "Softplus", "Exp")
_LIMITED = ("Tanh", "Clip", "DepthToSpace")
_OF_IMAGES = ("image", "img", "styl", "enhanc", "restor", "denois", "rgb", "super", "upscal")
_COLORS = 3
_BYTES = 30.0  # scores of classes do not reach so far, bytes do


def _why_image(view: View, item: TensorSpec, channels: int, height: int) -> str | None:
    """Find evidence of an image: empty of a map of classes, None where it may be either."""
    if channels not in (1, _COLORS) or view.names:
        return ""
    if height > view.network.height:
        return f"larger than the input: {height} rows for {view.network.height}"
    if channels == 1:
        return ""
    end = view.evidence.ends.get(item.name, "")
    if item.dtype.kind == "u":
        return "three maps of bytes"
    if end in _LIMITED:
        return f"three maps behind {end}"
    if word := next((word for word in _OF_IMAGES if word in item.name.lower()), ""):
        return f"output {item.name!r} ({word})"
    segments = any("segmentation" in name or "classifier" in name
                   for name in view.evidence.node_names)  # fmt: skip
    if end in ("Softmax", "LogSoftmax") or segments or height != view.network.height:
        return ""
    reach = reach_of(values_of(view))
    return f"three maps that reach {reach:.0f}: bytes" if reach > _BYTES else None


def anomalies(view: View) -> list[HeadReading] | None:
    """The reading of maps of unusual places, as anomalib writes them; None for other outputs."""
    if not {"anomaly_map", "pred_score"} <= {item.name for item in view.items}:
        return None
    why = "outputs anomaly_map and pred_score, as anomalib names them"
    return [HeadReading(NetworkType.OTHER, None, None, "anomaly map", why)]


def _channels(view: View, item: TensorSpec) -> tuple[int, int, int, bool] | None:
    """Channels, height and width, and whether the channels are the last axis."""
    match item.shape:
        case (int() as first, int() as second, int() as third):
            pass
        case _:
            return None
    interleaved = view.evidence.input.shape[-1] in (1, 3)
    if third in (1, _COLORS) and (first, second) == (view.network.height, view.network.width):
        return third, first, second, True
    size = view.network.height, view.network.width
    if third < min(size) and (first, second) == size and (second, third) != size:
        return third, first, second, True
    if interleaved and third < min(first, second) and first * 4 >= view.network.height:
        return third, first, second, True
    return first, second, third, False


_POSE_SIZES = ((256, 192), (384, 288), (128, 96))
_POINTS = (14, 15, 16, 17, 21, 26, 133)


def _is_pose(view: View, channels: int, height: int, width: int) -> bool:
    """Whether maps are of points: a crop of a person, and as many as data sets have."""
    size = view.network.height, view.network.width
    quarter = (4 * height, 4 * width) == size
    return quarter and size in _POSE_SIZES and channels in _POINTS and not view.names


def _alike(view: View, height: int, width: int) -> bool:
    """Whether a map has the proportions of the image, each side rounded up or down."""
    network = view.network
    cells = height / network.height
    return height > 1 and abs(width - cells * network.width) <= 1 + network.width / network.height


def _large(view: View, item: TensorSpec) -> bool:
    """Whether a map has the proportions of the image, and a quarter of its size or more."""
    height, width = (d for d in item.shape if isinstance(d, int) and d != 1)
    network = view.network
    return height * 4 >= network.height and height * network.width == width * network.height


def _one_value(view: View, why: str) -> list[HeadReading]:
    """One channel: depth by its name, a mask of one class by its sigmoid, else nothing."""
    item = view.items[0]
    if not view.names and max(d for d in item.shape if isinstance(d, int)) > max(
        view.network.height, view.network.width
    ):
        return [image_output(f"{why}, larger than the input")]
    if any(word in item.name.lower() for word in _DEPTH):
        return [depth_map(f"output {item.name!r}")]
    if view.evidence.ends.get(item.name) in _POSITIVE and not view.names:
        return [depth_map(f"{why}, of 0 and more without an upper limit")]
    classes, kind = view.names or 1, NetworkType.SEGMENTATION
    end = view.evidence.ends.get(item.name, "")
    if classes != 1 or (end in ("Sigmoid", "Clip", "HardSigmoid") and not unit(values_of(view))):
        return []
    words = "semantic segmentation of one class"
    if end == "Sigmoid":
        why += " behind a sigmoid: 0.5 and more is the class"
        return [HeadReading(kind, None, 1, words, why, fields={"segmentation_threshold": 0.5})]
    if any("segmentation_head" in name for name in view.evidence.node_names):
        why += ", a logit of segmentation_models_pytorch: above 0 is the class"
        return [HeadReading(kind, None, 1, words, why, fields={"segmentation_threshold": 0.0})]
    return []
