"""Built-in heads as parsers: callable under a name, with advice where they refuse outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headrace._core.errors import ParserError
from headrace._core.findings import Data
from headrace._core.types import Arrays
from headrace.infer.parsers.head import (
    AnyHead,
    Head,
    HeadParams,
    LayerLike,
    Layout,
    Shape,
    UnfitError,
    layers_text,
    per_item,
)
from headrace.meta.detections import BatchDetections, Detections
from headrace.meta.layers import DetectionParams, Layer, NetworkInfo, layers_of
from headrace.network.tensor_spec import TensorSpec

Reading = tuple[Layout, Sequence["tuple[str, Shape] | None"]]
_READINGS = 16  # that a parser remembers; the shapes of a model's outputs may change


@dataclass(frozen=True, slots=True)
class BuiltinParser:
    """A head under its name, callable like any parser of its kind.

    It refuses outputs that another head is the likelier reader of, and renders what a head refuses
    as an error with advice.
    """

    head: AnyHead
    _known: dict[Any, Reading] = field(default_factory=dict, repr=False, compare=False)

    def __call__(
        self, layers: Mapping[str, Layer], network: NetworkInfo, params: HeadParams
    ) -> Any:
        """Decode one batch item.

        Raises:
            ParserError: the outputs are not what the head needs; names the layers that exist and
                the built-in heads that fit them.
        """
        outputs = {name: layer.data[None] for name, layer in layers.items()}
        decoded = self._decoded(outputs, network, params)
        return decoded.boxes if isinstance(decoded, BatchDetections) else decoded

    @property
    def reads_batches(self) -> bool:
        """True if `batch` decodes any outputs that the head takes."""
        return all(layout.batched for layout in self.head.layouts)

    def batch(
        self, outputs: Arrays, network: NetworkInfo, params: HeadParams
    ) -> BatchDetections | None:
        """Decode all items of a batch, where the head reads them at once; else None.

        Args:
            outputs: (B, ...) arrays in binding order.
            network, params: as for a call.

        Raises:
            ParserError: as a call, for any of the items.
        """
        decoded = self._decoded(outputs, network, params, batched=True)
        return decoded if isinstance(decoded, BatchDetections) else None

    def _decoded(
        self,
        outputs: Arrays,
        network: NetworkInfo,
        params: HeadParams,
        *,
        batched: bool = False,
    ) -> Any:
        """The boxes of all items, from a layout that reads these at once; else the first's results.

        `batched` gives None in place of the latter.
        """
        try:
            layout, entries = self._reading(outputs, network, params)
            if batched and not layout.batched:
                return None
            arrays = layout.arrays(entries, outputs)
            # Wild numbers are dealt with by value: a decoder never warns about them.
            with np.errstate(all="ignore"):
                return layout.decode(arrays, network, params)
        except UnfitError as unfit:
            layers = list(layers_of(outputs, 0).values())
            rivals = None
            if unfit.fix:  # it is about the number of classes
                classes = self.classes(layers, network, params.num_classes)
                rivals = self._rivals(layers, network, params, classes)
            raise self._refusal(layers, network, params, rivals or unfit) from None

    def _reading(self, outputs: Arrays, network: NetworkInfo, params: HeadParams) -> Reading:
        """How the head reads outputs of these names, types and shapes; found once."""
        axes = tuple([(name, data.dtype, data.shape[1:]) for name, data in outputs.items()])
        key = axes, network, params.num_classes
        reading = self._known.get(key)
        if reading is None:
            layers = list(layers_of(outputs, 0).values())
            layout, entries, classes = self.head.choose(layers, network, params)
            if classes not in (None, params.num_classes):
                rivals = self._rivals(layers, network, params, classes)
                if rivals is not None:
                    try:
                        raise rivals
                    finally:
                        del rivals  # its traceback holds this frame, and so the outputs
            if len(self._known) >= _READINGS:
                self._known.clear()
            reading = layout, [entry and (entry[0].name, entry[1]) for entry in entries]
            self._known[key] = reading
        return reading

    def classes(
        self, outputs: Iterable[LayerLike | TensorSpec], network: NetworkInfo | None, num: int
    ) -> int | None:
        """How many classes the outputs hold, read by this parser; None if they do not tell.

        `num` is the number that is expected, which decides where the outputs leave a choice.
        """
        return self.head.classes([per_item(x) for x in outputs], network, num)

    def reads(self, outputs: Iterable[LayerLike | TensorSpec], network: NetworkInfo | None) -> bool:
        """True if a layout of the head fits the outputs, or their sizes are not known yet."""
        items = [per_item(x) for x in outputs]
        if any(d is None for item in items for d in item.shape):
            return True
        return any(layout.match(items, network) is not None for layout in self.head.layouts)

    def _rivals(
        self,
        layers: Sequence[LayerLike],
        network: NetworkInfo,
        params: HeadParams,
        classes: int | None,
    ) -> UnfitError | None:
        """Another number of classes is right only where no other head is the likelier reader."""
        number = params.num_classes
        if not number or not better_than(self.head, layers, network, number):
            return None
        counted = "" if classes is None else f": read so they hold {classes} classes"
        return UnfitError(
            f"the network's outputs do not fit this head{counted}, but "
            f"num-detected-classes={number}",
            expected=f"{self.head.needs} with C={number}",
        )

    def _refusal(
        self,
        layers: Sequence[LayerLike],
        network: NetworkInfo,
        params: HeadParams,
        unfit: UnfitError,
    ) -> ParserError:
        head = self.head
        fix = [f"the network's outputs are {layers_text(layers)}"]
        if not unfit.fix and (names := renaming(head, layers, network)):
            fix.append(f"it finds them by name: {names}")
        fix += (
            [unfit.fix]
            if unfit.fix
            else _advice(layers, network, params.num_classes, key=head.key, besides=head.name)
        )
        return ParserError(
            unfit.found,
            where=f"{head.key}={head.name}",
            expected=unfit.expected or head.needs,
            fix=fix,
            data=_advised(
                [
                    *({"num-detected-classes": str(n)} for n in unfit.classes),
                    *({head.key: name} for name in unfit.parsers),
                ]
            ),
        )


def _advised(changes: Sequence[Mapping[str, str]]) -> Data | None:
    """Changes as data of an error, see `headrace.infer.trial.advice`."""
    rows = [{"set": change, "basis": "guess"} for change in changes]
    return {"advice": rows} if rows else None


def parse_coverage_bbox(
    layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
) -> Detections:
    """Decode a coverage and a box grid: the parser used when a config names no function.

    Raises:
        ParserError: see `decode_coverage_bbox`; names the outputs that exist and the built-in heads
            that fit them.
    """
    from headrace.infer.parsers import coverage

    try:
        return coverage.decode_coverage_bbox(layers, network, params)
    except UnfitError as unfit:
        layer_list = list(layers.values())
        fix = [f"the network's outputs are {layers_text(layer_list)}"]
        fix += _advice(layer_list, network, params.num_classes) or [
            "name your parser with parse-bbox-func-name and its library with custom-lib-path"
        ]
        raise ParserError(
            unfit.found,
            where="built-in parser (no parse-bbox-func-name)",
            expected="a layer [C, gh, gw] with 'cov' in its name and one [4*C, gh, gw] with 'bbox'",
            fix=fix,
        ) from None


def better_than(
    head: AnyHead,
    outputs: Iterable[LayerLike | TensorSpec],
    network: NetworkInfo | None,
    num_classes: int,
) -> list[str]:
    """Names of the built-in heads that fit the outputs better than `head`, best first.

    Only a head that cannot read them, or reads another number of classes, has betters: those more
    probable, or as probable with `num_classes` classes. Outputs found by name, and several that
    fit, are proof enough.
    """
    layer_list = list(outputs)
    items = [per_item(x) for x in layer_list]
    if any(d is None for item in items for d in item.shape):
        return []  # what the sizes would tell is not known yet
    own = head.rank(items, network, num_classes, every=True)
    if own is not None and own[1] == 0:
        return []
    for layout in head.layouts:
        if (layout.outs[0].names or len(items) > 1) and layout.match(items, network):
            return []
    from headrace.infer.parsers.catalogue import HEADS_OF, suggest

    names = suggest(layer_list, network, num_classes, key=head.key)
    by_name = {other.name: other for other in HEADS_OF[head.key]}
    ranks = {name: by_name[name].rank(items, network, num_classes) for name in names}
    return [name for name, rank in ranks.items() if rank and (own is None or rank < own)]


def renaming(
    head: AnyHead, outputs: Iterable[LayerLike | TensorSpec], network: NetworkInfo | None
) -> str:
    """How to name outputs that fit `head` but for their names; empty if that would not help."""
    names = head.misnamed([per_item(x) for x in outputs], network)
    pairs = [f"{old!r} must be {new!r}" for old, new in names.items()]
    return f"{', '.join(pairs)} in the model" if pairs else ""


def _advice(
    layers: Sequence[LayerLike],
    network: NetworkInfo | None,
    num_classes: int | None,
    *,
    key: str = Head.key,
    besides: str | None = None,
) -> list[str]:
    """Lines for an error: the built-in heads that the outputs look like, if any."""
    from headrace.infer.parsers.catalogue import HEADS_OF, suggest

    names = [n for n in suggest(layers, network, num_classes, key=key) if n != besides][:3]
    if not names:
        return []
    by_name = {head.name: head for head in HEADS_OF[key]}
    return ["these outputs look like:"] + [
        f"  {key}={name}   ({by_name[name].summary})" for name in names
    ]
