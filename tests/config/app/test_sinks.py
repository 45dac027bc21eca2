"""Outputs of deepstream-app configs: which there are by the tiler, and which are left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.config import PipelineSpec, load_pipeline

SOURCE = "[source0]\nenable=1\ntype=2\nuri=file://a.mp4\n"
Read = Callable[..., PipelineSpec]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(text: str) -> PipelineSpec:
        path = tmp_path / "app.txt"
        path.write_text(SOURCE + text)
        return load_pipeline(path)

    return read


def told(spec: PipelineSpec, word: str) -> list[str]:
    return [f"{n.level} {n.sentence}" for n in spec.notices if word in n.sentence]


def test_sinks_of_single_sources(read: Read) -> None:
    """The number of a sink is the index of a source among those that are on."""
    sinks = "".join(
        f"[sink{n}]\nenable=1\ntype=3\noutput-file=o{n}.mp4\nsource-id={n}\n" for n in (0, 1, 5)
    )
    sinks += "[sink6]\nenable=1\ntype=3\noutput-file=o6.mp4\n"  # 0
    spec = read(
        "[source3]\nenable=0\ntype=2\nuri=file://c.mp4\n"
        "[source5]\nenable=1\ntype=2\nuri=file://b.mp4\n" + sinks
    )
    assert [spec.source_index(sink) for sink in spec.sinks] == [0, 1, 0]
    assert told(spec, "[sink5] is left out: there is no source 5")


@pytest.mark.parametrize(
    ("tiling", "sinks", "left_out"),
    [
        (0, {"a": 0, "b": 1, "l": 1, "m": 0}, []),
        (1, {"a": None, "m": None}, ["sink1", "sink2"]),
        (2, {"a": None, "l": 1}, ["sink1", "sink3"]),
        (3, {"a": 0, "b": 0, "l": 0, "m": 0}, []),
    ],
)
def test_which_sinks_there_are_by_the_tiler(
    read: Read, tiling: int, sinks: dict[str, int | None], left_out: list[str]
) -> None:
    texts = "".join(
        f"[sink{n}]\nenable=1\ntype=3\noutput-file={name}.mp4\nsource-id={source}\nlink-to-demux={link}\n"
        for n, (name, source, link) in enumerate(
            [("a", 0, 0), ("b", 1, 0), ("l", 1, 1), ("m", 0, 1)]
        )
    )
    spec = read(
        "[source1]\nenable=1\ntype=2\nuri=file://b.mp4\n"
        f"[tiled-display]\nenable={tiling}\nwidth=640\nheight=480\n{texts}"
    )
    if tiling == 1:
        sinks = {"a": None, "m": None}
    assert {Path(str(s.path)).stem: s.source for s in spec.sinks} == sinks
    assert [n.data["element"] for n in spec.notices if n.code == "element-left-out"] == left_out
    assert (spec.tiler is None) == (tiling in (0, 3))


LEFT_OUT = [
    ("type=9\n", "type=9 is no sink of the original; 1 (none), 2 (window), 3 (file)"),
    ("type=6\n", "no msg-broker-proto-lib; it takes libnvds_kafka_proto.so"),
    ("type=6\nmsg-broker-proto-lib=x.so\n", "'x.so' is no known adaptor; it takes libnvds_kafka"),
    ("type=6\nmsg-broker-proto-lib=libnvds_mqtt_proto.so\n", "no host; it takes msg-broker-conn"),
    (
        "type=6\nmsg-broker-proto-lib=/o/libnvds_azure_proto.so\nmsg-broker-conn-str=a\n",
        "Azure alone",
    ),
    *(
        (
            f"type=6\nmsg-broker-proto-lib=libnvds_mqtt_proto.so\nmsg-broker-conn-str=h;1\ntopic=t\n"
            f"msg-conv-payload-type={number}\n",
            f"msg-conv-payload-type={number}: ",
        )
        for number in (9, 256, 257)
    ),
]


@pytest.mark.parametrize(("text", "cause"), LEFT_OUT, ids=[row[1][:30] for row in LEFT_OUT])
def test_an_output_that_cannot_run_is_left_out(read: Read, text: str, cause: str) -> None:
    spec = read(f"[sink0]\nenable=1\ntype=1\n[sink1]\nenable=1\n{text}")
    (notice,) = [n for n in spec.notices if n.code == "element-left-out"]
    assert notice.level == "warning"
    assert cause in notice.sentence
    assert (notice.where or "").startswith(f"{spec.path}:")
    assert [sink.kind for sink in spec.sinks] == ["fake"]
