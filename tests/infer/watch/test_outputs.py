"""Rules on outputs alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headrace.config import ModelConfig
from headrace.infer.parsers.labels import Labels
from headrace.infer.watch.outputs import OutputWatch


def watch(folder: Path, keys: str, records: tuple[tuple[str, ...], ...] = ()) -> OutputWatch:
    path = folder / "config.txt"
    path.write_text(f"[property]\ngie-unique-id=1\n{keys}")
    return OutputWatch(ModelConfig.load(path), Labels(records), builtin=True)


def rules(seen: OutputWatch, *, final: bool = True) -> dict[str, str]:
    return {f.code: f.sentence for f in seen.findings(final=final)}


def image(number: int) -> np.ndarray:
    return np.random.default_rng(number).uniform(0, 1, (3, 8, 8)).astype(np.float32)


@pytest.mark.parametrize(
    ("change", "images", "same"),
    [(0.0, 8, True), (0.0, 3, False), (1e-3, 8, False)],
)
def test_outputs_that_never_change(change: float, images: int, same: bool, tmp_path: Path) -> None:
    seen = watch(tmp_path, "network-mode=1\n")
    for i in range(images):
        seen.look(image(i), {"out": np.linspace(0.1, 0.9, 50, dtype=np.float32) + i * change})
    found = rules(seen)
    assert ("outputs-constant" in found) == same
    if same:
        assert "the same for 8 different images" in found["outputs-constant"]
        assert "INT8 (network-mode=1)" in found["outputs-constant"]


def test_the_same_image_may_have_the_same_outputs(tmp_path: Path) -> None:
    seen = watch(tmp_path, "")
    for _ in range(20):
        seen.look(image(0), {"out": np.linspace(0.1, 0.9, 50, dtype=np.float32)})
    assert rules(seen) == {}


@pytest.mark.parametrize("values", [np.zeros(50), np.tile([0.0, 1.0], 25), np.full(50, -1.0)])
def test_empty_lists_and_certainty_may_be_the_same(values: np.ndarray, tmp_path: Path) -> None:
    seen = watch(tmp_path, "")
    for i in range(20):
        seen.look(image(i), {"out": values.astype(np.float32)})
    assert rules(seen) == {}


def test_values_that_are_not_finite(tmp_path: Path) -> None:
    seen = watch(tmp_path, "")
    for i in range(4):
        seen.look(image(i), {"good": image(i), "bad": np.full(9, np.nan, np.float32)})
    text = rules(seen, final=False)["outputs-not-finite"]
    assert "output bad has NaN or infinite values in 4 of 4 images" in text


CLASSIFIER = "network-type=1\nclassifier-threshold=0.5\n"


def test_logits_of_a_classifier(tmp_path: Path) -> None:
    seen = watch(tmp_path, CLASSIFIER, (("a", "b", "c"),))
    for i in range(5):
        seen.look(image(i), {"out": np.float32([i, 12.5, 3])})
    assert "up to 12.5 in 5 of 5 items" in rules(seen)["scores-above-1"]


@pytest.mark.parametrize(
    ("values", "seen"),
    [
        ([0.9, 0.1, 0.8], True),  # a sigmoid each
        ([0.7, 0.2, 0.1], False),  # a soft-max
        ([0.9, 0.3, 0.4], False),  # one above the threshold
        ([9.0, 0.1, 0.8], False),  # logits, which another rule names
    ],
)
def test_classes_that_do_not_exclude_each_other(
    tmp_path: Path, values: list[float], seen: bool
) -> None:
    watched = watch(tmp_path, CLASSIFIER, (("a", "b", "c"),))
    for i in range(5):
        watched.look(image(i), {"out": np.float32(values)})
    assert ("classes-independent" in rules(watched)) == seen


def test_a_winner_without_a_label(tmp_path: Path) -> None:
    for records, said in [((("a", "b", "c"),), False), ((("a", "b"),), True), ((), False)]:
        seen = watch(tmp_path, CLASSIFIER, records)
        for i in range(5):
            seen.look(image(i), {"out": np.float32([0.1, 0.2, 0.6 + i / 100])})
        assert ("class-without-label" in rules(seen)) == said


def test_a_segmentation_threshold_above_everything(tmp_path: Path) -> None:
    for limit, said in [(0.0, False), (0.5, False), (3.0, True)]:
        seen = watch(tmp_path, f"network-type=2\nsegmentation-threshold={limit}\n")
        for i in range(5):
            seen.look(image(i), {"out": image(i + 9)})
        assert ("threshold-above-all" in rules(seen)) == said
