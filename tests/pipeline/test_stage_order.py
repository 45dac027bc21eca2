"""Which secondary models have nothing to work on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.config import ModelConfig
from headrace.errors import ConfigError
from headrace.pipeline.stage_order import idle_models, numbered
from headrace.pipeline.track import open_tracker


def model(number: int, kind: int = 0, **keys: Any) -> ModelConfig:
    return ModelConfig(gie_unique_id=number, network_type=kind, **keys)


def secondary(number: int, kind: int = 1, on: int = -1, **keys: Any) -> ModelConfig:
    return model(number, kind, process_mode=2, operate_on_gie_id=on, **keys)


DETECTOR = model(1)
FOUR = model(1, num_detected_classes=4)


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        ([DETECTOR, secondary(2)], []),
        ([DETECTOR, secondary(2, on=1)], []),
        ([DETECTOR, secondary(2, on=7)], ["operate-on-gie-id=7"]),
        ([DETECTOR, secondary(2, on=2)], ["operate-on-gie-id=2"]),
        ([DETECTOR, secondary(2, 0, on=1), secondary(3, on=2)], []),
        ([DETECTOR, secondary(3, on=2), secondary(2, 0, on=1)], ["operate-on-gie-id=2"]),
        ([DETECTOR, secondary(2), secondary(3, on=2)], ["operate-on-gie-id=2"]),
        ([secondary(2), DETECTOR], ["no model before it finds objects"]),
        ([secondary(2), secondary(3)], ["no model before it finds objects"] * 2),
        ([DETECTOR, secondary(1, 0)], ["no model before it finds objects"]),
        ([DETECTOR, secondary(1, 1)], []),
        ([model(1, 1), secondary(2, on=1)], []),
        ([model(1, 2), secondary(2)], ["no model before it finds objects"]),
        ([model(1, 100), lambda batch: None, secondary(2, on=9)], []),
        (
            [secondary(2, input_tensor_from_meta=True)],
            ["input-tensor-from-meta=1 without tensors"],
        ),
        ([lambda batch: None, model(2, input_tensor_from_meta=True)], []),
        ([DETECTOR, open_tracker("iou"), secondary(2, on=4)], ["operate-on-gie-id=4"]),
        ([DETECTOR, secondary(2, operate_on_class_ids=(0, 7))], []),
        ([FOUR, secondary(2, operate_on_class_ids=(3,))], []),
        ([FOUR, secondary(2, operate_on_class_ids=(4, 7))], ["operate-on-class-ids=4;7"]),
        ([FOUR, model(3, 0, num_detected_classes=10), secondary(2, operate_on_class_ids=(9,))], []),
        (
            [
                FOUR,
                model(3, 0, num_detected_classes=10),
                secondary(2, on=1, operate_on_class_ids=(9,)),
            ],
            ["operate-on-class-ids=9"],
        ),
        ([model(3, 1), FOUR, secondary(2, operate_on_class_ids=(9,))], []),
        ([], []),
    ],
)
def test_models_without_objects_are_told(stages: list[Any], words: list[str]) -> None:
    found = idle_models(stages)
    assert len(found) == len(words)
    for notice, text in zip(found, words, strict=True):
        assert notice.level == "warning"
        assert text in notice.sentence
        assert "nothing is inferred" in notice.sentence


@pytest.mark.parametrize(
    ("stages", "told"),
    [
        ([DETECTOR, model(2, 1)], True),
        ([DETECTOR, secondary(2, 1)], False),
        ([DETECTOR, model(2, 0)], False),
        ([model(2, 1)], False),
    ],
)
def test_a_classifier_that_sees_frames_behind_a_detector_is_told(
    stages: list[Any], told: bool
) -> None:
    found = [n.sentence for n in idle_models(stages)]
    assert [text.startswith("process-mode is absent") for text in found] == [True] * told


def test_a_classifier_that_is_said_to_see_frames_is_not_told(tmp_path: Path) -> None:
    path = tmp_path / "second.txt"
    path.write_text("[property]\ngie-unique-id=2\nnetwork-type=1\nprocess-mode=1\n")
    assert not idle_models([DETECTOR, ModelConfig.load(path)])


def test_it_says_where(tmp_path: Path) -> None:
    path = tmp_path / "second.txt"
    path.write_text("[property]\ngie-unique-id=2\nprocess-mode=2\noperate-on-gie-id=5\n")
    (notice,) = idle_models([DETECTOR, ModelConfig.load(path)])
    assert notice.where == f"{path}:4"


def without_id(folder: Path) -> ModelConfig:
    path = folder / "any.txt"
    path.write_text("[property]\nnetwork-type=100\n")
    return ModelConfig.load(path)


def test_a_config_without_an_id_gets_the_first_free_number(tmp_path: Path) -> None:
    items, notices = numbered([model(2), without_id(tmp_path), without_id(tmp_path)], None)
    assert [cfg.component_id for cfg in items] == [2, 1, 3]
    assert [n.code for n in notices] == ["unique-id-absent"] * 2


@pytest.mark.parametrize("generation", ["9.1", "6.2"])
def test_a_release_refuses_a_config_without_an_id(tmp_path: Path, generation: Any) -> None:
    with pytest.raises(ConfigError, match=f"generation {generation} refuses") as caught:
        numbered([model(2), without_id(tmp_path)], None, generation)
    assert caught.value.finding.code == "unique-id-absent"
    assert numbered([model(2)], None, generation)[1] == []
