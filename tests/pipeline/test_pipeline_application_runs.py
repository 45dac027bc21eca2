"""deepstream-app configs that really run: frames, objects and files as their keys ask for."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import av
import numpy as np
import pytest

import headrace
from tests.pipeline.conftest import DETECTOR, FRAMES, READER, Run
from tests.profiles import slow

pytestmark = pytest.mark.filterwarnings("ignore::headrace.HeadraceWarning")


def size_of(path: Path) -> tuple[int, int, int]:
    with av.open(str(path)) as container:
        frames = list(container.decode(video=0))
    return frames[0].width, frames[0].height, len(frames)


@pytest.mark.slow
def test_frames_have_the_size_of_the_muxer(run: Run, tmp_path: Path) -> None:
    sink = "[sink0]\nenable=1\ntype=3\noutput-file=o.mp4\n"
    _, plain = run(DETECTOR + sink)
    own = plain[0].width, plain[0].height
    report, metas = run(f"[streammux]\nwidth={own[0] * 2}\nheight={own[1] * 2}\n" + DETECTOR + sink)
    assert report.frames == FRAMES
    assert {(m.width, m.height) for m in metas} == {(own[0] * 2, own[1] * 2)}
    assert size_of(tmp_path / "o.mp4") == (own[0] * 2, own[1] * 2, FRAMES)
    # the network sees the same picture, and its boxes are twice as large
    for one, two in zip(plain, metas, strict=True):
        assert len(one.objects) == len(two.objects)
        assert np.allclose(one.objects.rects * 2, two.objects.rects, atol=4)


@pytest.mark.slow
def test_dumps_of_the_primary_and_of_tracks(run: Run, tmp_path: Path) -> None:
    report, metas = run(
        f"[application]\ngie-kitti-output-dir={tmp_path}/boxes\n"
        f"kitti-track-output-dir={tmp_path}/tracks\n[tracker]\nenable=1\n" + DETECTOR,
        sources=2,
    )
    assert report.frames == 2 * FRAMES
    names = {f"00_{m.source_id:03d}_{m.frame:06d}.txt": m for m in metas}
    for folder in ("boxes", "tracks"):
        assert {p.name for p in (tmp_path / folder).iterdir()} == set(names)
    for name, meta in names.items():
        tracks = (tmp_path / "tracks" / name).read_text().splitlines()
        assert len(tracks) == len(meta.objects)
        for line, obj in zip(tracks, meta.objects, strict=True):
            words = line.split(" ")
            assert words[0] == obj.label
            assert int(words[1]) == obj.object_id
            assert [float(w) for w in words[5:7]] == pytest.approx([obj.left, obj.top], abs=1e-5)
        boxes = (tmp_path / "boxes" / name).read_text().splitlines()
        assert all(len(line.split(" ")) == 16 for line in boxes)
        assert len(boxes) >= len([o for o in meta.objects if o.object_id < 1 << 63])


@pytest.mark.slow
def test_a_sink_takes_the_source_of_its_index(run: Run, tmp_path: Path) -> None:
    off = "[source7]\nenable=0\ntype=2\nuri=file://conveyor.mp4\n"
    sinks = "".join(
        f"[sink{n}]\nenable=1\ntype=3\noutput-file=o{n}.mp4\nsource-id={n}\n" for n in range(2)
    )
    report, _ = run(off + DETECTOR + sinks, sources=2)
    assert report.frames == 2 * FRAMES
    assert [size_of(tmp_path / f"o{n}.mp4")[2] for n in range(2)] == [FRAMES, FRAMES]


def test_tiled_sources_make_one_video(run: Run, tmp_path: Path) -> None:
    report, _ = run(
        "[tiled-display]\nenable=1\nrows=1\ncolumns=2\nwidth=320\nheight=96\n[osd]\nenable=1\n"
        "[sink0]\nenable=1\ntype=3\noutput-file=o.mp4\n"
        "[sink1]\nenable=1\ntype=3\noutput-file=left.mp4\nsource-id=1\n" + DETECTOR,
        sources=2,
    )
    assert size_of(tmp_path / "o.mp4") == (320, 96, FRAMES)
    assert not (tmp_path / "left.mp4").exists()  # as in the original
    assert any(n.code == "element-left-out" for n in report.notices)


@pytest.mark.parametrize(("tiling", "linked"), [(1, False), (2, True)])
def test_a_tiler_makes_its_size_of_one_source(
    run: Run, tmp_path: Path, tiling: int, linked: bool
) -> None:
    run(
        f"[tiled-display]\nenable={tiling}\nrows=1\ncolumns=1\nwidth=320\nheight=96\n"
        "[sink0]\nenable=1\ntype=3\noutput-file=o.mp4\n"
        "[sink1]\nenable=1\ntype=3\noutput-file=apart.mp4\nlink-to-demux=1\n" + DETECTOR
    )
    assert size_of(tmp_path / "o.mp4") == (320, 96, FRAMES)
    apart = size_of(tmp_path / "apart.mp4")
    assert (apart != (320, 96, FRAMES)) == linked  # the stream by itself


@pytest.mark.parametrize(
    ("keys", "codec", "format"),
    [
        ("codec=1\ncontainer=1\nbitrate=400000\niframeinterval=2\n", "h264", "mp4"),
        slow("codec=2\ncontainer=2\n", "hevc", "matroska"),
        ("codec=3\ncontainer=1\n", "mpeg4", "mp4"),
    ],
)
def test_a_file_has_the_codec_and_the_container(
    run: Run, tmp_path: Path, keys: str, codec: str, format: str
) -> None:
    run(f"{DETECTOR}[sink0]\nenable=1\ntype=3\noutput-file=o.mp4\nsync=0\n{keys}")
    with av.open(str(tmp_path / "o.mp4")) as container:
        assert format in container.format.name
        assert container.streams.video[0].codec_context.name == codec
        packets = [p for p in container.demux(video=0) if p.size]
    assert len(packets) == FRAMES
    keyed = [p.is_keyframe for p in packets]
    assert sum(keyed) == (3 if "iframeinterval" in keys else 1)


@pytest.mark.slow
def test_a_timer_starts_and_stops_recordings(
    scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = "prefix=Gate&camera=4&interval=1&before=0&after=30"
    with headrace.open_pipeline(
        scene / "config_infer_primary.txt",
        sources=str(scene / "conveyor.mp4"),
        outputs=f"smart-record:{tmp_path}/rec?{options}",
        limit=110,
        device="cpu",
    ) as pipeline:
        pipeline.run()
    files = sorted((tmp_path / "rec").iterdir())
    assert [f.name[:13] for f in files] == ["Gate_4_00000_", "Gate_4_00001_"]
    assert all(re.fullmatch(r"Gate_4_\d{5}_\d{8}-\d{6}_\d+\.mp4", f.name) for f in files)
    log = (tmp_path / "smart_record.log").read_text().splitlines()
    assert len(log) == 2
    for row, file in zip(log, files, strict=True):
        number, width, height, length_ms, folder, name = row.split(":")
        assert (int(width), int(height)) == size_of(file)[:2]
        assert 900 <= int(length_ms) <= 4400  # from the key frame before
        assert (folder, name) == (str(tmp_path / "rec"), file.name)
        assert int(number) == int(file.name.split("_")[2])


def test_images_of_frames_and_objects_are_saved(run: Run, tmp_path: Path) -> None:
    (tmp_path / "rules.csv").write_text("begin,end,skip\n00:00:00,00:00:00,9\n")
    _, metas = run(
        f"{DETECTOR}[img-save]\nenable=1\noutput-folder-path=pictures\nsave-img-cropped-obj=1\n"
        "frame-to-skip-rules-path=rules.csv\nsecond-to-skip-interval=0.1\nmin-confidence=0.5\n"
        "min-box-width=30\n"
    )
    folder = tmp_path / "pictures"
    rows = json.loads((folder / "metadata.json").read_text())
    begin, saved = None, []
    for meta in metas:
        kept = [o for o in meta.objects if o.confidence >= 0.5 and o.width >= 30]
        if kept and (begin is None or meta.pts_ns - begin >= 1e8):
            begin = meta.pts_ns
            saved += [(meta.frame, o.label) for o in kept]
    assert [(row["frame"], row["label"]) for row in rows] == saved
    assert len({row["frame"] for row in rows}) == 2  # 0 and 3: 25 frames a second
    crops = sorted((folder / "images_cropped").iterdir())
    assert [f"images_cropped/{p.name}" for p in crops] == [row["crop"] for row in rows]
    assert {p.stem for p in (folder / "images").iterdir()} == {"000_000000", "000_000003"}
    assert len((folder / "metadata.csv").read_text().splitlines()) == len(rows) + 1


PREPARE = """[property]
enable=1
target-unique-ids=1
network-input-order=0
processing-width=320
processing-height=192
network-input-shape=4;3;192;320
network-color-format=0
tensor-data-type=0
tensor-name=image
maintain-aspect-ratio=1
scaling-filter=1
scaling-pool-memory-type=0
custom-lib-path=libcustom2d_preprocess.so
custom-tensor-preparation-function=CustomTensorPreparation
[user-configs]
pixel-normalization-factor=0.003921568
[group-0]
src-ids=-1
process-on-roi=1
"""


def test_prepared_regions_are_what_the_model_sees(run: Run, scene: Path) -> None:
    _, plain = run(DETECTOR)
    width, height = plain[0].width, plain[0].height
    detector = DETECTOR + "input-tensor-meta=1\n[pre-process]\nenable=1\nconfig-file=pre.txt\n"
    (scene / "pre.txt").write_text(PREPARE + f"roi-params-src-0=0;0;{width};{height}\n")
    _, whole = run(detector)
    for one, two in zip(plain, whole, strict=True):
        assert len(one.objects) == len(two.objects) > 0
        assert np.allclose(one.objects.rects, two.objects.rects, atol=2)
    half = width // 4 * 2
    (scene / "pre.txt").write_text(PREPARE + f"roi-params-src-0={half};0;{width - half};{height}\n")
    _, right = run(detector)
    rects = np.concatenate([meta.objects.rects for meta in right])
    assert len(rects)
    assert (rects[:, 0] >= half - 1).all()  # boxes are of the region, in pixels of the frame
    assert any(meta.figures for meta in right)  # it is drawn


def test_a_triton_model_finds_the_same(run: Run, scene: Path) -> None:
    _, plain = run(DETECTOR)
    folder = scene / "repository" / "conveyor" / "1"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(scene / "detector.onnx", folder / "model.onnx")
    (scene / "server.txt").write_text(
        """infer_config {
          unique_id: 9 max_batch_size: 1
          backend { triton { model_name: "conveyor" version: -1
            model_repo { root: "repository" strict_model_config: true } } }
          preprocess { network_format: IMAGE_FORMAT_RGB maintain_aspect_ratio: 1
            frame_scaling_filter: 1 normalize { scale_factor: 0.00392156862745098 } }
          postprocess { labelfile_path: "labels.txt" detection {
            num_detected_classes: 6 custom_parse_bbox_func: "parse_conveyor"
            nms { confidence_threshold: 0.3 iou_threshold: 0.5 topk: 50 } } }
          custom_lib { path: "conveyor_parser.py" } }
        input_control { process_mode: PROCESS_MODE_FULL_FRAME interval: 0 }
        output_control { detect_control { filter_out_class_ids: [ 0 ] } }
        """
    )
    server = DETECTOR.replace("config_infer_primary.txt", "server.txt") + "plugin-type=1\n"
    _, metas = run(server)
    for one, two in zip(plain, metas, strict=True):
        kept = one.objects.class_ids != 0
        assert np.array_equal(one.objects.rects[kept], two.objects.rects)
        assert set(two.objects.component_ids.tolist()) == {1}  # the group's number wins


def test_secondaries_read_the_objects(run: Run) -> None:
    _, metas = run(DETECTOR + READER + "[tracker]\nenable=1\n")
    read = [c for meta in metas for obj in meta.objects for c in obj.classifiers]
    assert read
    assert {c.component_id for c in read} == {2}


@pytest.mark.parametrize("new", [0, 1])
def test_messages_are_those_of_test5(
    run: Run, tmp_path: Path, new: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[int, float]] = []
    from headrace.media.sinks import messages

    def put(_: object, message: bytes) -> None:
        sent.append((0, 0.0))

    monkeypatch.setattr(messages.Sender, "put", put)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    _, metas = run(
        DETECTOR + "[streammux]\nwidth=1280\nheight=768\n"
        "[sink0]\nenable=1\ntype=6\nmsg-broker-proto-lib=libnvds_mqtt_proto.so\ntopic=t\n"
        f"msg-broker-conn-str=127.0.0.1;1\nmsg-conv-msg2p-new-api={new}\nmsg-conv-frame-interval=2\n"
    )
    counted = metas[::2] if new else metas
    assert sent
    assert len(sent) == sum(len(m.objects) for m in counted)


def test_every_second_frame_of_a_source(run: Run) -> None:
    _, metas = run(
        "[source1]\nenable=1\ntype=2\nuri=file://conveyor.mp4\ndrop-frame-interval=2\n" + DETECTOR
    )
    times = {n: [m.pts_ns for m in metas if m.source_id == n] for n in (0, 1)}
    assert times[1][:2] == times[0][::2][:2]
