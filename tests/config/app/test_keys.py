"""Every key of deepstream-app has the state that the table gives it: it acts, or it is named."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from docs._ext import app_keys
from headrace.config import PipelineSpec, load_pipeline
from headrace.config.app.keys import APP_GROUPS, KeyState
from headrace.config.key import Key
from headrace.config.values import Kind

APPS = Path(__file__).parent / "apps"
STATES: dict[tuple[str, str], KeyState] = {
    (group.name, key): state for group in APP_GROUPS for key, state in group.states().items()
}
PAIRS = [
    (group, key)
    for group, names in tomllib.loads((APPS / "keys.toml").read_text()).items()
    for key in names.split()
]
BASE = {
    "application": {},
    "tiled-display": {"enable": "1"},
    "source0": {"enable": "1", "type": "2", "uri": "file:///a.mp4"},
    "source1": {"enable": "1", "type": "4", "uri": "rtsp://h/1"},
    "streammux": {},
    "primary-gie": {"enable": "1", "config-file": "p.txt", "gie-unique-id": "1"},
    "secondary-gie0": {"enable": "1", "config-file": "s.txt", "gie-unique-id": "2"},
    "tracker": {"enable": "1"},
    "nvds-analytics": {"enable": "1", "config-file": "a.txt"},
    "osd": {"enable": "1"},
    "sink0": {"enable": "1", "type": "1"},
    "tests": {},
}
_FILE = {"type": "3", "output-file": "o.mp4"}
_BROKER = {
    "type": "6",
    "msg-broker-proto-lib": "libnvds_mqtt_proto.so",
    "msg-broker-conn-str": "h;1",
    "topic": "t",
}
_CONSUMED = {
    "enable": "1", "proto-lib": "libnvds_kafka_proto.so", "conn-str": "h;1",
    "subscribe-topic-list": "a;b",
}  # fmt: skip
_OF_BROKER = ("topic", "sleep-time", "debug-payload-dir")
_SOURCES = {"num-source-bins": "2", "list": "a;b"}
# what a key needs beside it, as {group: keys}; the group of the key itself as ""
_RECORD_KEYS = (
    "dir-path", "file-prefix", "cache", "video-cache", "container", "start-time",
    "default-duration", "duration", "interval",
)  # fmt: skip
_RECORDED = {
    "": {"type": "4", "uri": "rtsp://h/2", "smart-record": "2", "smart-rec-start-time": "40"},
    "source-list": {"list": "rtsp://h/3;rtsp://h/4", "num-source-bins": "2"},
}
_DEWARPED = {"dewarper0": {"enable": "1", "config-file": "d.txt", "num-surfaces-per-frame": "3"}}
BESIDE: dict[tuple[str, str], dict[str, dict[str, str]]] = {
    **{
        (group, key): {
            "": {"set-rtp-protocol": "7"},
            "source-list": {
                "use-nvmultiurisrcbin": "1",
                "list": "rtsp://h/3;rtsp://h/4",
                "num-source-bins": "2",
                "sensor-id-list": "c1;c0",
            },
        }
        for key in (
            "set-rtp-protocol",
            "init-rtsp-reconnect-interval-sec",
            "simulate-fps-interval-ms",
            "sensorID-padID-mapping",
        )
        for group in ("sourceN", "source-attr-all")
    },
    **{
        ("sourceN", key): {
            "": {
                "type": "1",
                "camera-width": "8",
                "camera-height": "8",
                "camera-fps-n": "30",
                "camera-fps-d": "1",
            }
        }
        for key in ("camera-width", "camera-height", "camera-fps-n", "camera-fps-d")
    },
    **{
        ("source-attr-all", key): {
            "": {
                "camera-width": "8",
                "camera-height": "8",
                "camera-fps-n": "30",
                "camera-fps-d": "1",
            },
            "source-list": {"list": "usb:0;usb:1"},
        }
        for key in ("camera-width", "camera-height", "camera-fps-n", "camera-fps-d", "video-format")
    },
    **{
        ("message-consumerN", key): {"": _CONSUMED}
        for key in (
            "enable",
            "proto-lib",
            "conn-str",
            "config-file",
            "subscribe-topic-list",
            "sensor-list-file",
        )
    },
    **{
        ("source-list", key): {
            "": {
                "use-nvmultiurisrcbin": "1",
                "proto-lib": "libnvds_redis_proto.so",
                "conn-str": "h;1",
                "enable-error-propagation": "1",
                "topic": "t",
            }
        }
        for key in (
            "http-ip",
            "http-port",
            "max-batch-size",
            "enable-error-propagation",
            "proto-lib",
            "conn-str",
            "topic",
        )
    },
    ("sinkN", "msg-broker-comp-id"): {"": {"msg-conv-comp-id": "3"}},
    **{("source-list", key): {"sink0": _BROKER} for key in ("dummy-payload", "custom-ts-to-rfc")},
    ("sourceN", "video-format"): {"": {"type": "1"}},
    ("sourceN", "udp-buffer-size"): {"": {"type": "4", "uri": "rtsp://h/2"}},
    ("source-list", "use-nvmultiurisrcbin"): {"source-attr-all": {"set-rtp-protocol": "4"}},
    ("source-list", "low-latency-mode"): {"": {"use-nvmultiurisrcbin": "1"}},
    ("sourceN", "num-sources"): {"": {"type": "3", "uri": "file:///a%d.mp4"}},
    ("sourceN", "camera-v4l2-dev-node"): {"": {"type": "1"}},
    ("sourceN", "select-rtp-protocol"): {"": {"type": "4", "uri": "rtsp://h/2"}},
    ("sinkN", "output-file"): {"": _FILE},
    ("sinkN", "type"): {"": {"output-file": "o.mp4"}},
    ("sinkN", "rtsp-port"): {"": {"type": "4"}},
    **{
        ("sinkN", key): {"": _FILE}
        for key in ("codec", "container", "bitrate", "iframeinterval", "profile", "sw-preset")
    },
    ("sinkN", "source-id"): {"": _FILE, "tiled-display": {"enable": "0"}},
    ("sinkN", "link-to-demux"): {"": _FILE, "tiled-display": {"enable": "2"}},
    ("streammux", "max-latency"): {"": {"sync-inputs": "1"}},
    ("streammux", "enable-padding"): {"": {"width": "64", "height": "32"}},
    ("application", "enable-perf-measurement"): {"": {"perf-measurement-interval-sec": "2"}},
    ("application", "perf-measurement-interval-sec"): {"": {"enable-perf-measurement": "1"}},
    **{
        ("message-converter", key): {
            "": {"enable": "1", "msg-conv-payload-type": "0"},
            "sink0": _BROKER | {"disable-msgconv": "1"},
        }
        for key in (
            "enable",
            "msg-conv-config",
            "msg-conv-payload-type",
            "msg-conv-msg2p-new-api",
            "msg-conv-msg2p-lib",
            "msg-conv-comp-id",
            "msg-conv-dummy-payload",
            "debug-payload-dir",
        )
    },
    ("message-converter", "msg-conv-frame-interval"): {
        "": {"enable": "1", "msg-conv-msg2p-new-api": "1"},
        "sink0": _BROKER | {"disable-msgconv": "1"},
    },
    **{
        (group, f"smart-rec{key}"): _RECORDED
        for key in ("ord", *map("-{}".format, _RECORD_KEYS))
        for group in ("sourceN", "source-attr-all")
    },
    ("sourceN", "camera-id"): _RECORDED,
    **{
        ("img-save", key): {"": {"enable": "1", "output-folder-path": "pictures"}}
        for key in (
            "enable",
            "output-folder-path",
            "save-img-full-frame",
            "save-img-cropped-obj",
            "frame-to-skip-rules-path",
            "second-to-skip-interval",
            "min-confidence",
            "max-confidence",
            "min-box-width",
            "min-box-height",
            "gpu-id",
        )
    },
    ("streammux", "width"): {"": {"height": "32"}},
    ("streammux", "height"): {"": {"width": "32"}},
    ("sinkN", "msg-conv-frame-interval"): {"": {"msg-conv-msg2p-new-api": "1"}},
    **{
        ("secondary-pre-processN", key): {
            "": {"enable": "1", "config-file": "q.txt"},
            "secondary-gie0": {"input-tensor-meta": "1"},
        }
        for key in ("enable", "config-file", "operate-on-gie-id")
    },
    **{
        ("pre-process", key): {"": {"enable": "1", "config-file": "q.txt"}}
        for key in ("enable", "config-file", "operate-on-gie-id")
    },
    ("tiled-display", "square-seq-grid"): {"": {"rows": "1"}},
    **{
        ("dewarperN", key): {"": _DEWARPED["dewarper0"]}
        for key in (
            "enable",
            "config-file",
            "gpu-id",
            "source-id",
            "num-output-buffers",
            "num-out-buffers",
            "num-batch-buffers",
            "num-surfaces-per-frame",
            "nvbuf-memory-type",
        )
    },
    ("streammux", "num-surfaces-per-frame"): _DEWARPED,
}
# values that matter, where those of the kind would not
VALUES: dict[str, str] = {
    "config-file": "other.txt", "uri": "file:///b.mp4", "type": "3", "select-rtp-protocol": "4",
    "display-tracking-id": "0", "display-text": "0", "display-bbox": "0", "display-mask": "0",
    "ll-config-file": "t.yml", "ll-lib-file": "/x/own.so", "num-source-bins": "9",
    "sensor-id-list": "x;y", "sensor-name-list": "x;y", "list": "c;d", "codec": "2",
    "disable-msgconv": "1", "msg-conv-payload-type": "1", "topic": "u",
    "msg-broker-conn-str": "g;2", "msg-broker-proto-lib": "libnvds_redis_proto.so",
    "output-file": "p.mp4", "plugin-type": "3", "min-confidence": "0.5",
    "max-confidence": "0.9", "profile": "4", "sw-preset": "2",
    "square-seq-grid": "1", "container": "2", "set-rtp-protocol": "4",
    "proto-lib": "libnvds_mqtt_proto.so", "conn-str": "g;2", "sensorID-padID-mapping": "1",
    "video-format": "YUY2", "num-surfaces-per-frame": "2", "num-batch-buffers": "2",
}  # fmt: skip
_CHANGED = (  # keys that have to be there: another value is the difference
    "config-file", "uri", "list", "num-source-bins", "type", "output-file", "topic",
    "output-folder-path", "proto-lib", "conn-str", "subscribe-topic-list",
    "msg-broker-conn-str", "msg-broker-proto-lib",
)  # fmt: skip
_BY_KIND = {
    Kind.INT: "32", Kind.INT_FLAG: "1", Kind.FLAG: "1", Kind.INTS: "3;4", Kind.FLOATS: "1;0.5;0;1",
    Kind.STRING: "word", Kind.PATH: "/other", Kind.STRINGS: "x;y", Kind.FLOAT: "3",
}  # fmt: skip


def value_of(group: str, key: str) -> str:
    kind = next(g for g in APP_GROUPS if g.name == group)
    known: Key | None = kind.key(key)
    if (group, key) == ("sourceN", "type"):
        return "1"  # a camera
    if key in VALUES:
        return VALUES[key]
    return "1" if known is None else _BY_KIND[known.kind]


def text_of(groups: dict[str, dict[str, str]]) -> str:
    def lines() -> Iterator[str]:
        for name, keys in groups.items():
            yield f"[{name}]"
            yield from (f"{key}={value}" for key, value in keys.items())

    return "\n".join(lines()) + "\n"


def files(group: str, key: str) -> tuple[str, str]:
    """Return the file with the key, and the one without it."""
    name = {"sourceN": "source0", "sinkN": "sink0", "secondary-gieN": "secondary-gie0"}.get(
        group, group.replace("N", "0")
    )
    groups = {name: dict(keys) for name, keys in BASE.items()}
    if group in ("source-list", "source-attr-all"):
        del groups["source0"], groups["source1"]
        groups |= {"source-list": dict(_SOURCES), "source-attr-all": {"enable": "1"}}
    broker = key.startswith(("msg-", "disable-msg")) or key in _OF_BROKER
    if group == "sinkN" and broker:
        groups["sink0"] |= _BROKER
    for other, keys in BESIDE.get((group, key), {}).items():
        groups.setdefault(other or name, {}).update(keys)
    without = {
        n: {k: v for k, v in keys.items() if (n, k) != (name, key)} for n, keys in groups.items()
    }
    if key in _CHANGED or (STATES[group, key] == "applied" and key == "enable"):
        without = {n: dict(keys) for n, keys in groups.items()}
    own = groups.setdefault(name, {})
    if STATES[group, key] == "named" and name not in BASE:
        own.setdefault("enable", "1")
    own[key] = "0" if key == "enable" and STATES[group, key] != "named" else value_of(group, key)
    return text_of(groups), text_of(without)


@cache
def outcome(path: Path, text: str) -> tuple[str, PipelineSpec | None]:
    path.write_text(text)
    try:
        spec = load_pipeline(path)
    except Exception as error:
        return f"refused: {error}", None
    found = sorted(n.sentence for n in spec.notices if n.code not in ("duplicate-key", "group-off"))
    return spec.dump() + "\n".join(found), spec


def test_every_key_is_known() -> None:
    assert len(PAIRS) == 403
    assert [pair for pair in PAIRS if pair not in STATES] == []


def test_the_page_is_up_to_date() -> None:
    page = Path(__file__).parents[3] / "docs" / "app-keys.md"
    assert page.read_text("utf-8") == app_keys.page(), "make schema writes it"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all: a file without a key says the same of each."""
    return tmp_path_factory.mktemp("keys")


@pytest.mark.parametrize(("group", "key"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_a_key_does_what_the_table_says(folder: Path, group: str, key: str) -> None:
    written, without = files(group, key)
    path, state = folder / "app.txt", STATES[group, key]
    if group == "source":  # of YAML alone
        (folder / "s.csv").write_text("enable,type,uri\n1,2,a.mp4\n")
        path = path.with_suffix(".yml")
        written, without = "source:\n  csv-file-path: s.csv\n", "source:\n"
    plain, _ = outcome(path, without)
    acted, spec = outcome(path, written)
    assert acted != plain, f"{group} {key}={value_of(group, key)} makes no difference"
    if state == "applied":
        return
    assert spec is not None
    named = "left out" if key == "enable" else key
    group_name = group.rstrip("N")
    assert any(
        named in n.sentence or (f"[{group_name}" in n.sentence and "left out" in n.sentence)
        for n in spec.notices
    ), (group, key)
