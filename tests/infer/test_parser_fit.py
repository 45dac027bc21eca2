"""Whether a parser, the classes and the labels fit the outputs of a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headrace.config import ModelConfig
from headrace.diagnose.lint.linting import Linter
from headrace.errors import ParserError
from headrace.infer.inferencer import Inferencer
from headrace.infer.parser_fit import misfit_notices, require_grid_outputs
from headrace.infer.parsers import WELL_KNOWN
from headrace.infer.trial import tried_changes
from headrace.meta import NetworkInfo
from headrace.network.tensor_spec import TensorSpec
from tests.infer.watch.detectors import config_for


@pytest.mark.parametrize(
    ("name", "shape", "classes", "fits"),
    [
        ("NvDsInferParseCustomYoloV8", (1, 84, 8400), 80, False),
        ("NvDsInferParseYolo", (1, 84, 8400), 80, False),
        ("NvDsInferParseYoloV11", (1, 84, 8400), 80, True),
        ("NvDsInferParseCustomYoloV8", (1, 8400, 84), 80, True),
        ("NvDsInferParseCustomYoloV8", (1, 8400, 84), 4, True),  # further classes are dropped
        ("NvDsInferParseCustomYoloV8", (1, 300, 84), 80, True),
        ("NvDsInferParseCustomYoloV8", (1, 84, 8400), 0, True),  # nothing to hold it against
        ("NvDsInferParseCustomYoloV8", (1, 84, None), 80, True),
        ("HeadraceParseYoloCorners", (1, 84, 8400), 80, True),  # shapes do not tell corners
        ("HeadraceParseYoloV8Unit", (1, 84, 8400), 80, True),
        ("HeadraceParseYoloCorners", (1, 84, 8400), 91, False),
    ],
)
def test_a_built_in_that_others_outdo_is_told(
    tmp_path: Path, name: str, shape: tuple[int | None, ...], classes: int, fits: bool
) -> None:
    text = f"[property]\nnetwork-type=0\nparse-bbox-func-name={name}\n"
    (tmp_path / "c.txt").write_text(f"{text}num-detected-classes={classes}\n")
    cfg = ModelConfig.load(tmp_path / "c.txt")
    outputs = [TensorSpec("output0", np.dtype(np.float32), tuple(d or "n" for d in shape))]
    notices = misfit_notices(cfg, WELL_KNOWN[name], outputs, NetworkInfo(640, 640, 3))
    assert [n.level for n in notices] == ([] if fits else ["warning"])
    names = ("HeadraceParseYoloV8", "NvDsInferParseYoloV11")
    changes = [{"parse-bbox-func-name": name} for name in names]
    assert fits or classes != 80 or tried_changes(notices[0]) == changes
    assert fits or classes != 80 or "guesses, not tried" in notices[0].sentence


@pytest.mark.parametrize("shape", [(1, 6, 24, 40), (1, 6, "height", 40)])
def test_a_built_in_that_cannot_read_the_outputs_and_has_no_better(
    tmp_path: Path, shape: tuple[int | str, ...]
) -> None:
    text = "[property]\nparse-bbox-func-name=NvDsInferParseYolo\nnum-detected-classes=6\n"
    (tmp_path / "c.txt").write_text(text)
    outputs = [
        TensorSpec("scores", np.dtype(np.float32), shape),
        TensorSpec("distances", np.dtype(np.float32), (1, 4, 24, 40)),
    ]
    cfg, parser = ModelConfig.load(tmp_path / "c.txt"), WELL_KNOWN["NvDsInferParseYolo"]
    notices = misfit_notices(cfg, parser, outputs, NetworkInfo(320, 192, 3))
    if "height" in shape:
        assert notices == []
    else:
        assert "no built-in parser of this network-type does; write" in notices[0].sentence


def test_parsers_of_masks_are_offered_where_no_parser_of_boxes_fits(tmp_path: Path) -> None:
    text = "[property]\nparse-bbox-func-name=NvDsInferParseYolo\nnum-detected-classes=80\n"
    (tmp_path / "c.txt").write_text(text)
    outputs = [
        TensorSpec("output0", np.dtype(np.float32), (1, 116, 8400)),
        TensorSpec("output1", np.dtype(np.float32), (1, 32, 160, 160)),
    ]
    cfg, parser = ModelConfig.load(tmp_path / "c.txt"), WELL_KNOWN["NvDsInferParseYolo"]
    (notice,) = misfit_notices(cfg, parser, outputs, NetworkInfo(640, 640, 3))
    assert tried_changes(notice)[0] == {
        "network-type": "3",
        "parse-bbox-instance-mask-func-name": "HeadraceParseYoloV8Seg",
        "cluster-mode": "4",
    }
    assert "write your own" not in notice.sentence


def test_a_classifier_with_the_outputs_of_a_detector_is_told_by_all(tmp_path: Path) -> None:
    config = config_for(tmp_path, network_type=1, parse_bbox_func_name=None)
    with Inferencer.from_config(config) as model:
        found = [list(model.notices), [f.finding for f in Linter().lint([config]).findings]]
    told = [[n for n in notices if n.code == "type-and-outputs"] for notices in found]
    parsers = ("HeadraceParseYoloV8", "NvDsInferParseYoloV11")
    changes = [{"network-type": "0", "parse-bbox-func-name": name} for name in parsers]
    assert [[tried_changes(n) for n in notices] for notices in told] == [[changes], [changes]]


def test_outputs_that_are_not_known_fit(tmp_path: Path) -> None:
    """A config without a readable model has one problem, not a wrong parser as well."""
    text = "[property]\nparse-bbox-func-name=NvDsInferParseYolo\nnum-detected-classes=6\n"
    (tmp_path / "c.txt").write_text(text)
    cfg, parser = ModelConfig.load(tmp_path / "c.txt"), WELL_KNOWN["NvDsInferParseYolo"]
    assert misfit_notices(cfg, parser, [], None) == []


def test_outputs_that_fit_but_for_their_names_are_told(tmp_path: Path) -> None:
    text = "[property]\nparse-bbox-func-name=NvDsInferParseCustomSSDTLT\nnum-detected-classes=2\n"
    (tmp_path / "c.txt").write_text(text)
    outputs = [TensorSpec("detection_out", np.dtype(np.float32), ("batch", 1, 200, 7))]
    cfg = ModelConfig.load(tmp_path / "c.txt")
    parser = WELL_KNOWN["NvDsInferParseCustomSSDTLT"]
    (notice,) = misfit_notices(cfg, parser, outputs, NetworkInfo(320, 240, 3))
    wanted = "it finds them by name, and 'detection_out' must be 'NMS' in the model; "
    assert wanted in notice.sentence


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (("n", 3), "a guess, not tried: network-type=1"),
        (("n", 1000, 1, 1), "a guess, not tried: network-type=1"),
        (("n", 4, 160, 160), "a guess, not tried: network-type=2"),
        (("n", 160, 160, 4), "a guess, not tried: network-type=2"),
        (("n", 84, 8400), "guesses, not tried: parse-bbox-func-name=HeadraceParseYoloV8 or "),
        (("n", 197, 768), "or name your own parser"),
    ],
)
def test_without_a_parser_the_outputs_tell_what_the_model_is(
    tmp_path: Path, shape: tuple[int | str, ...], words: str
) -> None:
    (tmp_path / "c.txt").write_text("[property]\nnum-detected-classes=80\n")
    cfg = ModelConfig.load(tmp_path / "c.txt")
    outputs = [TensorSpec("output0", np.dtype(np.float32), shape)]
    with pytest.raises(ParserError) as caught:
        require_grid_outputs(cfg, outputs, NetworkInfo(640, 640, 3))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ([("n", 3)], "network-type=1"),
        ([("n", 3), (1, 5)], "network-type=1"),
        ([(1, 4, 64, 96)], "network-type=2"),
        ([(1, 64, 96, 4)], "network-type=2"),
        ([(1, 4, 8, 12)], None),
    ],
)
def test_outputs_of_another_network_type_are_told(
    tmp_path: Path, shapes: list[tuple[int | str, ...]], words: str | None
) -> None:
    (tmp_path / "c.txt").write_text("[property]\nnum-detected-classes=2\n")
    cfg = ModelConfig.load(tmp_path / "c.txt")
    outputs = [TensorSpec(f"o{i}", np.dtype(np.float32), s) for i, s in enumerate(shapes)]
    with pytest.raises(ParserError) as caught:
        require_grid_outputs(cfg, outputs, NetworkInfo(96, 64, 3))
    assert ("network-type" in str(caught.value)) == (words is not None)
    assert words is None or words in str(caught.value)
