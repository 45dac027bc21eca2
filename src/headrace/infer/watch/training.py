"""Rules on a network's input, against the images of its training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.findings import Finding
from headrace._core.types import Array
from headrace.config.enums import PARSER_FIELDS, ColorFormat, ProcessMode
from headrace.infer.recognise.exporters import (
    BYTES,
    HALF,
    IMAGENET,
    ULTRALYTICS,
    UNIT,
    USUAL,
    YOLOX,
    Exporter,
    by_metadata,
    selects,
)
from headrace.infer.recognise.first_layers import (
    FOLDED,
    learnt_mean,
    middle,
    natural_answers,
    spread_ratio,
)
from headrace.infer.recognise.names import names_in
from headrace.infer.trial import Change, advised, parser_change, range_change
from headrace.infer.trial.advice import Basis
from headrace.infer.watch.rules import FINAL_ROWS

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.infer.parsers.labels import Labels
    from headrace.infer.preprocess import Preprocessor
    from headrace.infer.recognise.stem import Stem
    from headrace.infer.trial import Sample
    from headrace.network.tensor_spec import TensorSpec

# An image's contrast and a network's taste vary by a few times; the ranges in use differ by 57 to
# 255 times. In between nothing is said.
_FAR = 20.0
_NEAR = 5.0  # times the spread in training: ranges that are likely
_LEAST_ROW, _MOST_ROWS = 6, 1000  # values of a row, and rows of a selection
_UNIT = f"{UNIT.factor:.10g}"
_HUNDREDTHS = 0.01  # spread of a first layer's answers
_PATCHES = 1500
_CONTRAST = 12.0  # standard deviation of bytes: below it the images say nothing


def byte_range(pre: Preprocessor) -> tuple[float, float]:
    """The lowest and highest value that a byte becomes in any channel."""
    means = pre.offsets or (0.0,)
    return (0 - max(means)) * pre.scale, (255 - min(means)) * pre.scale


def training_findings(
    cfg: ModelConfig,
    pre: Preprocessor,
    stem: Stem,
    labels: Labels,
    *,
    samples: Sequence[Sample],
    frame: tuple[int, int],
    outputs: Sequence[TensorSpec] = (),
) -> Iterator[Finding]:
    """Findings from the model's file alone, or with inputs that were given to the network.

    Args:
        cfg: the config.
        pre: its pre-processing; one with a mean image is not judged.
        stem: the beginning of the model file.
        labels: names of the classes.
        samples: with (C, H, W) inputs of the network; none judges by natural images.
        frame: width and height of the frames in pixels; zeros if they are not known.
        outputs: of the model, batch first; none if they are not known.
    """
    yield from _of_selection(cfg, stem, outputs)
    yield from _of_shape(cfg, pre, stem, frame)
    if pre.mean is None:
        yield from _of_exporter(cfg, pre, stem, frame)
        yield from _of_yolox(cfg, pre, frame)
        if stem.normalises:
            yield from _of_stem(pre, stem)
        elif stem.statistics is not None:
            yield from _of_statistics(cfg, pre, stem, samples)
        else:
            yield from _of_weights(cfg, pre, stem, samples)
    yield from _of_names(stem, labels)


def _given(pre: Preprocessor) -> str:
    low, high = byte_range(pre)
    return f"net-scale-factor={pre.scale:.6g} gives the network {low:.4g} to {high:.4g}"


def _of_exporter(
    cfg: ModelConfig, pre: Preprocessor, stem: Stem, frame: tuple[int, int]
) -> Iterator[Finding]:
    known = by_metadata(stem.metadata)
    if not known or known[0] is not ULTRALYTICS:
        return
    if stem.metadata.get("task", "classify") == "classify":
        return
    said = "the model's metadata (Ultralytics) says"
    low, high = byte_range(pre)
    if high > 2 or high < 0.5 or low < -0.1:
        text = f"images have the wrong range: {_given(pre)}; {said} 0 to 1"
        yield _range(text, [range_change(UNIT, cfg)], "read")
    yield from _swapped(cfg, ULTRALYTICS, said, "read")
    said = f"{said} letterboxed"
    yield from _squeezed(cfg, pre, frame, said, {**_LETTERBOX, "symmetric-padding": "1"}, "read")


def _of_selection(cfg: ModelConfig, stem: Stem, outputs: Sequence[TensorSpec]) -> Iterator[Finding]:
    """A parser of candidates reads a model that selects its boxes, by metadata and shape."""
    known, field = by_metadata(stem.metadata), PARSER_FIELDS.get(cfg.network_type)
    name = getattr(cfg, field) if field is not None and cfg.custom_lib_path is None else None
    if name not in FINAL_ROWS or not known or known[0] is not ULTRALYTICS:
        return
    if not selects(stem.metadata) or "RTDETR" in stem.metadata.get("head", ""):
        return
    if not any(_is_selection(spec.shape[1:]) for spec in outputs):
        return  # the metadata of another file
    text = f"{name} reads a score of each class, and the model's metadata (Ultralytics) says that"
    text += " it selects its boxes itself: its rows are box, score, class number"
    change = parser_change(FINAL_ROWS[name], cfg.network_type, cfg)
    key = field.replace("_", "-") if field else ""
    yield advised(Finding("boxes-odd", "warning", text, key), [change], basis="read")


def _is_selection(shape: Sequence[object]) -> bool:
    """Whether an output of this shape, batch left out, can be rows of box, score, class number."""
    rows, width = (d if isinstance(d, int) else 0 for d in (*shape, 0, 0)[:2])
    return len(shape) == 2 and _LEAST_ROW <= width < rows <= _MOST_ROWS


def _of_yolox(cfg: ModelConfig, pre: Preprocessor, frame: tuple[int, int]) -> Iterator[Finding]:
    """Undecoded YOLOX comes from its own exporter: BGR in 0..255 since 0.1.1, letterboxed."""
    if cfg.parse_bbox_func_name != "HeadraceParseYoloX" or cfg.custom_lib_path:
        return
    said = "YOLOX is trained on"
    if pre.scale == 1 and not pre.offsets:
        yield from _swapped(cfg, YOLOX, said, "guess")
    yield from _squeezed(cfg, pre, frame, f"{said} letterboxed images", _LETTERBOX, "guess")


_LETTERBOX: Change = {"maintain-aspect-ratio": "1"}


def _range(text: str, changes: Sequence[Change], basis: Basis = "guess") -> Finding:
    """The finding that the range of images is wrong."""
    field = "offsets" if "net-scale-factor" not in changes[0] else "net-scale-factor"
    return advised(Finding("input-range", "warning", text, field), changes, basis=basis)


def _swapped(cfg: ModelConfig, exporter: Exporter, said: str, basis: Basis) -> Iterator[Finding]:
    wrong = {"RGB": ColorFormat.BGR, "BGR": ColorFormat.RGB}[exporter.order or "RGB"]
    if cfg.model_color_format is wrong:
        text = f"red and blue are swapped: model-color-format={wrong.value} ({wrong.name}), "
        finding = Finding(
            "input-colors", "warning", f"{text}but {said} {exporter.order}", "model-color-format"
        )
        yield advised(finding, [{"model-color-format": str(1 - wrong.value)}], basis=basis)


def _squeezed(
    cfg: ModelConfig,
    pre: Preprocessor,
    frame: tuple[int, int],
    said: str,
    change: Change,
    basis: Basis,
) -> Iterator[Finding]:
    shape = (frame[0] / frame[1]) / (pre.width / pre.height) if all(frame) else 1.0
    primary = cfg.process_mode is ProcessMode.PRIMARY
    if primary and not pre.maintain_aspect_ratio and not 1 / 1.25 <= shape <= 1.25:
        text = f"images are squeezed: frames of {frame[0]}x{frame[1]} are scaled to {pre.width}x"
        text += f"{pre.height}; {said}"
        finding = Finding("aspect-ratio", "warning", text, "maintain-aspect-ratio")
        yield advised(finding, [change], basis=basis)


def _of_stem(pre: Preprocessor, stem: Stem) -> Iterator[Finding]:
    """The graph scales by itself: by about 1/255 it expects bytes, by about 1 to 10 units."""
    low, high = byte_range(pre)
    factor, shift = float(np.abs(stem.factor).max()), float(np.abs(stem.shift).max())
    if factor <= 1 / 30 and high - low <= 2.1:
        text = f"images are scaled twice: {_given(pre)}, and the model itself multiplies by "
        text += f"{factor:.4g}: it expects 0 to 255"
        yield _range(text, [{"net-scale-factor": "1"}], "read")
    elif 1 < factor <= 10 and shift and high - low >= 50:
        text = f"images have the wrong range: {_given(pre)}, and the model itself multiplies by "
        text += f"{factor:.4g} and adds {-shift:.4g}: it expects 0 to 1"
        yield _range(text, [{"net-scale-factor": _UNIT}], "read")
    elif shift and max(pre.offsets, default=0.0) * pre.scale > 0.3 * (high - low):
        text = f"means are subtracted twice: offsets={';'.join(f'{v:g}' for v in pre.offsets)}, and"
        text += " the model itself subtracts its own"
        yield _range(text, [{"offsets": None}], "read")


def _of_statistics(
    cfg: ModelConfig, pre: Preprocessor, stem: Stem, samples: Sequence[Sample]
) -> Iterator[Finding]:
    """The first batch normalisation keeps statistics of the first convolution's outputs."""
    ratio = trained_ratio(pre, stem, samples)
    if ratio is None:
        return
    if 1 / _FAR <= ratio <= _FAR:
        yield from _of_mean(cfg, pre, stem)
        return
    much = f"{ratio:.3g} times" if ratio > 1 else f"1/{1 / ratio:.3g} of"
    text = f"images have the wrong range: {_given(pre)}; the first layer's values spread {much} "
    text += "what its batch normalisation learnt: "
    text += f"a factor of about {pre.scale / ratio:.1g} fits them"
    near = [u for u in USUAL if 1 / _NEAR <= ratio * u.factor / pre.scale <= _NEAR] or USUAL
    yield _range(text, [range_change(usual, cfg) for usual in near])


def _of_mean(cfg: ModelConfig, pre: Preprocessor, stem: Stem) -> Iterator[Finding]:
    """The mean that it learnt is that of an image which the config can make: no black or white."""
    assert stem.conv is not None
    size = np.abs(stem.conv).sum(axis=(1, 2, 3)).max()
    if np.abs(stem.conv.sum(axis=(1, 2, 3))).max() < 0.1 * size:
        return  # filters of edges alone do not see the mean
    means = pre.offsets or (0.0,)
    byte = learnt_mean(stem) / pre.scale + sum(means) / len(means)
    if -300 < byte < 15 or 240 < byte < 555:
        setting = f"offsets={';'.join(f'{m:g}' for m in means)}" if pre.offsets else "no offsets"
        text = f"offsets are missing or wrong: with {setting} and net-scale-factor={pre.scale:.6g} "
        text += f"the mean that the first layers learnt is that of bytes of {byte:.0f}, where "
        text += "images have about 100 to 140"
        usual = (HALF, IMAGENET) if stem.conv.shape[1] == 3 else ()
        offsets = [{"offsets": range_change(u, cfg)["offsets"]} for u in usual]
        finding = Finding("input-range", "warning", text, "offsets")
        yield advised(finding, offsets) if offsets else finding


def _of_weights(
    cfg: ModelConfig, pre: Preprocessor, stem: Stem, samples: Sequence[Sample]
) -> Iterator[Finding]:
    """A trained first layer answers with about 1, not with hundreds or hundredths.

    Means that are subtracted from bytes speak of old networks without normalisation, whose layers
    do answer with hundreds.
    """
    spread = answers(stem, samples, pre.scale)
    if spread is None:
        return
    size = middle(spread)
    seen = f"images have the wrong range: {_given(pre)}; the results of the first layer "
    seen += f"vary by {size:.3g}, where about 1 is usual: "
    if size <= _HUNDREDTHS and pre.scale < 0.1:
        yield _range(f"{seen}it was trained on larger numbers", [range_change(BYTES, cfg)])
    elif size >= FOLDED and pre.scale >= 0.5 and not pre.offsets:
        after = {usual: size * usual.factor / pre.scale for usual in USUAL if usual.factor < 0.5}
        likely = sorted(after, key=lambda usual: abs(np.log(after[usual])))
        text = f"{seen}which of the usual ranges it was trained with, only its results tell"
        yield _range(text, [range_change(usual, cfg) for usual in likely])


def trained_ratio(pre: Preprocessor, stem: Stem, samples: Sequence[Sample]) -> float | None:
    """Compare the spread of the first convolution's results with that in training.

    Returns:
        How many times as far they spread; None where weights or images say nothing.
    """
    spread = None if stem.statistics is None else answers(stem, samples, pre.scale)
    return None if spread is None else spread_ratio(stem, spread)


def answers(stem: Stem, samples: Sequence[Sample], scale: float) -> Array | None:
    """Measure the standard deviation of each first filter's answers to the images.

    Where the graph cuts the image first, or there are no images, to natural ones. None where
    there is no convolution, or the images have no contrast.
    """
    weights = stem.conv
    if weights is not None and (not samples if stem.direct else stem.focus):
        return natural_answers(weights) * abs(scale)
    if weights is None or not stem.direct:
        return None
    _, channels, high, wide = weights.shape
    patches = []
    for sample in samples:
        tensor = sample.tensor
        if (
            tensor.ndim != 3
            or tensor.shape[0] != channels
            or min(tensor.shape[1:]) < max(high, wide)
        ):
            return None
        if float(tensor.std()) < _CONTRAST * scale:
            continue
        windows = np.lib.stride_tricks.sliding_window_view(tensor, (high, wide), axis=(1, 2))
        rows, columns = windows.shape[1:3]
        step = max(1, int((rows * columns / _PATCHES) ** 0.5))
        some = windows[:, ::step, ::step].transpose(1, 2, 0, 3, 4)
        patches.append(some.reshape(-1, channels * high * wide))
    if not patches:
        return None
    responses = np.concatenate(patches).astype(np.float64) @ weights.reshape(len(weights), -1).T
    return np.asarray(responses.std(axis=0))


def _of_shape(
    cfg: ModelConfig, pre: Preprocessor, stem: Stem, frame: tuple[int, int]
) -> Iterator[Finding]:
    free = len(stem.axes) == 4 and None in stem.axes[2:]
    if not free or cfg.infer_dims is None or cfg.process_mode is not ProcessMode.PRIMARY:
        return
    if pre.maintain_aspect_ratio or not all(frame):
        return
    net, real = pre.width / pre.height, frame[0] / frame[1]
    if (net < 0.77 and real > 1.3) or (net > 1.3 and real < 0.77):
        dims = f"infer-dims={pre.channels};{pre.height};{pre.width}"
        text = f"height and width look swapped: {dims} (channels, height, width) for "
        finding = Finding(
            "input-transposed", "warning", f"{text}frames of {frame[0]}x{frame[1]}", "infer-dims"
        )
        yield advised(finding, [{"infer-dims": f"{pre.channels};{pre.width};{pre.height}"}])


def _of_names(stem: Stem, labels: Labels) -> Iterator[Finding]:
    """Find labels that the metadata gives to other classes; translations match none of them."""
    names, label_names = metadata_names(stem), [_plain(x) for x in labels.detector]
    known = {_plain(name): i for i, name in names.items()}
    matches = [(i, known[name]) for i, name in enumerate(label_names) if name in known]
    moved = [(i, j) for i, j in matches if i != j]
    if len(moved) < 2 or len(moved) < 0.5 * len(matches):
        return
    line, _ = moved[0]
    text = f"labels are of another model or shifted: line {line + 1} of labelfile-path names class "
    text += f"{line} {labels.detector[line]!r}, which the model's metadata calls "
    text += f"{names.get(line, 'nothing')!r}; {len(moved)} of {len(matches)} names stand elsewhere"
    if all(i == j + 1 for i, j in moved):
        text += f": take out the line before ({labels.detector[0]!r})"
    yield Finding("labels-moved", "warning", text, "labelfile-path")


def metadata_names(stem: Stem) -> dict[int, str]:
    """Names of the classes that the exporter wrote down, by number; plain numbers are none."""
    names, _ = names_in(stem.metadata) or ((), "")
    return {i: name for i, name in enumerate(names) if not name.isdecimal()}


def _plain(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum())
