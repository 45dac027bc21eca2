"""From frames to metadata through a real engine and a real parser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from headrace.errors import ConfigError, CustomLibraryError, EngineError, ParserError
from headrace.infer.inferencer import Inferencer
from headrace.infer.preprocess import Preprocessor
from headrace.media import Frame, PixelFormat

Config = Callable[..., Path]


def red(level: int, width: int = 64, height: int = 64, number: int = 0) -> Frame:
    image = np.zeros((height, width, 3), np.uint8)
    image[..., 0] = level
    return Frame.from_array(image, PixelFormat.RGB, frame=number, source="test")


def test_scores_boxes_and_labels_reach_the_frame(mean_config: Config) -> None:
    with Inferencer.from_config(mean_config()) as model:
        (meta,) = model.process([red(204, 128, 64)])
    assert meta.inferred
    (thing,) = meta.objects
    assert (thing.left, thing.top, thing.width, thing.height) == (32, 16, 64, 32)
    assert thing.confidence == pytest.approx(0.8, abs=1e-5)
    assert (thing.label, thing.class_id, thing.component_id) == ("thing", 0, 1)


def test_letterboxed_boxes_map_back_through_the_padding(mean_config: Config) -> None:
    config = mean_config(maintain_aspect_ratio=1, symmetric_padding=1)
    with Inferencer.from_config(config) as model:
        (meta,) = model.process([red(255, 128, 64)])
    (thing,) = meta.objects
    # 128x64 fits as 32x16 with 8 rows of padding above: (8, 8, 16, 16) - (0, 8), times 4.
    assert (thing.left, thing.top, thing.width, thing.height) == (32, 0, 64, 64)
    # Half of the image is padding, byte 0.
    assert thing.confidence == pytest.approx(0.5, abs=1e-5)


def test_colour_order_offsets_and_scale_reach_the_model(mean_config: Config) -> None:
    config = mean_config(
        model_color_format=1, offsets="10;20;30", net_scale_factor=0.01, output_tensor_meta=1
    )
    with Inferencer.from_config(config) as model:
        (meta,) = model.process([red(130)])
    means = meta.tensors[0]["mean"]
    np.testing.assert_allclose(means, [-0.1, -0.2, 1.0], atol=1e-5)


@pytest.mark.parametrize("batch", ["n", 1, 2, 4])
def test_batches_change_nothing_but_speed(mean_config: Config, batch: int | str) -> None:
    frames = [red(60 + 20 * i, 40 + 8 * i, 64, i) for i in range(7)]
    with Inferencer.from_config(mean_config(batch=batch, batch_size=4)) as model:
        metas = model.process(frames)
    assert [m.frame for m in metas] == list(range(7))
    got = [m.objects[0].confidence for m in metas]
    np.testing.assert_allclose(got, [(60 + 20 * i) / 255 for i in range(7)], atol=1e-5)
    assert [m.objects[0].width for m in metas] == [(40 + 8 * i) / 2 for i in range(7)]


def test_interval_skips_buffers(mean_config: Config) -> None:
    with Inferencer.from_config(mean_config(interval=2)) as model:
        metas = [model.process([red(255, number=i)])[0] for i in range(7)]
    assert [m.inferred for m in metas] == [True, False, False, True, False, False, True]
    assert [len(m.objects) for m in metas] == [1, 0, 0, 1, 0, 0, 1]


def test_threshold_drops(mean_config: Config) -> None:
    config = mean_config()
    config.write_text(config.read_text() + "[class-attrs-all]\npre-cluster-threshold=0.5\n")
    with Inferencer.from_config(config) as model:
        metas = model.process([red(100), red(200)])
    assert [len(m.objects) for m in metas] == [0, 1]


def test_a_failing_parser_costs_the_frame_only_and_is_said_once(mean_config: Config) -> None:
    config = mean_config(parse_bbox_func_name="fails_on_black")
    with Inferencer.from_config(config) as model:
        metas = model.process([red(0), red(255), red(0, number=2)])
        said = [n for n in model.notices if "nothing to see" in n.sentence]
    assert [len(m.objects) for m in metas] == [0, 1, 0]
    assert model.failed_items == 2
    assert len(said) == 1
    assert "mean_parser.py" in str(said[0])


def test_ever_new_messages_of_a_failing_parser_do_not_pile_up(mean_config: Config) -> None:
    config = mean_config(
        parse_bbox_func_name="complains",
        parser="""
def complains(layers, network, params):
    raise ValueError(f"mean is {layers['mean'].data[0]}")
""",
    )
    with Inferencer.from_config(config) as model:
        before = len(model.notices)
        for level in range(20):
            model.process([red(level)])
        assert model.failed_items == 20
        assert 1 <= len(model.notices) - before <= 5


def test_a_frame_without_area_is_not_inferred(mean_config: Config) -> None:
    with Inferencer.from_config(mean_config()) as model:
        metas = model.process([red(255, 1, 40), red(255, 40, 40)])
    assert [len(m.objects) for m in metas] == [0, 1]
    assert sum("nothing is inferred" in n.sentence for n in model.notices) == 1


def test_no_parser_and_no_grid_outputs_says_what_would_fit(mean_config: Config) -> None:
    config = mean_config(parse_bbox_func_name=None, custom_lib_path=None)
    with pytest.raises(ParserError) as caught:
        Inferencer.from_config(config)
    assert "mean float32[n, 3]" in str(caught.value)
    assert "custom-lib-path=my_parser.py" in str(caught.value)


def test_missing_library_names_file_and_line(mean_config: Config) -> None:
    with pytest.raises(ConfigError, match=r"config\.txt:\d+: .*custom-lib-path"):
        Inferencer.from_config(mean_config(custom_lib_path="libmissing.so"))


def test_missing_library_of_a_well_known_parser_falls_back_and_says_so(
    mean_config: Config,
) -> None:
    config = mean_config(
        custom_lib_path="libnvdsinfer_custom_impl_Yolo.so",
        parse_bbox_func_name="NvDsInferParseYolo",
    )
    with Inferencer.from_config(config) as model:
        assert model.parser.source == "built-in NvDsInferParseYolo"
        (said,) = [n for n in model.notices if "instead" in n.sentence]
    assert said.level == "warning"
    assert "libnvdsinfer_custom_impl_Yolo.so" in str(said)


def test_a_broken_python_parser_is_never_replaced(mean_config: Config) -> None:
    config = mean_config(parse_bbox_func_name="NvDsInferParseYolo")
    with pytest.raises(CustomLibraryError, match="NvDsInferParseYolo"):
        Inferencer.from_config(config)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"network_type": 3, "cluster_mode": 2}, r"config\.txt:\d+: .*cluster-mode=4"),
        ({"network_type": 3}, "parse-bbox-instance-mask-func-name"),
        ({"output_instance_mask": 1, "cluster_mode": 2}, r"config\.txt:\d+: .*cluster-mode=4"),
    ],
)
def test_what_the_original_refuses_at_start(
    mean_config: Config, keys: dict[str, object], words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        Inferencer.from_config(mean_config(**keys))
    assert re.search(words, str(caught.value), re.DOTALL)


@pytest.mark.parametrize(("given", "used"), [(7, 7), (None, 1)])
def test_a_unique_id_can_be_given_by_the_program(
    mean_config: Config, given: int | None, used: int
) -> None:
    with Inferencer.from_config(mean_config(gie_unique_id=None), unique_id=given) as model:
        (meta,) = model.process([red(255)])
        told = [n.sentence for n in model.notices if "gie-unique-id is absent: 1" in n.sentence]
    assert meta.objects[0].component_id == used
    assert len(told) == (given is None)


def test_zero_classes_are_said(mean_config: Config) -> None:
    with Inferencer.from_config(mean_config(num_detected_classes=0, labelfile_path=None)) as model:
        (meta,) = model.process([red(255)])
        assert sum("is dropped" in n.sentence for n in model.notices) == 1
    assert len(meta.objects) == 0


def test_repairs_of_a_parsers_result_are_said(mean_config: Config) -> None:
    config = mean_config(
        parse_bbox_func_name="nan_box",
        parser="""
def nan_box(layers, network, params):
    return Detections([[0, 0, 8, 8], [np.nan, 0, 8, 8]], [1, 1], [0, 0])
""",
    )
    with Inferencer.from_config(config) as model:
        (meta,) = model.process([red(255)])
        assert any(n.level == "warning" and "nan_box" in str(n) for n in model.notices)
    assert len(meta.objects) == 1


def test_a_library_that_cannot_be_loaded_here_is_replaced_and_said(mean_config: Config) -> None:
    config = mean_config(custom_lib_path="libyolo.so", parse_bbox_func_name="NvDsInferParseYolo")
    (config.parent / "libyolo.so").write_bytes(b"\x7fELF built for a Jetson")
    with Inferencer.from_config(config) as model:
        assert model.parser.source == "built-in NvDsInferParseYolo"
        assert any("libyolo.so" in str(n) or "instead" in n.sentence for n in model.notices)


def test_an_unknown_name_without_a_library_does_nothing_and_is_said(mean_config: Config) -> None:
    config = mean_config(custom_lib_path=None, parse_bbox_func_name="MyParser")
    with pytest.raises(ParserError, match=r"MyParser has no effect.*no output has 'cov' or 'bbox'"):
        Inferencer.from_config(config)


def test_a_well_known_name_needs_no_library(mean_config: Config) -> None:
    config = mean_config(custom_lib_path=None, parse_bbox_func_name="NvDsInferParseYolo")
    with Inferencer.from_config(config) as model:
        assert model.parser.source == "built-in NvDsInferParseYolo"
        assert any("no custom-lib-path" in n.sentence for n in model.notices)


@pytest.mark.parametrize(("mode", "level"), [(None, "info"), (0, "warning")])
def test_what_runs_for_cluster_mode_0_is_said_once(
    mean_config: Config, mode: int | None, level: str
) -> None:
    with Inferencer.from_config(mean_config(cluster_mode=mode)) as model:
        said = [n for n in model.notices if "cluster-mode" in n.sentence]
    assert [n.level for n in said] == [level]


def test_no_memory_for_the_input_is_an_engine_error(
    mean_config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Inferencer.from_config(mean_config()) as model:
        shape = property(lambda _: (3, 2**24, 2**24))
        monkeypatch.setattr(Preprocessor, "shape", shape, raising=False)
        with pytest.raises(EngineError, match="no memory for 1 input"):
            model.process([red(255)])


def test_boxes_that_look_normalised_are_said_once(mean_config: Config) -> None:
    config = mean_config(
        parse_bbox_func_name="normalised",
        parser="""
def normalised(layers, network, params):
    return Detections([[0.1, 0.2, 0.3, 0.4]], [1], [0])
""",
    )
    with Inferencer.from_config(config) as model:
        model.process([red(255), red(255)])
        said = [n for n in model.notices if "0..1" in n.sentence and "multiply" in n.sentence]
    assert len(said) == 1
