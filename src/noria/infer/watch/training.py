"""Rules on the pictures a network gets, against those that its file says it was trained on."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from noria.config.enums import ColorFormat, ProcessMode
from noria.infer.watch.rules import Finding

if TYPE_CHECKING:
    from noria.config import ModelConfig
    from noria.infer.labels import Labels
    from noria.infer.preprocess import Preprocessor
    from noria.infer.watch.stem import Stem

_UNIT_TEXT = "net-scale-factor=0.0039215697906911373"
# A picture's contrast and a network's taste vary by a few times; the ranges in use differ by 57 to
# 255 times. In between nothing is said.
_FAR = 20.0
_HUNDREDS, _HUNDREDTHS = 30.0, 0.01  # spreads of a first layer's answers
_PATCHES = 1500
_CONTRAST = 12.0  # standard deviation of bytes: below it the pictures say nothing

Array = npt.NDArray[Any]


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
    tensors: Sequence[Array],
    frame: tuple[int, int],
) -> Iterator[Finding]:
    """Findings from the model's file alone, or with inputs that were given to the network.

    Args:
        cfg: the config.
        pre: its pre-processing; one with a mean image is not judged.
        stem: the beginning of the model file.
        labels: names of the classes.
        tensors: (C, H, W) inputs of the network.
        frame: width and height of the frames in pixels.
    """
    yield from _of_shape(cfg, pre, stem, frame)
    if pre.mean is None:
        yield from _of_exporter(cfg, pre, stem, frame)
        yield from _of_yolox(cfg, pre, frame)
        if stem.normalises:
            yield from _of_stem(pre, stem)
        elif stem.statistics is not None:
            yield from _of_statistics(pre, stem, tensors)
        elif stem.conv is not None:
            yield from _of_weights(pre, stem, tensors)
    yield from _of_names(stem, labels)


def is_ultralytics(stem: Stem) -> bool:
    """Whether the file was exported by Ultralytics: RGB in 0..1, letterboxed."""
    data = stem.metadata
    return "Ultralytics" in data.get("author", "") + data.get("description", "") and "task" in data


def _given(pre: Preprocessor) -> str:
    low, high = byte_range(pre)
    return f"net-scale-factor={pre.scale:.6g} gives the network {low:.4g} to {high:.4g}"


def _of_exporter(
    cfg: ModelConfig, pre: Preprocessor, stem: Stem, frame: tuple[int, int]
) -> Iterator[Finding]:
    if not is_ultralytics(stem) or stem.metadata.get("task") == "classify":
        return
    said = "the model's metadata (Ultralytics) says"
    low, high = byte_range(pre)
    if high > 2 or high < 0.5 or low < -0.1:
        text = f"pictures have the wrong range: {_given(pre)}; {said} 0 to 1: set {_UNIT_TEXT}"
        yield Finding("input-range", f"{text}, without offsets", "net-scale-factor")
    if cfg.model_color_format is ColorFormat.BGR:
        text = f"red and blue are swapped: model-color-format=1 (BGR), but {said} RGB: set "
        yield Finding("input-colors", f"{text}model-color-format=0", "model-color-format")
    yield from _squeezed(cfg, pre, frame, f"{said} letterboxed", " and symmetric-padding=1")


def _of_yolox(cfg: ModelConfig, pre: Preprocessor, frame: tuple[int, int]) -> Iterator[Finding]:
    """Undecoded YOLOX comes from its own exporter: BGR in 0..255 since 0.1.1, letterboxed."""
    if cfg.parse_bbox_func_name != "NoriaParseYoloX" or cfg.custom_lib_path:
        return
    said = "YOLOX is trained on"
    if pre.scale == 1 and not pre.offsets and cfg.model_color_format is ColorFormat.RGB:
        text = "red and blue are probably swapped: model-color-format=0 (RGB), but "
        yield Finding("input-colors", f"{text}{said} BGR: set model-color-format=1",
                      "model-color-format")  # fmt: skip
    yield from _squeezed(cfg, pre, frame, f"{said} letterboxed pictures")


def _squeezed(
    cfg: ModelConfig, pre: Preprocessor, frame: tuple[int, int], said: str, more: str = ""
) -> Iterator[Finding]:
    shape = (frame[0] / frame[1]) / (pre.width / pre.height) if all(frame) else 1.0
    primary = cfg.process_mode is ProcessMode.PRIMARY
    if primary and not pre.maintain_aspect_ratio and not 1 / 1.25 <= shape <= 1.25:
        text = f"pictures are squeezed: frames of {frame[0]}x{frame[1]} are scaled to {pre.width}x"
        text += f"{pre.height}; {said}: set maintain-aspect-ratio=1{more}"
        yield Finding("aspect-ratio", text, "maintain-aspect-ratio")


def _of_stem(pre: Preprocessor, stem: Stem) -> Iterator[Finding]:
    """The graph scales by itself: by about 1/255 it expects bytes, by about 1 to 10 units."""
    low, high = byte_range(pre)
    factor, shift = float(np.abs(stem.factor).max()), float(np.abs(stem.shift).max())
    if factor <= 1 / 30 and high - low <= 2.1:
        text = f"pictures are scaled twice: {_given(pre)}, and the model itself multiplies by "
        text += f"{factor:.4g}: it expects 0 to 255: set net-scale-factor=1"
        yield Finding("input-range", text, "net-scale-factor")
    elif 1 < factor <= 10 and shift and high - low >= 50:
        text = f"pictures have the wrong range: {_given(pre)}, and the model itself multiplies by "
        text += f"{factor:.4g} and adds {-shift:.4g}: it expects 0 to 1: set {_UNIT_TEXT}"
        yield Finding("input-range", text, "net-scale-factor")
    elif shift and max(pre.offsets, default=0.0) * pre.scale > 0.3 * (high - low):
        text = f"means are subtracted twice: offsets={';'.join(f'{v:g}' for v in pre.offsets)}, and"
        text += " the model itself subtracts its own: leave offsets out"
        yield Finding("input-range", text, "offsets")


def _of_statistics(pre: Preprocessor, stem: Stem, tensors: Sequence[Array]) -> Iterator[Finding]:
    """The first batch normalisation remembers what came out of the first convolution."""
    ratio = spread_ratio(pre, stem, tensors)
    if ratio is None:
        return
    if 1 / _FAR <= ratio <= _FAR:
        yield from _of_mean(pre, stem)
        return
    much = f"{ratio:.3g} times" if ratio > 1 else f"1/{1 / ratio:.3g} of"
    text = f"pictures have the wrong range: {_given(pre)}; the first layer's values spread {much} "
    text += "what its batch normalisation learnt: "
    text += f"about {pre.scale / ratio:.1g} would fit; usual are 1, {_UNIT_TEXT[17:]}, 0.0078431 "
    text += "with offsets=127.5;127.5;127.5, 0.0173 with offsets=123.675;116.28;103.53"
    yield Finding("input-range", text, "net-scale-factor")


def _of_mean(pre: Preprocessor, stem: Stem) -> Iterator[Finding]:
    """The mean that it learnt is that of a picture which the config can make: no black or white."""
    weights, statistics = stem.conv, stem.statistics
    assert weights is not None
    assert statistics is not None
    gain = weights.sum(axis=(1, 2, 3))
    moved = statistics[0] - (0 if stem.bias is None else stem.bias)
    if float(np.abs(gain).max()) < 0.1 * float(np.abs(weights).sum(axis=(1, 2, 3)).max()):
        return  # filters of edges alone do not see the mean
    level = float((moved * gain).sum() / (gain * gain).sum())
    means = pre.offsets or (0.0,)
    byte = level / pre.scale + sum(means) / len(means)
    if -300 < byte < 15 or 240 < byte < 555:
        given = f"offsets={';'.join(f'{m:g}' for m in means)}" if pre.offsets else "no offsets"
        text = f"offsets are missing or wrong: with {given} and net-scale-factor={pre.scale:.6g} "
        text += f"the mean that the first layers learnt is that of bytes of {byte:.0f}, where "
        text += "pictures have about 100 to 140; usual are offsets=127.5;127.5;127.5 or "
        yield Finding("input-range", f"{text}123.675;116.28;103.53", "offsets")


def _of_weights(pre: Preprocessor, stem: Stem, tensors: Sequence[Array]) -> Iterator[Finding]:
    """A trained first layer answers with about 1, not with hundreds or hundredths.

    Means that are subtracted from bytes speak of old networks without normalisation, whose layers
    do answer with hundreds.
    """
    spread = answers(stem, tensors, pre.scale)
    if spread is None:
        return
    middle = _middle(spread)
    if middle <= _HUNDREDTHS and pre.scale < 0.1:
        text = f"pictures have the wrong range: {_given(pre)}; the first layer answers with values "
        text += f"that spread by {middle:.2g}, where trained ones do by about 1: it probably "
        text += "expects 0 to 255: set net-scale-factor=1"
        yield Finding("input-range", text, "net-scale-factor")
    if middle >= _HUNDREDS and pre.scale >= 0.5 and not pre.offsets:
        text = f"pictures have the wrong range: {_given(pre)}; the first layer answers with values "
        text += (
            f"that spread by {middle:.0f}, where trained ones do by about 1: it probably expects"
        )
        text += f" 0 to 1: set {_UNIT_TEXT}"
        yield Finding("input-range", text, "net-scale-factor")


def spread_ratio(pre: Preprocessor, stem: Stem, tensors: Sequence[Array]) -> float | None:
    """How many times as far as in training the first convolution's results spread.

    The median over its channels; None where weights or pictures say nothing.
    """
    statistics = stem.statistics
    spread = None if statistics is None else answers(stem, tensors, pre.scale)
    if statistics is None or spread is None:
        return None
    learnt = np.sqrt(np.maximum(statistics[1], 0))
    alive = learnt > 1e-3 * max(float(learnt.max()), 1e-12)
    return _middle(spread[alive] / learnt[alive]) if alive.any() else None


def _middle(values: Array) -> float:
    """The upper median; NumPy's own loads its masked arrays."""
    return float(np.sort(values)[len(values) // 2])


def answers(stem: Stem, tensors: Sequence[Array], scale: float) -> Array | None:
    """Standard deviation of what each filter of the first convolution makes of the pictures.

    None where there is no convolution, or the pictures have no contrast.
    """
    weights = stem.conv
    if weights is None:
        return None
    _, channels, high, wide = weights.shape
    patches = []
    for tensor in tensors:
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
    made = np.concatenate(patches).astype(np.float64) @ weights.reshape(len(weights), -1).T
    return np.asarray(made.std(axis=0))


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
        text = f"height and width are probably swapped: {dims} (channels, height, width) for "
        text += f"frames of {frame[0]}x{frame[1]}: set infer-dims={pre.channels};{pre.width};"
        yield Finding("input-transposed", f"{text}{pre.height}", "infer-dims")


def _of_names(stem: Stem, labels: Labels) -> Iterator[Finding]:
    """Labels that the model knows, too, but for other classes. Translations are nobody's fault."""
    names, given = metadata_names(stem), [_plain(x) for x in labels.detector]
    known = {_plain(name): i for i, name in names.items()}
    places = [(i, known[name]) for i, name in enumerate(given) if name in known]
    moved = [(i, j) for i, j in places if i != j]
    if len(moved) < 2 or len(moved) < 0.5 * len(places):
        return
    line, _ = moved[0]
    text = f"labels are of another model or shifted: line {line + 1} of labelfile-path names class "
    text += f"{line} {labels.detector[line]!r}, which the model's metadata calls "
    text += f"{names.get(line, 'nothing')!r}; {len(moved)} of {len(places)} names stand elsewhere"
    if all(i == j + 1 for i, j in moved):
        text += f": take out the line before ({labels.detector[0]!r})"
    yield Finding("labels-moved", text, "labelfile-path")


def metadata_names(stem: Stem) -> dict[int, str]:
    """Names of the classes that the exporter wrote down, by number."""
    try:
        found = ast.literal_eval(stem.metadata.get("names", "{}")[: 1 << 20])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    if not isinstance(found, dict | list):
        return {}
    pairs = found.items() if isinstance(found, dict) else enumerate(found)
    return {i: n for i, n in pairs if isinstance(i, int) and isinstance(n, str)}


def _plain(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum())
