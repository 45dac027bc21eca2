"""A model called with an image, and exchanged while it is there."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import headrace
from headrace.errors import ConfigError, EngineError, MediaError
from tests.media.conftest import write_clip

Config = Callable[..., Path]


def red(value: int) -> np.ndarray:  # type: ignore[type-arg]
    image = np.zeros((48, 64, 3), np.uint8)
    image[..., 0] = value
    return image


def test_arrays_frames_and_files_give_the_same(mean_config: Config, tmp_path: Path) -> None:
    Image.fromarray(red(51)).save(tmp_path / "red.png")
    with headrace.Inferencer.from_config(mean_config()) as model:
        frame = headrace.Frame.from_array(red(51), headrace.PixelFormat.RGB)
        metas = [
            model(red(51), format="rgb"),
            model(np.ascontiguousarray(red(51)[:, :, ::-1])),
            model(frame),
            model(tmp_path / "red.png"),
            model(str(tmp_path / "red.png")),
        ]
    for meta in metas:
        assert (meta.width, meta.height, meta.inferred) == (64, 48, True)
        assert meta.objects[0].confidence == pytest.approx(0.2, abs=1e-4)
        assert meta.objects[0].rect == (16, 12, 32, 24)


def test_a_video_says_that_one_image_of_it_is_taken(mean_config: Config, tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "c.mp4", 12)
    warned = pytest.warns(headrace.HeadraceWarning, match="holds 12 images")
    with headrace.Inferencer.from_config(mean_config()) as model, warned as told:
        meta = model(clip)
    assert meta.frame == 0
    assert f"headrace.open_pipeline(CONFIG, sources={str(clip)!r})" in str(told[0].message)
    assert told[0].filename == __file__


def test_metadata_of_another_kind_is_refused(mean_config: Config) -> None:
    with headrace.Inferencer.from_config(mean_config()) as model:
        meta = model(red(51))
        wrong: list[tuple[object, object]] = [(red(51), 5), (red(51), [meta])]
        wrong += [([red(51)], meta), ([red(51)], 5), ([red(51)], [5])]
        for image, given in wrong:
            with pytest.raises(EngineError, match="expected the FrameMeta of the image"):
                model(image, given)  # type: ignore[call-overload]


def test_keys_of_streams_skip_no_image(mean_config: Config) -> None:
    config = mean_config(interval=3, stabilize_buffer_count=2)
    with headrace.Inferencer.from_config(config) as model:
        assert [len(model(red(200), format="rgb").objects) for _ in range(5)] == [1] * 5


def test_a_secondary_model_works_on_what_was_found(mean_config: Config) -> None:
    first = headrace.Inferencer.from_config(mean_config())
    second = headrace.Inferencer.from_config(
        headrace.ModelConfig.load(mean_config(process_mode=2, gie_unique_id=2))
    )
    with first, second:
        meta = first(red(51), format="rgb")
        assert second(red(51), meta, format="rgb") is meta
        assert [(o.component_id, o.parent is None) for o in meta.objects] == [(1, True), (2, False)]
        with pytest.raises(EngineError, match="meta = detector"):
            second(red(51))


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (np.zeros((3, 48, 64), np.uint8), "transpose"),
        (np.zeros((48, 64, 3)), "astype"),
        ([[1]], "not an array"),
        ("gone.png", "no such file"),
    ],
)
def test_what_is_no_image_is_refused(mean_config: Config, image: object, words: str) -> None:
    with (
        headrace.Inferencer.from_config(mean_config()) as model,
        pytest.raises(MediaError, match=words),
    ):
        model(image)  # type: ignore[arg-type]


def test_of_a_list_the_refused_image_is_named(mean_config: Config) -> None:
    with (
        headrace.Inferencer.from_config(mean_config(batch_size=2)) as model,
        pytest.raises(MediaError, match="image, item 3: NoneType is not an array"),
    ):
        model([red(51), red(51), red(51), None])  # type: ignore[list-item]


def test_a_model_is_exchanged_between_two_batches(mean_config: Config, tmp_path: Path) -> None:
    config = mean_config()
    half = tmp_path / "half.txt"
    half.write_text(config.read_text().replace("0.00392156862745098", "0.00196078431372549"))
    told: list[tuple[int, Path]] = []
    with headrace.Inferencer.from_config(config) as model:
        assert model(red(255), format="rgb").objects[0].confidence == pytest.approx(1)
        updater = model.update_model(config=half, on_updated=lambda *a: told.append(a))
        assert updater.wait(30)
        assert model(red(255), format="rgb").objects[0].confidence == pytest.approx(0.5, abs=1e-3)
        assert told == [(0, half)]
        assert model.update_model(config=tmp_path / "gone.txt").wait(30)
        assert model(red(255), format="rgb").objects[0].confidence == pytest.approx(0.5, abs=1e-3)
        assert any("was not updated" in n.sentence for n in model.notices)
        assert len(told) == 1
        with pytest.raises(ConfigError, match="a config, an engine, a model or a version"):
            model.update_model()


def test_a_model_is_exchanged_in_a_running_pipeline(mean_config: Config, tmp_path: Path) -> None:
    config = mean_config()
    half = tmp_path / "half.txt"
    half.write_text(config.read_text().replace("0.00392156862745098", "0.00196078431372549"))

    def images():  # type: ignore[no-untyped-def]
        deadline = time.monotonic() + 30
        while not done and time.monotonic() < deadline:
            time.sleep(0.002)
            yield red(255)

    done: list[bool] = []
    source = headrace.ArraySource(images(), format="rgb")
    pipeline = headrace.open_pipeline(config, sources=source)
    seen = []
    for frame, meta in pipeline:
        seen.append(round(meta.objects[0].confidence, 2))
        if frame.frame == 5:
            pipeline.models[0].update_model(config=half)
        if seen[-1] == 0.5:
            done.append(True)
    assert seen[:6] == [1.0] * 6
    assert seen[-1] == 0.5
    assert sorted(seen, reverse=True) == seen  # from one to the other, once
    assert pipeline.report.frames == len(seen)


def test_a_list_is_a_batch_of_images(mean_config: Config, tmp_path: Path) -> None:
    Image.fromarray(red(51)).save(tmp_path / "red.png")
    small = np.zeros((10, 20, 3), np.uint8)
    images = [red(102), tmp_path / "red.png", small, str(tmp_path / "red.png"), red(204)]
    sizes: list[int] = []
    with headrace.Inferencer.from_config(mean_config(interval=3), batch_size=2) as model:
        model.on_raw_output = lambda raw: sizes.append(len(next(iter(raw.outputs.values()))))
        metas = model(images, format="rgb")
        alone = [model(image, format="rgb") for image in images]
        assert model(()) == []
    assert sizes[:3] == [2, 2, 1]
    assert [(m.width, m.height) for m in metas] == [(64, 48)] * 2 + [(20, 10)] + [(64, 48)] * 2
    found = [[o.confidence for o in m.objects] for m in metas]
    assert found == [[o.confidence for o in m.objects] for m in alone]
    assert found[0] == pytest.approx([0.4], abs=1e-4)
    assert metas[1].source.endswith("red.png")
    assert [m.frame for m in metas] == [0, 0, 2, 0, 4]


def test_a_list_for_a_secondary_model_comes_with_what_was_found(mean_config: Config) -> None:
    config = mean_config()
    with (
        headrace.Inferencer.from_config(config, batch_size=2) as first,
        headrace.Inferencer.from_config(config, process_mode=2, unique_id=2) as second,
    ):
        images = [red(51), red(102), red(204)]
        metas = first(images, format="rgb")
        assert all(a is b for a, b in zip(second(images, metas, format="rgb"), metas, strict=True))
        assert [[o.component_id for o in m.objects] for m in metas] == [[1, 2]] * 3
        with pytest.raises(EngineError, match="3 images and 2 metas"):
            second(images, metas[:2])
        with pytest.raises(EngineError, match="meta = detector"):
            second(images)


def test_one_of_a_list_that_is_no_image_is_refused(mean_config: Config) -> None:
    with (
        headrace.Inferencer.from_config(mean_config()) as model,
        pytest.raises(MediaError, match=r"gone\.png"),
    ):
        model([red(1), "gone.png"])
