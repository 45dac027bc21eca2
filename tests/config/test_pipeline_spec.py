"""Headrace's own pipeline file: short and long forms, paths, origins, refusals, the way back."""

# ruff: noqa: E501 (tables: one case per line)

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.config import (
    ModelConfig,
    ModelSpec,
    PipelineSpec,
    ProcessMode,
    SinkSpec,
    SourceSpec,
    TilerSpec,
    TrackerSpec,
    load_pipeline,
)
from headrace.config.file_kinds import file_kind, is_pipeline_file
from headrace.errors import ConfigError

Read = Callable[[str], PipelineSpec]

DETECTOR = """[property]
gie-unique-id=1
onnx-file=det.onnx
num-detected-classes=3
batch-size=2
operate-on-class-ids=1;2
[class-attrs-1]
border-color=0;0;1;1
"""


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(text: str, name: str = "pipe.yml") -> PipelineSpec:
        path = tmp_path / name
        path.write_text(text)
        return load_pipeline(path)

    return read


def refusal(read: Read, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(text)
    return str(caught.value)


def test_the_shortest_pipeline(read: Read, tmp_path: Path) -> None:
    spec = read("sources: clip.mp4\nmodels: det.txt\n")
    assert spec.sources == (SourceSpec(uri=str(tmp_path / "clip.mp4")),)
    assert spec.models == (ModelSpec(config=tmp_path / "det.txt"),)
    assert spec.tracker is None
    assert spec.tiler is None
    assert spec.sinks == ()
    assert spec.batch_size is None
    assert spec.batch_timeout_s == 0.04
    assert spec.osd.show
    assert spec.notices == ()
    assert spec.path.name == "pipe.yml"


def test_long_forms(read: Read, tmp_path: Path) -> None:
    spec = read(
        """
sources:
  - {uri: clip.mp4, name: gate, repeat: 3, loop: yes, camera-id: 7}
  - uri: rtsp://user:secret@cam/1
    live: false
    latency-ms: 200
    rtp-protocol: tcp
    reconnect-interval-s: 2.5
    reconnect-attempts: -1
models:
  - det.txt
  - config: cls.txt
    process-mode: secondary
    operate-on-gie-id: 1
    operate-on-class-ids: [0, 2]
    model-engine-file: cls.engine
tracker: {name: iou, settings: {max_age: 30}, operate-on-class-ids: 0}
tiler: {rows: 1, columns: 4, width: 640, height: 160}
osd: {show-text: off, border-width: 2, text-color: [1, 1, 0, 1], text-bg-color: 0;0;0;0.5}
sinks: [{kind: video, path: out.mp4}, {path: boxes.jsonl, source: 7}]
batch-size: 4
batch-timeout-ms: -1
"""
    )
    gate, camera = spec.sources
    assert (gate.name, gate.repeat, gate.loop, gate.camera_id) == ("gate", 3, True, 7)
    assert camera.live is False
    assert camera.latency_ms == 200
    assert camera.reconnect_attempts == -1
    assert camera.rtp_protocol == "tcp"
    assert camera.reconnect_interval_s == 2.5
    secondary = spec.models[1]
    assert secondary.overrides == {
        "process_mode": ProcessMode.SECONDARY,
        "operate_on_gie_id": 1,
        "operate_on_class_ids": (0, 2),
        "model_engine_file": tmp_path / "cls.engine",
    }
    assert spec.tracker is not None
    assert spec.tracker.text == "iou:max_age=30"
    assert spec.tracker.operate_on_class_ids == (0,)
    assert spec.tiler == TilerSpec(rows=1, columns=4, width=640, height=160)
    assert not spec.osd.show_text
    assert spec.osd.text_bg_color == (0, 0, 0, 0.5)
    assert [sink.text for sink in spec.sinks] == [
        f"video:{tmp_path / 'out.mp4'}",
        str(tmp_path / "boxes.jsonl"),
    ]
    assert [spec.source_index(sink) for sink in spec.sinks] == [None, 0]
    assert spec.batch_timeout_s == math.inf


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("iou", TrackerSpec(name="iou")),
        ("iou:max_age=30,min_iou=0.3", TrackerSpec(name="iou", settings={"max_age": "30", "min_iou": "0.3"})),
        ("{name: sort}", TrackerSpec(name="sort")),
    ],
)  # fmt: skip
def test_tracker_forms(read: Read, text: str, meant: TrackerSpec) -> None:
    assert read(f"sources: a\ntracker: {text}\n").tracker == meant


def test_tracker_file(read: Read, tmp_path: Path) -> None:
    tracker = read("sources: a\ntracker: t/mine.yaml\n").tracker
    assert tracker is not None
    assert tracker.text == str(tmp_path / "t" / "mine.yaml")


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("out.mp4", None, "out.mp4"),
        ("images/", "images", "images"),
        ("kitti:labels", "kitti", "labels"),
        ("mp4:x", "video", "x"),
        ("fake", "fake", None),
        ("{kind: fake, path: gone}", "fake", None),
    ],
)
def test_sink_forms(read: Read, tmp_path: Path, text: str, kind: str, name: str) -> None:
    (sink,) = read(
        f"sources: a\nsinks: '{text}'\n" if text[0] != "{" else f"sources: a\nsinks: {text}"
    ).sinks
    assert sink == SinkSpec(kind=kind, path=tmp_path / name if name else None)


def test_standard_output_is_no_file(read: Read) -> None:
    assert read("sources: a\nsinks: 'jsonl:-'\n").sinks[0].text == "jsonl:-"


def test_sink_kinds_cover_those_that_can_be_opened() -> None:
    from headrace.config.pipeline_keys import SINK_KINDS
    from headrace.media import SINK_KINDS as OPENED

    assert set(OPENED) <= set(SINK_KINDS)


def test_file_uris_are_paths(read: Read, tmp_path: Path) -> None:
    (tmp_path / "100%.mp4").touch()
    spec = read(
        "sources: ['file://clip%20a.mp4', 'file:///x/b.mp4', 'file://100%.mp4', 'p/*.png', 'p/']\n"
    )
    assert [s.uri for s in spec.sources] == [
        str(tmp_path / "clip a.mp4"),
        "/x/b.mp4",
        str(tmp_path / "100%.mp4"),
        str(tmp_path / "p/*.png"),
        f"{tmp_path}/p/",
    ]


def test_relative_to_the_real_folder_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "pipe.yml").write_text("sources: clip.mp4\n")
    (tmp_path / "link.yml").symlink_to(tmp_path / "real" / "pipe.yml")
    assert load_pipeline(tmp_path / "link.yml").sources[0].uri == str(
        tmp_path / "real" / "clip.mp4"
    )


def test_repeated_sources_are_opened_side_by_side(read: Read) -> None:
    spec = read("sources: [{uri: a, repeat: 2}, b]\nsinks: [{path: x.json, source: 2}]\n")
    assert [Path(s.uri).name for s in spec.opened_sources] == ["a", "a", "b"]
    assert {s.repeat for s in spec.opened_sources} == {1}
    assert spec.source_index(spec.sinks[0]) == 2


def test_every_value_knows_its_line(read: Read) -> None:
    spec = read("batch-size: 2\nsources:\n  - a\n  - uri: b\n    loop: true\nosd: {show: off}\n")
    place = f"{spec.path}:"
    assert str(spec.origin("batch-size")) == place + "1"
    assert str(spec.sources[0].origin("uri")) == place + "3"
    assert str(spec.sources[1].origin("loop")) == place + "5"
    assert spec.sources[1].origin("live").kind == "default"
    assert str(spec.osd.origin("show")) == place + "6"
    with pytest.raises(KeyError):
        spec.origin("nonsense")


def test_passwords_are_not_shown(read: Read) -> None:
    spec = read("sources: 'rtsp://user:s3cr3t@cam/1?token=t0k3n'\n")
    assert "s3cr3t" not in repr(spec)
    assert "t0k3n" not in repr(spec)
    assert spec.sources[0].label == "rtsp://cam/1"
    assert spec.sources[0].is_stream
    message = refusal(read, 'sources: ["rtsp://user:s3cr3t@cam/\\x01", {uri: [s3cr3t]}]\n')
    assert "s3cr3t" not in message


REFUSED = [
    ("sorces: [a]\nsources: a", "pipe.yml:1: sorces is not a key", "did you mean sources?"),
    ("sources: [{url: a}]", "url is not a key of a source", "expected one of uri, name"),
    ("sources: [{loop: yes}]", "a source has no uri", "uri: a path or URL"),
    ("sources: []", "sources is an empty list", "at least one"),
    ("models: a", "the pipeline has no sources", "sources: with a list"),
    ("sources:\n  -\n  - a", "pipe.yml:2: a source has no value", "a path or URL"),
    ("sources: [{uri: a, repeat: x}]", "repeat: x is not an integer", "from 1 to 1024"),
    ("sources: [{uri: a, repeat: 1025}]", "repeat: 1025 is not in range", "from 1 to 1024"),
    ("sources: [{uri: a, rtp-protocol: sctp}]", "not a known choice", "one of tcp, udp"),
    ("sources: a\nmodels: [{config: b, interval: -1}]", "interval: -1 is not in range", "0 or more"),
    ("sources: a\nmodels: [{config: b, process-mode: 3}]", "not a process mode", "primary, secondary"),
    ("sources: a\ntracker: {name: a, config: b}", "a name and a config", "one of both"),
    ("sources: a\ntracker: {settings: {a: 1}}", "neither name nor config", "one of both"),
    ("sources: a\ntracker: 'iou:max_age'", "is not usable", "max_age=30"),
    ("sources: a\ntiler: big", "'big' is not a grid", "2x2"),
    ("sources: a\ntiler: 0x2", "rows: 0 is not in range", "from 1 to 64"),
    ("sources: a\nosd: maybe", "show: maybe is not a flag", "true or false"),
    ("sources: a\nosd: {text-color: [1, 1, 1]}", "not a list of 4", "4 numbers"),
    ("sources: a\nosd: {text-color: [1, 1, 1, 2]}", "not in range", "4 numbers"),
    ("sources: a\nsinks: 'kiti:x'", "kiti is no kind of it", "did you mean kitti:?"),
    ("sources: a\nsinks: 'mqtt://me:pw@x/t'", "free of a user and password", "HEADRACE_"),
    ("sources: a\nsinks: 'rtmp://x'", "streams are written to rtsp, rtsps, udp, rtsp-server alone", "a path"),
    ("sources: a\nsinks: [{kind: video}]", "a sink has no path", "kind: fake"),
    ("sources: a\nsinks: [{path: x, source: 1}]", "pipe.yml:2: there is no source 1", "0 to 0"),
    ("sources: [{uri: a, camera-id: 3}, {uri: b, camera-id: 3}]", "camera-id 3 is given twice", "each"),
    ("sources: a\nbatch-size: 0", "batch-size: 0 is not in range", "from 1 to 1024"),
    ("sources: a\nsources: b", "sources is repeated, first in line 1", "each key once"),
    ("sources: [a\n", "malformed YAML", "expected"),
    ("sources: *x", "malformed YAML", "alias"),
    ("sources: [a]\n? [k]\n: v", "a key must be a plain text", "key: value"),
    ("sources: " + "[" * 100, "malformed YAML", "nested deeper"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "found", "help_"), REFUSED, ids=[r[1][:30] for r in REFUSED])
def test_refusals_say_what_where_and_how(read: Read, text: str, found: str, help_: str) -> None:
    message = refusal(read, text + "\n")
    assert found in message
    assert help_ in message
    assert "pipe.yml:" in message


def test_everything_wrong_is_told_at_once(read: Read) -> None:
    message = refusal(read, "sources: [{url: a}]\nbatch-size: x\nosd: 3\n")
    assert [n for n in (1, 2, 3) if f"pipe.yml:{n}: " in message] == [1, 2, 3]


def test_an_alias_of_a_mapping_stands_for_it(read: Read) -> None:
    spec = read("sources:\n  - &s {uri: a, loop: on}\n  - *s\n")
    assert spec.sources[0] == spec.sources[1]


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.yml", "sources: [x]\n", "pipeline"),
        ("a.yaml", "models: [x]\nsources: {", "pipeline"),
        ("a.yml", "property:\n  gpu-id: 0\n", "model"),
        ("a.yml", "streammux:\n  batch-size: 1\nsource:\n  csv-file-path: x\n", "app"),
        ("a.yml", "source: [x]\nmodels: [y]\n", "pipeline"),
        ("a.yml", "- sources\n", None),
        ("a.yml", "anything: {sources: 1}\n", None),
        ("a.txt", "# c\n[source0]\nenable=1\n", "app"),
        ("a.txt", "[property]\n[primary-gie]\n", "model"),
        ("a.txt", "sources: [x]\n", None),
        ("a.txt", "[other]\n", None),
        ("clip.mp4", "\0\0\0\x18ftyp[source0]\n", None),
    ],
)
def test_kinds_of_files(tmp_path: Path, name: str, text: str, kind: str | None) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert file_kind(path) == kind
    assert is_pipeline_file(path) == (kind in ("pipeline", "app"))


def test_what_cannot_be_read_is_no_pipeline_file(tmp_path: Path) -> None:
    assert not is_pipeline_file(tmp_path / "gone.yml")
    assert not is_pipeline_file(tmp_path)
    assert not is_pipeline_file("rtsp://x/y")
    assert not is_pipeline_file("\0.yml")


def test_a_models_config_says_how_to_run_it(read: Read, tmp_path: Path) -> None:
    (tmp_path / "det.txt").write_text(DETECTOR)
    with pytest.raises(ConfigError, match=r"headrace run .*det\.txt SOURCE"):
        load_pipeline(tmp_path / "det.txt")
    (tmp_path / "notes.txt").write_text("hello\n")
    with pytest.raises(ConfigError, match="no pipeline file"):
        load_pipeline(tmp_path / "notes.txt")


# --- models with overrides ------------------------------------------------------------------------


def test_overrides_replace_the_files_values(read: Read, tmp_path: Path) -> None:
    (tmp_path / "det.txt").write_text(DETECTOR)
    spec = read("sources: a\nmodels:\n  - config: det.txt\n    batch-size: 8\n    interval: 2\n")
    (cfg,) = spec.load_models()
    assert (cfg.batch_size, cfg.interval, cfg.operate_on_class_ids) == (8, 2, (1, 2))
    assert str(cfg.origin("batch_size")) == f"{spec.path}:4"
    assert str(cfg.origin("num_detected_classes")) == f"{tmp_path / 'det.txt'}:4"
    assert cfg.path == tmp_path / "det.txt"
    plain = read("sources: a\nmodels: det.txt\n").load_models()[0]
    assert plain == ModelConfig.load(tmp_path / "det.txt")


def test_colours_by_class(read: Read, tmp_path: Path) -> None:
    (tmp_path / "det.txt").write_text(DETECTOR)
    spec = read(
        "sources: a\nmodels:\n  - config: det.txt\n"
        "    border-colors: {all: [0, 1, 0, 1], 2: [1, 1, 0, 1], 5: [1, 1, 1, 1]}\n"
    )
    cfg = spec.models[0].load()
    green, yellow = (0, 1, 0, 1), (1, 1, 0, 1)
    assert [attrs.border_color for attrs in cfg.per_class] == [green, green, yellow]
    assert str(cfg.origin("border_color", class_id=2)) == f"{spec.path}:4"
    assert str(cfg.origin("border_color", class_id=1)) == f"{spec.path}:4"
    blue = read("sources: a\nmodels: [{config: det.txt, border-colors: {0: [0, 1, 0, 1]}}]\n")
    plain = blue.models[0].load()
    assert plain.class_attrs(1).border_color == (0, 0, 1, 1)
    assert str(plain.origin("border_color", class_id=1)) == f"{tmp_path / 'det.txt'}:8"
    assert any("class 5 has no effect" in n.sentence for n in cfg.notices)


def test_a_missing_model_names_the_pipelines_line(read: Read, tmp_path: Path) -> None:
    (tmp_path / "detector.txt").write_text(DETECTOR)
    spec = read("sources: a\nmodels: [detectr.txt]\n")
    with pytest.raises(ConfigError, match=r"pipe\.yml:2: there is no such config(.|\n)*detector"):
        spec.load_models()


# --- made by a program ----------------------------------------------------------------------------


def test_specs_made_by_programs_are_checked() -> None:
    with pytest.raises(ConfigError, match="did you mean repeat"):
        SourceSpec(uri="a", repeats=2)
    with pytest.raises(ConfigError, match="repeat=0"):
        SourceSpec(uri="a", repeat=0)
    with pytest.raises(ConfigError, match="at least one source"):
        PipelineSpec(sources=())
    with pytest.raises(ConfigError, match="one of both"):
        TrackerSpec()
    with pytest.raises(ConfigError, match="about a class"):
        ModelSpec(config=Path("a"), border_colors={-2: (0, 0, 0, 1)})
    assert SourceSpec(uri="a").uri == str(Path("a").absolute())
    source = SourceSpec(uri="a").changed(loop=True)
    assert source.loop
    assert source != SourceSpec(uri="a")


@pytest.mark.slow
def test_a_small_file_cannot_ask_for_more_than_fits(read: Read) -> None:
    many = ", ".join(f"{n}: [0, 0, 0, 1]" for n in range(2000))
    aliases = "\n".join("  - *m" for _ in range(1000))
    text = f"sources: a\nmodels:\n  - &m {{config: b, border-colors: {{{many}}}}}\n{aliases}\n"
    assert "more than 200000 values" in refusal(read, text)
    assert "longer than" in refusal(read, f"sources: [rtsp://{'x' * 10000}]\n")


def test_a_stream_out_of_a_pipeline_file(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yml"
    file.write_text("sources: [a.mp4]\nmodels: [a.txt]\nsinks: ['rtsp://ann:secret@host/in']\n")
    (sink,) = load_pipeline(file).sinks
    assert (sink.kind, sink.text) == ("publish", "rtsp://ann:secret@host/in")
    assert "secret" not in repr(sink)
    for written in (load_pipeline(file).dump(), "sources: a.mp4\nsinks: [{uri: udp://host:5000}]"):
        file.write_text(written)
        (sink,) = load_pipeline(file).sinks
        assert sink.kind == "publish"
    assert sink.text == "udp://host:5000"
    file.write_text("sources: a.mp4\nsinks: ['publish:rtsp://host/in']")
    assert load_pipeline(file).sinks[0].text == "rtsp://host/in"


@pytest.mark.parametrize(
    ("sink", "fix"),
    [
        ("{kind: messages, uri: rtsp://host/in}", "kind: publish"),
        ("{kind: publish, uri: mqtt://host/topic}", "kind: messages"),
        ("{path: a.mp4, uri: rtsp://host/in}", "kind: publish"),
        ("{uri: http://host/in}", "one of mqtt,"),
        ("{kind: publish, path: x}", "uri: rtsp://HOST/PATH"),
        ("{kind: messages, path: x}", "uri: mqtt://HOST/TOPIC"),
        (
            "{path: 'rtsp://host/in'}",
            "streams are written to rtsp, rtsps, udp, rtsp-server alone, under uri",
        ),
        ("'publish:x'", "publish needs a URL"),
        ("'publish:mqtt://host/topic'", "publish needs a URL"),
    ],
)
def test_a_sink_s_kind_fits_its_uri(read: Read, sink: str, fix: str) -> None:
    assert fix in refusal(read, f"sources: a.mp4\nsinks: [{sink}]\n")
