"""A Caffe network: inputs and layers of its text, the old forms made like the new."""

from __future__ import annotations

from dataclasses import dataclass

from headrace._core.errors import ModelError
from headrace._core.proto_text import Message, Scalar
from headrace.network.caffe.fields import Fields

_V1_TYPES = {
    "ABSVAL": "AbsVal",
    "ARGMAX": "ArgMax",
    "BNLL": "BNLL",
    "ELU": "ELU",
    "LRN": "LRN",
    "MVN": "MVN",
    "PRELU": "PReLU",
    "RELU": "ReLU",
    "SOFTMAX_LOSS": "SoftmaxWithLoss",
    "TANH": "TanH",
}
_UPGRADE = "upgrade it with Caffe's upgrade_net_proto_text, and the weights with \
upgrade_net_proto_binary"


@dataclass(frozen=True, slots=True)
class CaffeLayer:
    """One layer: `fields` are its own, `bottoms` and `tops` the blobs it reads and writes."""

    name: str
    type: str
    bottoms: tuple[str, ...]
    tops: tuple[str, ...]
    fields: Fields
    where: str


@dataclass(frozen=True, slots=True)
class Net:
    """Inputs (name, dims; dims may be missing) and the layers of the test phase, in order."""

    name: str
    inputs: list[tuple[str, tuple[int, ...]]]
    layers: list[CaffeLayer]


def read_net(message: Message, path: str) -> Net:
    """Inputs and layers of a parsed prototxt."""
    top = Fields(message, path, "the network")
    layers = []
    for field in ("layer", "layers"):
        for entry in message.entries.get(field, []):
            if isinstance(entry, Scalar):
                raise top.error(field, f"{field}: {entry.text!r}", f"{field} {{ ... }}")
            layer = _layer(entry, path, old=field == "layers")
            if layer is not None:
                layers.append(layer)
    if not layers:
        raise ModelError(
            "there are no layers", where=path, expected="a Caffe network: layer { name: ... }"
        )
    return Net(top.text("name"), _inputs(top), layers)


def _inputs(top: Fields) -> list[tuple[str, tuple[int, ...]]]:
    names = top.texts("input")
    shapes = [tuple(shape.integers("dim")) for shape in top.messages("input_shape")]
    flat = top.integers("input_dim")
    if not shapes and flat:
        if len(flat) != 4 * len(names):
            raise top.error("input_dim", f"{len(flat)} values of input_dim", f"{4 * len(names)}: "
                            "four for each input")  # fmt: skip
        shapes = [tuple(flat[i : i + 4]) for i in range(0, len(flat), 4)]
    if shapes and len(shapes) != len(names):
        raise top.error("input_shape", f"{len(shapes)} shapes for {len(names)} inputs",
                        "one for each")  # fmt: skip
    return list(zip(names, shapes or [()] * len(names), strict=True))


def _layer(message: Message, path: str, *, old: bool) -> CaffeLayer | None:
    if "layer" in message.entries:
        raise ModelError(
            "the network has the oldest form of layers (V0)",
            where=f"{path}:{message.line}",
            expected="layer { name: ... type: ... }, not a layer within each",
            fix=_UPGRADE,
        )
    bare = Fields(message, path, "a layer")
    name, kind = bare.text("name"), bare.text("type")
    if old:
        kind = _V1_TYPES.get(kind) or "".join(word.capitalize() for word in kind.split("_"))
    what = f"layer {name!r} ({kind})"
    fields = Fields(message, path, what)
    if not kind:
        raise fields.error("type", "the layer has no type", "type: ...")
    if not _in_test_phase(fields):
        return None
    return CaffeLayer(
        name=name,
        type=kind,
        bottoms=tuple(fields.texts("bottom")),
        tops=tuple(fields.texts("top")),
        fields=fields,
        where=f"{path}:{message.line}, {what}",
    )


def _in_test_phase(fields: Fields) -> bool:
    """Source: Caffe's rules: some include rule is met, or no exclude rule."""
    include, exclude = fields.messages("include"), fields.messages("exclude")
    if include:
        return any(_met(rule) for rule in include)
    return not any(_met(rule) for rule in exclude)


def _met(rule: Fields) -> bool:
    return (
        (not rule.has("phase") or rule.choice("phase", ["TRAIN", "TEST"]) == "TEST")
        and rule.integer("min_level") <= 0
        and rule.integer("max_level") >= 0
        and not rule.texts("stage")
    )
