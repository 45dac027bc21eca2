"""Images as the network gets them, against what its file says of its training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.config import ModelConfig
from headrace.diagnose.lint.linting import Linter
from headrace.infer.parsers.labels import Labels
from headrace.infer.preprocess import Preprocessor
from headrace.infer.recognise.stem import Stem
from headrace.infer.trial import Sample
from headrace.infer.watch.training import byte_range, metadata_names, training_findings
from tests.infer.watch.detectors import config_for

SIZE = (64, 48)
ULTRALYTICS = {"author": "Ultralytics", "task": "detect", "names": "{0: 'a', 1: 'b', 2: 'c'}"}
UNIT = 1 / 255


def judged(
    folder: Path, stem: Stem, keys: str = "", names: Sequence[str] = (), *,
    frame: tuple[int, int] = SIZE, images: np.ndarray | None = None,
) -> dict[str, str]:  # fmt: skip
    """Findings of a config with these lines, on noise between black and white."""
    path = folder / "config.txt"
    path.write_text(f"[property]\ngie-unique-id=1\n{keys}")
    cfg = ModelConfig.load(path)
    pre = Preprocessor.from_config(cfg, *SIZE, 3)
    if images is None:
        images = np.random.default_rng(0).uniform(0, 255, (3, SIZE[1], SIZE[0]))
    means = np.reshape(pre.offsets or (0, 0, 0), (3, 1, 1))
    tensor = ((images - means) * pre.scale).astype(np.float32)
    labels = Labels(tuple((n,) for n in names))
    found = training_findings(cfg, pre, stem, labels, samples=[Sample(tensor, {})] * 2, frame=frame)
    return {f.code: f.sentence for f in found}


def normalised(mean: float, deviation: float) -> Stem:
    """A convolution that averages, and the statistics of images with this mean and deviation."""
    weights = np.zeros((4, 3, 1, 1))
    weights[np.arange(4), [0, 1, 2, 0]] = 1
    return Stem(conv=weights, statistics=(np.full(4, mean), np.full(4, deviation**2)))


SCALES = {
    "bytes": ("net-scale-factor=1\n", normalised(110, 70)),
    "unit": ("net-scale-factor=0.0039215697906911373\n", normalised(0.45, 0.27)),
    "signed": ("net-scale-factor=0.00784\noffsets=127.5;127.5;127.5\n", normalised(0, 0.55)),
    "means": ("net-scale-factor=1\noffsets=123;116;103\n", normalised(2, 68)),
}


@pytest.mark.parametrize("config", SCALES)
@pytest.mark.parametrize("model", SCALES)
def test_statistics_tell_the_range(config: str, model: str, tmp_path: Path) -> None:
    found = judged(tmp_path, SCALES[model][1], SCALES[config][0])
    # A mean of 224 instead of 110 is that of scanned pages; twice the spread, of contrast.
    likely = config == model or (model, config) in {("bytes", "means"), ("unit", "signed")}
    assert list(found) == ([] if likely else ["input-range"])


def test_offsets_that_are_missing(tmp_path: Path) -> None:
    text = judged(tmp_path, SCALES["signed"][1], "net-scale-factor=0.00784\n")["input-range"]
    assert "with no offsets and net-scale-factor=0.00784 the mean" in text
    assert "is that of bytes of 0" in text


@pytest.mark.parametrize("level", [0, 30, 128, 255])
def test_plain_images_tell_nothing_of_the_range(level: int, tmp_path: Path) -> None:
    plain = np.full((3, SIZE[1], SIZE[0]), float(level))
    stem = normalised(0.45, 0.27)
    assert judged(tmp_path, stem, SCALES["bytes"][0].replace("1", "0.004"), images=plain) == {}


def test_a_folded_stem_tells_bytes_from_units(tmp_path: Path) -> None:
    stem = Stem(conv=np.random.default_rng(1).normal(0, 1, (8, 3, 3, 3)))
    text = judged(tmp_path, stem, "net-scale-factor=1\n")["input-range"]
    assert "net-scale-factor=1 gives the network 0 to 255; the results of the first layer" in text
    assert judged(tmp_path, stem, SCALES["unit"][0]) == {}
    assert judged(tmp_path, stem, SCALES["means"][0]) == {}  # old networks are like that
    assert judged(tmp_path, Stem(conv=stem.conv / 255), "net-scale-factor=1\n") == {}
    text = judged(tmp_path, Stem(conv=stem.conv / 255), SCALES["unit"][0])["input-range"]
    assert "larger numbers: a guess, not tried: net-scale-factor=1" in text


def test_an_image_cut_into_four_tells_the_range_all_the_same(tmp_path: Path) -> None:
    weights = np.random.default_rng(1).normal(0, 0.002, (8, 12, 3, 3))
    stem = Stem(conv=weights, direct=False, focus=True)
    dark = np.zeros((3, SIZE[1], SIZE[0]))
    text = judged(tmp_path, stem, SCALES["unit"][0], images=dark)["input-range"]
    assert text.endswith("a guess, not tried: net-scale-factor=1")
    assert judged(tmp_path, stem, "net-scale-factor=1\n") == {}
    small = Stem(conv=weights * 255, direct=False, focus=True)
    assert (
        "guesses, not tried: net-scale-factor=0.0039"
        in judged(tmp_path, small, "net-scale-factor=1\n")["input-range"]
    )
    assert judged(tmp_path, small, SCALES["unit"][0]) == {}


@pytest.mark.parametrize(
    ("factor", "shift", "keys", "words"),
    [
        (UNIT, 0, SCALES["unit"][0], "set net-scale-factor=1"),
        (4.4, -2, "net-scale-factor=1\n", "it expects 0 to 1: set net-scale-factor=0.0039"),
        (UNIT, -0.5, SCALES["means"][0], "means are subtracted twice"),
        (UNIT, 0, "net-scale-factor=1\n", None),
        (4.4, -2, SCALES["unit"][0], None),
    ],
)
def test_a_graph_that_normalises(
    factor: float, shift: float, keys: str, words: str | None, tmp_path: Path
) -> None:
    stem = Stem(factor=np.array([factor]), shift=np.array([shift]))
    found = judged(tmp_path, stem, keys)
    assert (words is None and not found) or (words and words in found["input-range"])


def test_infer_dims_the_wrong_way_round(tmp_path: Path) -> None:
    keys = "infer-dims=3;48;64\n"
    free = Stem(axes=(None, 3, None, None))
    assert judged(tmp_path, free, keys, frame=(640, 480)) == {}
    text = judged(tmp_path, free, keys, frame=(480, 640))["input-transposed"]
    assert "a guess, not tried: infer-dims=3;64;48" in text
    fixed = Stem(axes=(1, 3, 48, 64))
    assert judged(tmp_path, fixed, keys, frame=(480, 640)) == {}


@pytest.mark.parametrize(
    ("labels", "moved"),
    [
        (("a", "b", "c"), False),
        (("A", "B", "C"), False),
        (("eins", "zwei", "drei"), False),  # translated
        (("b", "a", "c"), True),
        (("background", "a", "b"), True),
        ((), False),
    ],
)
def test_names_in_the_metadata(labels: tuple[str, ...], moved: bool, tmp_path: Path) -> None:
    stem = Stem(metadata={"names": ULTRALYTICS["names"]})
    assert ("labels-moved" in judged(tmp_path, stem, names=labels)) == moved


@pytest.mark.parametrize(
    "text", ["", "{", "7", "{'a': 1}", "[1, 2]", "__import__('os')", "(" * 999]
)
def test_metadata_of_any_kind(text: str) -> None:
    assert metadata_names(Stem(metadata={"names": text})) == {}
    assert metadata_names(Stem(metadata={"names": "['a', 'b']"})) == {0: "a", 1: "b"}


@pytest.mark.parametrize(("scale", "means", "expected"), [
    (1.0, (), (0, 255)), (0.5, (100.0, 50.0, 80.0), (-50, 102.5)), (-3.0, (), (0, 255)),
])  # fmt: skip
def test_byte_range(scale: float, means: Any, expected: tuple[float, float]) -> None:
    assert byte_range(Preprocessor(*SIZE, scale=scale, offsets=means)) == expected


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({"end2end": "True"}, "NvDsInferParseYolo"),
        ({"args": "{'nms': True}"}, "NvDsInferParseYolo"),
        ({"end2end": "False"}, None),
        ({"end2end": "True", "head": "RTDETRDecoder"}, None),
    ],
)
def test_metadata_that_select_boxes_against_a_parser_of_candidates(
    metadata: dict[str, str], told: str | None, tmp_path: Path
) -> None:
    model = {"metadata": ULTRALYTICS | metadata}
    path = config_for(tmp_path, "corners", model=model, parse_bbox_func_name="HeadraceParseYoloV8")
    found = [f for f in Linter().lint([path]).findings if f.code == "boxes-odd"]
    assert [f.data["set"] for f in found] == ([{"parse-bbox-func-name": told}] if told else [])
    for head in ("corners", "columns"):  # right, and the metadata of another file
        path = config_for(tmp_path, head, model=model)
        assert "boxes-odd" not in [f.code for f in Linter().lint([path]).findings]
