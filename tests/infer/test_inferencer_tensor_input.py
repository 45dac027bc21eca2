"""Tensors that the caller prepared (input-tensor-from-meta), through real engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from headrace.errors import CustomLibraryError, EngineError
from headrace.infer.batch import Batch
from headrace.infer.inferencer import Inferencer
from headrace.meta import InputTensor, Roi
from tests.infer.models import node, write_config, write_model
from tests.infer.scenes import batch_of, classifier, image

Config = Callable[..., Path]


def planes(*levels: float) -> np.ndarray:
    """Rows of 3x32x32 whose red plane has these levels, green and blue 0."""
    data = np.zeros((len(levels), 3, 32, 32), np.float32)
    data[:, 0] = np.array(levels, np.float32)[:, None, None]
    return data


def two_frames() -> Batch:
    return Batch.of([image([], source=i, size=(160, 120)) for i in range(2)])


def test_boxes_come_back_through_the_region_and_its_padding(mean_config: Config) -> None:
    batch = two_frames()
    # a region of 64x32 at 50.75, 20, scaled by 1/2 to 32x16 and put 8 rows down
    roi = Roi(1, 50.75, 20, 64, 32, 0.5, 0.5, 0, 8)
    batch.tensors.append(InputTensor("image", planes(0.75), [roi], [1]))
    with Inferencer.from_config(mean_config(input_tensor_from_meta=1)) as model:
        model.process(batch)
    first, second = batch.metas
    assert (len(first.objects), first.inferred) == (0, False)
    (found,) = second.objects
    # the parser says (8, 8, 16, 16): minus the padding, times 2, plus the truncated corner
    assert (found.left, found.top, found.width, found.height) == (66, 20, 32, 32)
    assert found.confidence == 0.75
    assert second.inferred


def test_nothing_is_scaled_and_no_interval_counts(mean_config: Config) -> None:
    config = mean_config(input_tensor_from_meta=1, interval=4, offsets="9;9;9")
    with Inferencer.from_config(config) as model:
        for level in (0.5, 1.0):
            batch = two_frames()
            rois = [Roi(0, 0, 0, 160, 120)]
            batch.tensors.append(InputTensor("image", planes(level), rois, [1]))
            model.process(batch)
            assert [o.confidence for o in batch.metas[0].objects] == [level]


def test_many_regions_are_cut_by_the_batch_size(mean_config: Config) -> None:
    levels = [0.25, 0.375, 0.5, 0.625, 0.75]
    rois = [Roi(i % 2, 32 * i, 0, 32, 32) for i in range(5)]
    batch = two_frames()
    batch.tensors.append(InputTensor("image", planes(*levels), rois, [1]))
    sizes = []
    with Inferencer.from_config(mean_config(input_tensor_from_meta=1, batch_size=2)) as model:
        model.on_raw_output = lambda raw: sizes.append(len(raw.metas))
        model.process(batch)
        assert model.inferred_items == 5
    assert sizes == [2, 2, 1]
    found = {
        (m.source_id, o.left): o.confidence for m in batch.metas for o in m.objects
    }  # fmt: skip
    assert found == {(i % 2, 32 * i + 8.0): level for i, level in enumerate(levels)}


def test_a_classifier_speaks_about_regions_and_the_objects_they_show(mean_config: Config) -> None:
    config = classifier(mean_config, process_mode=1, input_tensor_from_meta=1)
    batch = batch_of([[("red", (0, 0, 40, 40)), ("blue", (50, 0, 40, 40))]])
    rois = [Roi(0, 50, 0, 40, 40, object_index=1), Roi(0, 0, 80, 40, 40)]
    batch.tensors.append(InputTensor("image", planes(0.9, 0.8), rois, [2]))
    with Inferencer.from_config(config) as model:
        model.process(batch)
    (meta,) = batch.metas
    assert [len(r.classifiers) for r in rois] == [1, 1]
    assert [o.display_text for o in meta.objects] == ["thing", "thing red "]
    assert len(meta.objects) == 2, "a region is no full frame"


def test_a_region_without_an_object_in_secondary_mode(mean_config: Config) -> None:
    """The original crashes. Source: spec A.6."""
    config = classifier(mean_config, process_mode=2, input_tensor_from_meta=1)
    batch = two_frames()
    rois = [Roi(0, 0, 0, 40, 40)]
    batch.tensors.append(InputTensor("image", planes(0.9), rois, [2]))
    with Inferencer.from_config(config) as model:
        model.process(batch)
    assert [c.text for c in rois[0].classifiers] == ["red "]
    assert len(batch.metas[0].objects) == 0


def test_raw_outputs_go_to_the_region_the_frame_and_the_object(mean_config: Config) -> None:
    config = mean_config(input_tensor_from_meta=1, output_tensor_meta=1)
    batch = batch_of([[("red", (0, 0, 40, 40))]])
    rois = [Roi(0, 0, 0, 40, 40, object_index=0), Roi(0, 0, 0, 32, 32)]
    batch.tensors.append(InputTensor("image", planes(0.5, 0.25), rois, [1]))
    with Inferencer.from_config(config) as model:
        model.process(batch)
    (meta,) = batch.metas
    assert [float(roi.tensors[0]["mean"][0]) for roi in rois] == [0.5, 0.25]
    assert meta.user == rois
    assert meta.objects[0].user == [rois[0]]
    assert meta.tensors == []


FILL = """
def NvDsInferInitializeInputLayers(layers, network, max_batch):
    assert list(layers) == ["b"]
    layers["b"][:] = 100
    return True
"""


def sum_of_two(folder: Path, **keys: object) -> Path:
    """A model of two inputs whose output is their sum; the second is 100 unless it is given."""
    size = ["n", 4]
    (folder / "fill.py").write_text(FILL)
    keys.setdefault("custom_lib_path", "fill.py")
    write_model(
        folder / "m.onnx", [node("Add", ["a", "b"], ["y"])], {"a": size, "b": size}, {"y": size}
    )
    return write_config(
        folder,
        onnx_file="m.onnx",
        network_type=100,
        output_tensor_meta=1,
        input_tensor_from_meta=1,
        batch_size=2,
        **keys,
    )


def test_tensors_of_one_id_are_the_inputs_of_one_inference(tmp_path: Path) -> None:
    batch = two_frames()
    rois = [Roi(0, i, 0, 4, 4) for i in range(3)]
    for name, base in (("b", 10.0), ("a", 1.0)):
        data = np.arange(12, dtype=np.float32).reshape(3, 4) * base
        batch.tensors.append(InputTensor(name, data, rois, [1], meta_id=5))
    with Inferencer.from_config(sum_of_two(tmp_path)) as model:
        model.process(batch)
        assert model.inferred_items == 3
    results = np.stack([roi.tensors[0]["y"] for roi in rois])
    np.testing.assert_array_equal(results, np.arange(12).reshape(3, 4) * 11)


def test_further_inputs_without_a_tensor_are_what_the_initialiser_made(tmp_path: Path) -> None:
    batch = two_frames()
    rois = [Roi(0, i, 0, 4, 4) for i in range(3)]
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    batch.tensors.append(InputTensor("a", data, rois, [1]))
    with Inferencer.from_config(sum_of_two(tmp_path)) as model:
        model.process(batch)  # in runs of 2 and 1
    np.testing.assert_array_equal(np.stack([r.tensors[0]["y"] for r in rois]), data + 100)


def test_a_model_of_two_inputs_needs_the_initialiser(tmp_path: Path) -> None:
    """Also where the caller gives a tensor for each input. Source: spec D.7."""
    with pytest.raises(CustomLibraryError, match=r"further inputs .*b.* nothing fills them"):
        Inferencer.from_config(sum_of_two(tmp_path, custom_lib_path=None))


def tensor(name: str, rows: int, rois: int, *, frame: int = 0, width: int = 4) -> InputTensor:
    regions = [Roi(frame, 0, 0, 4, 4) for _ in range(rois)]
    return InputTensor(name, np.zeros((rows, width), np.float32), regions, [1])


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ([tensor("a", 2, 2), tensor("b", 3, 3)], "rows differ: a has 2, b has 3"),
        ([tensor("a", 2, 3), tensor("b", 2, 3)], "2 rows for 3 regions"),
        ([tensor("b", 1, 1)], "no tensor for input a"),
        ([tensor("a", 1, 1, frame=7), tensor("b", 1, 1)], "frame 7 of a batch of 2"),
        ([tensor("a", 1, 1, width=5), tensor("b", 1, 1)], "a"),
    ],
)
def test_what_does_not_fit_is_an_error(
    tmp_path: Path, tensors: list[InputTensor], words: str
) -> None:
    batch = two_frames()
    batch.tensors += tensors
    with (
        Inferencer.from_config(sum_of_two(tmp_path)) as model,
        pytest.raises(EngineError, match=words),
    ):
        model.process(batch)


def test_another_models_tensors_and_unknown_names(tmp_path: Path) -> None:
    batch = two_frames()
    other = tensor("a", 1, 1)
    other.target_ids = [2]
    unknown = tensor("c", 1, 1)
    batch.tensors += [other, unknown, unknown]
    with Inferencer.from_config(sum_of_two(tmp_path)) as model:
        model.process(batch)
        said = [n for n in model.notices if n.level == "warning"]
        assert model.inferred_items == 0
    (notice,) = said
    assert "called 'c'; the model's inputs are a, b: it is not used" in notice.sentence


def test_a_batch_without_tensors_goes_through(tmp_path: Path) -> None:
    batch = two_frames()
    with Inferencer.from_config(sum_of_two(tmp_path)) as model:
        assert model.process(batch) == batch.metas
        assert model.inferred_items == 0


def test_types_are_converted_or_refused(tmp_path: Path) -> None:
    with Inferencer.from_config(sum_of_two(tmp_path)) as model:
        batch = two_frames()
        for name in ("a", "b"):
            wrong = tensor(name, 1, 1)
            wrong.data = np.zeros((1, 4), np.int64)
            batch.tensors.append(wrong)
        with pytest.raises(EngineError, match="int64"):
            model.process(batch)
