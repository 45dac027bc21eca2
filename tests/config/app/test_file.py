"""deepstream-app configs: what is applied, what is named in a notice, what is refused."""

# ruff: noqa: E501 (tables: one case per line)

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.config import PipelineSpec, ProcessMode, load_pipeline
from headrace.errors import ConfigError

APPS = Path(__file__).parent / "apps"
SOURCE = "[source0]\nenable=1\ntype=2\nuri=file://a.mp4\n"
MODEL = "[property]\ngie-unique-id=9\nonnx-file=m.onnx\nnum-detected-classes=2\nbatch-size=1\n"

Read = Callable[..., PipelineSpec]


@pytest.fixture
def app(tmp_path: Path) -> Callable[[str], PipelineSpec]:
    """Load one of the sample files from a folder of its own."""
    shutil.copytree(APPS, tmp_path, dirs_exist_ok=True)
    return lambda name: load_pipeline(tmp_path / name)


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(text: str, *, source: bool = True, name: str = "app.txt") -> PipelineSpec:
        path = tmp_path / name
        path.write_text((SOURCE if source else "") + text)
        return load_pipeline(path)

    return read


def told(spec: PipelineSpec, word: str) -> list[str]:
    return [f"{n.level} {n.sentence}" for n in spec.notices if word in n.sentence]


# --- whole files ----------------------------------------------------------------------------------


def test_ini(app: Callable[[str], PipelineSpec], tmp_path: Path) -> None:
    (tmp_path / "tracker.yml").write_text("tracker: iou\n")
    spec = app("street.txt")
    names = [source.label.rpartition("/")[2] for source in spec.sources]
    # further files of several URIs come behind all other sources
    assert names == ["crossing_0.mp4", "stream1", "camera:2", "crossing_1.mp4"]
    assert spec.sources[0].uri == str(tmp_path / "clips/crossing_0.mp4")
    first, gate, camera, _ = spec.sources
    assert (first.drop_frame_interval, first.loop, first.live) == (2, True, None)
    assert (gate.latency_ms, gate.rtp_protocol, gate.loop, gate.live) == (250, "tcp", False, True)
    assert (gate.reconnect_interval_s, gate.reconnect_attempts) == (10, 5)
    assert camera.live is True

    detector, vehicle, plate = spec.models  # the plate reader works on what the second finds
    assert [m.config.name for m in spec.models] == [
        "config_infer_primary.txt",
        "config_infer_vehicle.txt",
        "config_infer_plate.txt",
    ]
    assert detector.overrides == {
        "gie_unique_id": 1,
        "process_mode": ProcessMode.PRIMARY,
        "batch_size": 4,
        "interval": 1,
        "gpu_id": 0,
        "model_engine_file": tmp_path / "detector.onnx_b4_gpu0_fp32.engine",
    }
    assert detector.border_colors == {-1: (1, 0, 0, 1), 0: (1, 0, 0, 1), 2: (0, 1, 0, 1)}
    assert vehicle.process_mode is ProcessMode.SECONDARY
    assert (vehicle.operate_on_gie_id, vehicle.operate_on_class_ids) == (1, ())
    assert vehicle.labelfile_path is None  # the original does not pass it on
    assert told(spec, "labelfile-path: not applied, as in the original, labels come from")
    assert vehicle.gpu_id == 0  # global-gpu-id
    assert (plate.operate_on_gie_id, plate.operate_on_class_ids) == (2, (0, 1))

    assert spec.tracker is not None
    assert spec.tracker.config == tmp_path / "tracker.yml"
    assert spec.tiler is not None
    assert (spec.tiler.rows, spec.tiler.columns, spec.tiler.width) == (2, 2, 1600)
    assert (spec.osd.show, spec.osd.border_width, spec.osd.text_size) == (True, 2, 14)
    assert spec.osd.text_bg_color == (0.2, 0.2, 0.2, 0.8)
    assert spec.osd.show_masks
    assert spec.osd.show_ids
    assert [sink.text for sink in spec.sinks] == [
        f"kitti-primary:{tmp_path / 'labels/detector'}",
        f"kitti-objects:{tmp_path / 'labels/tracked'}",
        f"video:{Path('street.mp4').absolute()}",  # to the original this is no path of the file
    ]
    assert spec.sinks[2].source is None  # the tiler's image
    assert spec.batch_size == 4
    assert spec.batch_timeout_s == pytest.approx(0.04)


def test_notices_name_what_is_not_applied_once(
    app: Callable[[str], PipelineSpec], tmp_path: Path
) -> None:
    (tmp_path / "tracker.yml").write_text("tracker: iou\n")
    messages = [f"{n.level} {n.sentence}" for n in app("street.txt").notices]
    for expected in (
        "info [sink0] is left out: there is no window",
        "info images of several sources in one have boxes without text",
        "info gpu-id, nvbuf-memory-type, cudadec-memtype",
        "info tracker-width, tracker-height",
    ):
        assert sum(message.startswith(expected) for message in messages) == 1, expected
    everything = "\n".join(messages)
    for off in ("nonsense", "nvds-analytics", "sink2", "smart-record", "enable-padding", "s3cr3t"):
        assert off not in everything


@pytest.mark.parametrize(("port", "shown"), [("", "8554"), ("rtsp-port=8600\n", "8600")])
def test_an_output_by_rtsp_is_served(read: Read, port: str, shown: str) -> None:
    spec = read(f"[sink3]\nenable=1\ntype=4\ncodec=2\nbitrate=900000\ncontainer=1\n{port}")
    (notice,) = told(spec, "[sink3]")
    assert notice.startswith(f"info [sink3] players find it at rtsp://127.0.0.1:{shown}/ds-test")
    (sink,) = spec.sinks
    assert (sink.kind, sink.uri) == ("publish", f"rtsp-server://0.0.0.0:{shown}/ds-test")
    assert (sink.codec, sink.bitrate, sink.container) == ("h265", 900_000, None)


def test_origins_are_the_apps_lines(app: Callable[[str], PipelineSpec], tmp_path: Path) -> None:
    spec = app("street.txt")
    (tmp_path / "config_infer_primary.txt").write_text(MODEL)
    lines = (APPS / "street.txt").read_text().splitlines()

    def line(text: str) -> str:
        return f"{spec.path}:{lines.index(text) + 1}"

    assert str(spec.sources[1].origin("latency_ms")) == line("latency=250")
    assert str(spec.origin("batch_timeout_ms")) == line("batched-push-timeout=40000")
    assert str(spec.models[0].origin("interval")) == line("interval=1")
    cfg = spec.models[0].load()
    assert (cfg.gie_unique_id, cfg.interval, cfg.batch_size) == (1, 1, 4)
    assert str(cfg.origin("gie-unique-id")) == line("gie-unique-id=1")
    assert cfg.class_attrs(0).border_color == (1, 0, 0, 1)
    assert str(cfg.origin("border-color", class_id=0)) == line("bbox-border-color0=1;0;0;1")
    assert any("class 2 has no effect" in n.sentence for n in cfg.notices)


def test_yaml_with_a_table_of_sources(app: Callable[[str], PipelineSpec], tmp_path: Path) -> None:
    spec = app("street.yml")
    assert [s.label for s in spec.sources] == [
        str(tmp_path / "clips/a.mp4"),
        "rtsp://cam.example/1",
        str(tmp_path / "clips/b000.mp4"),
        str(tmp_path / "clips/b001.mp4"),
    ]
    assert str(spec.sources[1].origin("reconnect_interval_s")) == f"{tmp_path / 'sources.csv'}:6"
    assert [s.kind for s in spec.sinks] == ["fake"]
    assert not spec.osd.show_text
    assert spec.batch_timeout_s == math.inf
    assert spec.models[1].operate_on_class_ids == (0, 2)
    assert spec.models[1].operate_on_gie_id == -1  # what its own file says does not count then
    assert spec.tracker is not None
    assert spec.tracker.text == "iou"
    assert told(spec, "libmytracker.so") == [
        f"warning there is no file {tmp_path / 'libmytracker.so'}: "
        "the built-in tracker iou tracks in its place"
    ]


def test_source_list(app: Callable[[str], PipelineSpec], tmp_path: Path) -> None:
    spec = app("list.txt")
    assert [s.uri for s in spec.sources] == [str(tmp_path / "a.mp4"), "rtsp://cam/1", "camera:3"]
    assert [s.name for s in spec.sources] == ["gate", None, "yard"]
    assert [s.latency_ms for s in spec.sources] == [150, 400, 150]  # [source1] over the list
    assert {s.reconnect_interval_s for s in spec.sources} == {0}
    assert told(spec, "CSI cameras")
    assert told(spec, "http-port")
    # as many as there are sources, whatever the groups say
    assert (spec.batch_size, spec.models[0].batch_size, spec.models[1].batch_size) == (3, 3, 8)


@pytest.mark.parametrize("name", ["street.txt", "street.yml", "list.txt"])
def test_round_trip(app: Callable[[str], PipelineSpec], tmp_path: Path, name: str) -> None:
    spec = app(name)
    (tmp_path / "again.yml").write_text(spec.dump())
    again = load_pipeline(tmp_path / "again.yml")
    assert again == spec
    assert again.notices == ()
    assert again.dump() == spec.dump()


# --- single things --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "meant"),
    [
        ("file://clip%20a.mp4", "{}/clip a.mp4"),
        ("file:///abs/b.mp4", "/abs/b.mp4"),
        ("plain.mp4", "{}/plain.mp4"),
        ("http://host/x.m3u8?t=1", "http://host/x.m3u8?t=1"),
    ],
)
def test_uris(read: Read, tmp_path: Path, uri: str, meant: str) -> None:
    spec = read(f"[source0]\nenable=1\ntype=2\nuri={uri}\n", source=False)
    assert spec.sources[0].uri == meant.format(tmp_path)


def test_without_an_osd_group_nothing_is_drawn(read: Read) -> None:
    assert not read("").osd.show
    assert not read("[osd]\nenable=0\nborder-width=3\n").osd.show
    assert read("[osd]\nenable=1\n").osd.show


def test_every_number_of_smart_record_but_2_waits_for_messages(read: Read) -> None:
    camera = "[source0]\nenable=1\ntype=4\nuri=rtsp://camera/1\nsmart-record={}\n"
    timed = [
        "interval" in str(read(camera.format(number), source=False).sinks[0].text)
        for number in (1, 2, 3)
    ]
    assert timed == [False, True, False]


def test_groups_without_enable_are_off(read: Read) -> None:
    spec = read("[sink0]\ntype=1\n[primary-gie]\nconfig-file=a\n")
    assert spec.sinks == ()
    assert spec.models == ()
    assert len(told(spec, "has no enable=1 and is off")) == 2


def test_unknown_keys_and_groups_are_told_with_the_nearest(read: Read) -> None:
    spec = read("drop-frame-intervall=3\n[streammx]\n[streammux]\nbatch-sise=2\nzzzz=1\n")
    assert told(spec, "did you mean drop-frame-interval?")
    assert told(spec, "[streammx] is not known; did you mean [streammux]?")
    assert told(spec, "did you mean batch-size?")
    assert told(spec, "zzzz") == ["warning zzzz is not a key of [streammux] and has no effect"]


def test_the_last_of_repeated_keys_counts_and_is_told(read: Read) -> None:
    spec = read("uri=rtsp://u:s3cr3t@h/1\n")
    assert spec.sources[0].label == "rtsp://h/1"
    assert told(spec, "the last one counts")
    assert not told(spec, "s3cr3t")


SIBLINGS = {
    "parallel.yml": "branch0:\n  pgie-id: 1\n  src-ids: 0;1\nprimary-gie0:\n  enable: 1\n",
    "audio.txt": "[source0]\nenable=1\ntype=6\nuri=file://a.wav\n[audio-classifier]\nenable=1\n",
    "test1.yml": "source-list:\n  list: a.mp4;b.mp4;\nprimary-gie:\n  config-file-path: p.yml\n",
    "tao.yml": "source-list:\n  list: a.mp4;\nfilesink:\n  enable: 1\nprimary-gie:\n  plugin-type: 0\n",
    "lidar.yml": "name: reader\ntype: ds3d::dataloader\n",
    "action.txt": "[action-recognition]\nuri-list=file://a.mp4\n",
}


def test_in_yaml_sources_stand_in_the_table(read: Read, tmp_path: Path) -> None:
    (tmp_path / "sources.csv").write_text("enable,type,uri\n1,2,a.mp4\n")
    group = "source0:\n  enable: 1\n  type: 2\n  uri: b.mp4\n"
    table = "source:\n  csv-file-path: sources.csv\n"
    spec = read(group + table, source=False, name="app.yml")
    assert [Path(s.uri).name for s in spec.sources] == ["a.mp4"]
    assert told(spec, "source0: is left out: in YAML the original reads sources from")
    alone = read(group, source=False, name="app.yml")
    assert [Path(s.uri).name for s in alone.sources] == ["b.mp4"]
    assert told(alone, "source0: the original ignores it in YAML")


@pytest.mark.parametrize("name", SIBLINGS)
def test_configs_of_other_applications_are_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(SIBLINGS[name])
    with pytest.raises(ConfigError, match="this is a config of") as caught:
        load_pipeline(path)
    assert caught.value.finding.code == "foreign-file"
    assert caught.value.finding.remedies


def test_sinks_of_messages(read: Read) -> None:
    spec = read(
        "[sink0]\nenable=1\ntype=6\nmsg-broker-proto-lib=/opt/x/libnvds_kafka_proto.so\n"
        "msg-broker-conn-str=host;9092;cars/a b\nmsg-conv-config=conv.txt\ndisable-msgconv=1\n"
        "[sink1]\nenable=1\ntype=6\nmsg-broker-proto-lib=libnvds_amqp_proto.so\n"
        "msg-broker-conn-str=h;1;me\ntopic=t\nmsg-conv-payload-type=1\n"
        "msg-conv-frame-interval=5\nmsg-conv-msg2p-new-api=1\n"
    )
    texts = [sink.text or "" for sink in spec.sinks]
    assert re.search(
        r"^kafka://host:9092/cars%2Fa%20b\?every=frame&boxes=source&schema=deepstream&config=",
        texts[0],
    )
    assert texts[0].endswith("conv.txt")
    assert texts[1].endswith("amqp://h:1/t?every=5&schema=minimal&user=me")
    assert told(spec, "[sink0] disable-msgconv=1, and no [message-converter] is on")
    shared = read(
        "[message-converter]\nenable=1\nmsg-conv-payload-type=1\nmsg-conv-msg2p-new-api=1\n"
        "[sink0]\nenable=1\ntype=6\nmsg-broker-proto-lib=libnvds_mqtt_proto.so\ntopic=t\n"
        "msg-broker-conn-str=h;1\nmsg-conv-payload-type=0\ndisable-msgconv=1\n"
    )
    assert [s.uri for s in shared.sinks] == ["mqtt://h:1/t?every=30&schema=minimal"]


def test_a_missing_tracker_file_is_told(read: Read) -> None:
    spec = read(
        "[tracker]\nenable=1\nll-config-file=gone.yml\noperate-on-class-ids=0;2\ndisplay-tracking-id=0\n[osd]\nenable=1\n"
    )
    assert spec.tracker is not None
    assert spec.tracker.text == "iou"
    assert spec.tracker.options == {"operate_on_class_ids": (0, 2)}
    assert told(spec, "gone.yml")
    assert not spec.osd.show_ids


def test_models_without_ids_keep_their_order(read: Read) -> None:
    spec = read(
        "[secondary-gie3]\nenable=1\nconfig-file=b\n[secondary-gie1]\nenable=1\nconfig-file=c\n"
        "[primary-gie]\nenable=1\nconfig-file=a\n"
    )
    assert [m.config.name for m in spec.models] == ["a", "b", "c"]


def test_a_circle_of_models_is_told(read: Read) -> None:
    spec = read(
        "[secondary-gie0]\nenable=1\nconfig-file=b\ngie-unique-id=2\noperate-on-gie-id=3\n"
        "[secondary-gie1]\nenable=1\nconfig-file=c\ngie-unique-id=3\noperate-on-gie-id=2\n"
        "[secondary-gie2]\nenable=1\nconfig-file=d\ngie-unique-id=4\noperate-on-gie-id=8\n"
    )
    assert {m.config.name for m in spec.models} == {"b", "c", "d"}
    assert told(spec, "in a circle")
    assert told(spec, "operate-on-gie-id=8: no model has this")


def test_preparations_of_tensors_belong_to_models(read: Read, tmp_path: Path) -> None:
    spec = read(
        "[primary-gie]\nenable=1\nconfig-file=m.txt\ninput-tensor-meta=1\ngie-unique-id=1\n"
        "[secondary-gie0]\nenable=1\nconfig-file=s.txt\ngie-unique-id=2\n"
        "[secondary-gie1]\nenable=1\nconfig-file=t.txt\ngie-unique-id=3\ninput-tensor-meta=1\n"
        "[pre-process]\nenable=1\nconfig-file=frames.txt\n"
        "[secondary-pre-process0]\nenable=1\nconfig-file=objects.txt\noperate-on-gie-id=1\n"
        "[secondary-pre-process1]\nenable=1\nconfig-file=more.txt\n"
    )
    primary, plain, taker = spec.models
    assert primary.preprocess == tmp_path / "frames.txt"
    assert primary.input_tensor_from_meta
    assert plain.preprocess is None
    assert taker.preprocess == tmp_path / "objects.txt"
    assert taker.preprocess_gie_id == 1
    assert told(spec, "[secondary-pre-process1] is left out: there is no [secondary-gieN]")


REFUSED = [
    ("[streammux]\nbatch-size=x\n", "app.txt:6: batch-size=x is not an integer", "from 0 to 1024"),
    ("[sink0]\nenable=1\ntype=3\n", "[sink0] has no output-file", "out.mp4"),
    ("[sink0]\nenable=yes\n", "enable=yes is not an integer", "write 1 or 0"),
    ("[source1]\nenable=1\ntype=12\nuri=a\n", "type=12 is not a type of source", "2 (a URI)"),
    ("[source1]\nenable=1\ntype=4\n", "the source has no uri", "rtsp://"),
    ("[source1]\nenable=1\ntype=3\nuri=file://a%d\nnum-sources=2000\n", "more than 1024 sources", "1024"),
    ("[primary-gie]\nenable=1\n", "[primary-gie] has no config-file", "nvinfer config"),
    ("[primary-gie]\nenable=1\nconfig-file=a\nplugin-type=2\n", "plugin-type=2 is neither nvinfer", "enable=0"),
    ("[primary-gie]\nenable=1\nconfig-file=a\nbbox-border-color1=1;0\n", "not a list of 4", "4 numbers"),
    ("[primary-gie]\nenable=1\nconfig-file=a\nbbox-bg-color1=1;0;0;2\n", "not in range", "4 numbers"),
    ("[primary-gie]\nenable=1\nconfig-file=a\ngie-unique-id=1\n[secondary-gie0]\nenable=1\nconfig-file=b\ngie-unique-id=1\n",
     "gie-unique-id 1 is given twice", "for each model"),
    ("[source-list]\nlist=a;b\nnum-source-bins=3\n[source-attr-all]\nenable=1\n", "num-source-bins is 3, but list has 2", "2"),
    ("[source-list]\nlist=a\n[source-attr-all]\nenable=1\n[source4]\nuri=b\n", "[source4] is beyond the 1 items", "from 0 to 0"),
    ("no group\n", "is not key=value", "[group]"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "found", "help_"), REFUSED, ids=[r[1][:30] for r in REFUSED])
def test_refusals_say_what_where_and_how(read: Read, text: str, found: str, help_: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    message = str(caught.value)
    assert found in message
    assert help_ in message
    assert "app.txt:" in message


def test_no_source_left(read: Read) -> None:
    groups = "[streammux]\nbatch-size=1\n[source0]\nenable=1\ntype=5\n[source1]\nenable=0\n"
    with pytest.raises(ConfigError, match="no sources") as caught:
        read(groups, source=False)
    assert (
        "type=5 is left out: CSI cameras of Jetson boards cannot" in caught.value.finding.sentence
    )
    assert "(line 3)" in caught.value.finding.sentence
    assert "[source1] is off (line 6)" in caught.value.finding.sentence


@pytest.mark.parametrize("grid", ["rows=0\ncolumns=0\n", "rows=2\ncolumns=0\n"])
def test_a_grid_of_zero_is_chosen(read: Read, grid: str) -> None:
    tiler = read(f"[tiled-display]\nenable=1\n{grid}width=640\nheight=480\n").tiler
    assert tiler is not None
    assert (tiler.rows, tiler.columns) == (2 if "2" in grid else None, None)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("sink", "sink0"),
        ("Sink2", "sink2"),
        ("sources1", "source1"),
        ("primary-gie0", "primary-gie"),
    ],
)
def test_a_suggested_group_is_another_one(read: Read, written: str, meant: str) -> None:
    spec = read(f"[{written}]\nenable=1\n")
    assert told(spec, "is not known") == [
        f"warning group [{written}] is not known; did you mean [{meant}]?"
    ]


def test_what_a_desktop_shows_is_no_mistake(read: Read) -> None:
    spec = read(
        "[sink0]\nenable=1\ntype=2\n[sink1]\nenable=1\ntype=5\n"
        "[streammux]\nwidth=1920\nheight=1080\nwidth=1920\nenable-padding=0\n"
    )
    assert [n.sentence for n in spec.notices if n.level == "warning"] == []
    assert told(spec, "no window") == [
        f"info [sink0] is left out: there is no window to show frames in; headrace run {spec.path} "
        "--view shows them in a browser"
    ]


@pytest.mark.parametrize(
    ("csv", "found"),
    [
        ("", "sources.csv:1: the file has no rows"),
        ("enable,type\n1,2\n", "sources.csv:1: the header names no uri"),
        ("enable,type,uri\n1,x,a\n", "sources.csv:2: type=x is not an integer"),
        ("enable,uri\n0,a\n", "the pipeline has no sources"),
        (None, "there is no such CSV file"),
    ],
)
def test_refused_tables(read: Read, tmp_path: Path, csv: str | None, found: str) -> None:
    if csv is not None:
        (tmp_path / "sources.csv").write_text(csv)
    with pytest.raises(ConfigError, match=found):
        read("source:\n  csv-file-path: sources.csv\n", source=False, name="app.yml")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("uri=rtsp://u:s3cr3t@h\\q", ""),
        ("uri rtsp://u:s3cr3t@h/1", "rtsp://h/1"),
        ("rtsp://u:s3cr3t@h/1", "rtsp://h/1"),
        ("[rtsp://u:s3cr3t@h", "[rtsp://h"),
        ("type=rtsp://u:s3cr3t@h/1", "rtsp://h/1"),
    ],
)
def test_passwords_do_not_appear_in_refusals(read: Read, line: str, shown: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(f"[source1]\nenable=1\ntype=4\n{line}\n")
    assert "s3cr3t" not in str(caught.value)
    assert shown in str(caught.value)


@pytest.mark.parametrize("head", ["%YAML:1.0\n", "# an app\n%YAML 1.2\n---\n", "%YAML 1.2\n"])
def test_a_version_before_the_groups_is_passed_over(read: Read, head: str) -> None:
    spec = read(
        f"{head}source0:\n  enable: 1\n  type: 2\n  uri: a.mp4\n  type: 2\n",
        source=False,
        name="app.yml",
    )
    assert len(spec.sources) == 1
    assert [n.level for n in spec.notices if "the last one counts" in n.sentence] == ["info"]


def test_sources_and_models_have_their_gpus(tmp_path: Path) -> None:
    (tmp_path / "pgie.txt").write_text("[property]\nonnx-file=a.onnx\n")
    sources = "".join(
        f"[source{n}]\nenable=1\ntype=3\nuri=file:///{n}.mp4\n{more}" for n, more in enumerate(
            ["", "gpu-id=1\n", "gpu-id=0\nnum-sources=2\n"]
        )
    )  # fmt: skip
    rest = "[primary-gie]\nenable=1\nconfig-file=pgie.txt\n[sink0]\nenable=1\ntype=1\n"
    (tmp_path / "app.txt").write_text(f"[application]\nglobal-gpu-id=2\n{sources}{rest}")
    spec = load_pipeline(tmp_path / "app.txt")
    assert sorted((Path(s.uri).name, s.gpu_id) for s in spec.sources) == [
        ("0.mp4", 2),
        ("1.mp4", 1),
        ("2.mp4", 0),
        ("2.mp4", 0),
    ]
    assert [m.gpu_id for m in spec.models] == [2]
    (tmp_path / "plain.txt").write_text(sources + rest)
    plain = load_pipeline(tmp_path / "plain.txt")
    assert {s.gpu_id for s in plain.sources if Path(s.uri).name == "0.mp4"} == {None}
