"""nvtracker with a low-level tracker library of the user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.gstreamer import pyds
from tests.custom.nvmot.built import library
from tests.gstreamer.conftest import Run, video
from tests.profiles import slow


def records(buffer: Any) -> tuple[list[int], list[tuple[int, int]]]:
    """Ids of the objects of a frame, and (type, id) of records beside it."""
    batch = pyds.gst_buffer_get_nvds_batch_meta(hash(buffer))
    node, ids = batch.frame_meta_list.data.obj_meta_list, []
    while node is not None:
        ids.append(int(node.data.object_id))
        node = node.next
    node, found = batch.batch_user_meta_list, []
    while node is not None:
        user = pyds.NvDsUserMeta.cast(node.data)
        kind = user.base_meta.meta_type
        if kind in (
            pyds.NvDsMetaType.NVDS_TRACKER_PAST_FRAME_META,
            pyds.NvDsMetaType.NVDS_TRACKER_SHADOW_LIST_META,
        ):
            data = pyds.NvDsTargetMiscDataBatch.cast(user.user_meta_data)
            for stream in pyds.NvDsTargetMiscDataBatch.list(data):
                for obj in pyds.NvDsTargetMiscDataStream.list(stream):
                    found.append((int(kind), int(obj.uniqueId)))
        node = node.next
    return ids, found


@pytest.mark.slow
@pytest.mark.parametrize("words", ["image 19 past 1 shadow 1", slow("crash 10")])
def test_a_library_of_the_user_gives_the_ids(
    play: Run, detector: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, words: str
) -> None:
    config = tmp_path / "words.txt"
    config.write_text(words)
    own = library(tmp_path_factory)
    ran = play(
        f"{video(80)} ! m.sink_0 nvstreammux name=m batch-size=1 width=640 height=384 ! "
        f"nvinfer config-file-path={detector} ! nvtracker ll-lib-file={own} "
        f"ll-config-file={config} tracker-width=320 tracker-height=192 ! fakesink name=s",
        s=records,
    )
    assert ran.errors == []
    frames = [ids for ids, _ in ran.seen["s"]]
    named = {i for ids in frames for i in ids}
    assert named
    if words.startswith("crash"):
        assert frames[10] == []
        assert len(set(frames[11]) - set(frames[9])) <= 1  # one that came meanwhile
        assert len(frames[11]) >= len(frames[9]) - 1
        assert any("goes untracked" in text for text in ran.warnings)
    else:
        kinds = {kind for _, found in ran.seen["s"] for kind, _ in found}
        assert kinds == {15, 19}
        assert {i for _, found in ran.seen["s"] for _, i in found} <= named


def test_a_library_that_cannot_be_driven_is_named_with_its_replacement(
    play: Run, detector: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    config = tmp_path / "words.txt"
    config.write_text("mute 1 empty 1")
    own = library(tmp_path_factory)
    ran = play(
        f"{video(20)} ! m.sink_0 nvstreammux name=m batch-size=1 width=640 height=384 ! "
        f"nvinfer config-file-path={detector} ! nvtracker ll-lib-file={own} "
        f"ll-config-file={config} ! fakesink name=s",
        s=records,
    )
    assert ran.errors == []
    (warning,) = (text for text in ran.warnings if own.name in text)
    assert "not loaded" in warning
    assert "the built-in tracker iou tracks" in warning
    assert any(ids for ids, _ in ran.seen["s"])


def spaces(buffer: Any) -> list[dict[int, Any]]:
    """Of each object of a frame, its user metadata by type, and its mask as type -1."""
    batch = pyds.gst_buffer_get_nvds_batch_meta(hash(buffer))
    node, found = batch.frame_meta_list.data.obj_meta_list, []
    while node is not None:
        mask, kinds = node.data.mask_params, {}
        if mask.size:
            kinds[-1] = mask.get_mask_array().tolist(), mask.threshold
        user = node.data.obj_user_meta_list
        while user is not None:
            kinds[int(user.data.base_meta.meta_type)] = user.data.user_meta_data
            user = user.next
        found.append(kinds)
        node = node.next
    return found


def test_masks_and_places_of_a_library_reach_probes(
    play: Run, detector: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    config = tmp_path / "words.txt"
    config.write_text("visible 1 foot 1 hull 3 mask 1")
    own = library(tmp_path_factory)
    ran = play(
        f"{video(20)} ! m.sink_0 nvstreammux name=m batch-size=1 width=640 height=384 ! "
        f"nvinfer config-file-path={detector} ! nvtracker ll-lib-file={own} "
        f"ll-config-file={config} tracker-width=320 tracker-height=192 ! fakesink name=s",
        s=spaces,
    )
    assert ran.errors == []
    objects = [kinds for frame in ran.seen["s"] for kinds in frame]
    assert objects
    types = [
        pyds.NvDsMetaType.NVDS_OBJ_VISIBILITY,
        pyds.NvDsMetaType.NVDS_OBJ_IMAGE_FOOT_LOCATION,
        pyds.NvDsMetaType.NVDS_OBJ_WORLD_FOOT_LOCATION,
        pyds.NvDsMetaType.NVDS_OBJ_IMAGE_CONVEX_HULL,
    ]
    for kinds in objects:
        assert set(kinds) == {-1, *map(int, types)}
        assert kinds[int(types[0])] == pytest.approx(0.75)
        values, threshold = kinds[-1]
        assert [value > threshold for value in values] == [False] * 3 + [True] + [False] * 4


@pytest.mark.parametrize("there", [True, False])
def test_an_event_changes_keys_of_a_tracker_that_runs(
    play: Run,
    gst: Any,
    detector: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    there: bool,
) -> None:
    config, change = tmp_path / "tracker.yml", tmp_path / "change.yml"
    config.write_text("TargetManagement: {probationAge: 1000}\n")
    if there:
        change.write_text("TargetManagement: {probationAge: 0, maxTargetsPerStream: 40}\n")
    pipelines: list[Any] = []
    launch = gst.parse_launch
    monkeypatch.setattr(
        gst, "parse_launch", lambda text: pipelines.append(launch(text)) or pipelines[-1]
    )
    passed: list[bool] = []

    def send(buffer: Any) -> None:
        passed.append(False)
        if len(passed) == 3:
            text = f'nv-tracker-config-update, stream_id=(string)0, config_path=(string)"{change}"'
            event = gst.Event.new_custom(
                gst.EventType.CUSTOM_DOWNSTREAM, gst.Structure.from_string(text)[0]
            )
            passed[-1] = pipelines[-1].get_by_name("t").get_static_pad("sink").send_event(event)

    ran = play(
        f"{video(20)} ! m.sink_0 nvstreammux name=m batch-size=1 width=640 height=384 ! "
        f"nvinfer config-file-path={detector} ! identity name=a ! "
        f"nvtracker name=t ll-config-file={config} ! fakesink name=s",
        a=send,
        s=records,
    )
    pipelines.clear()
    counts = [len(ids) for ids, _ in ran.seen["s"]]
    assert (ran.errors, passed[2]) == ([], True)
    assert not any(counts[:2])
    assert bool(counts[-1]) is there
    said = "maxTargetsPerStream" if there else "cannot be read"
    assert any(said in text for text in ran.warnings)
