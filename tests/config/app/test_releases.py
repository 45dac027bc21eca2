"""A generation reads a deepstream-app config as that release does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.config import PipelineSpec, load_pipeline
from headrace.config.app.keys import APP_GROUPS
from headrace.config.app.releases import release_keys
from headrace.config.enums import Generation
from headrace.errors import ConfigError

SOURCE = "[source0]\nenable=1\ntype=2\nuri=file://a.mp4\n"
BROKER = (
    "[sink1]\nenable=1\ntype=6\nmsg-broker-proto-lib=libnvds_kafka_proto.so\n"
    "msg-broker-conn-str=localhost;9092\ntopic=t\nmsg-conv-payload-type=2\n"
)
Read = Callable[[str, Generation | None], PipelineSpec]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(text: str, generation: Generation | None) -> PipelineSpec:
        path = tmp_path / "app.txt"
        path.write_text(SOURCE + text)
        return load_pipeline(path, generation=generation)

    return read


def codes(spec: PipelineSpec, code: str) -> list[str]:
    return [n.sentence for n in spec.notices if n.code == code]


def test_keys_of_the_table_are_those_of_groups() -> None:
    known = {(group.name, name) for group in APP_GROUPS for name in group.states()}
    assert set(release_keys()) <= known


@pytest.mark.parametrize(
    ("text", "older", "newer"),
    [
        ("[streammux]\nbatch-size=1\nconfig-file=m.txt\n", True, False),
        ("[streammux]\nbatch-size=1\nconfig-file-path=m.txt\n", False, True),
        ("[tracker]\nenable=1\nenable-batch-process=1\n", True, False),
        ("[tracker]\nenable=1\nsub-batches=0\n", False, True),
        ("[sink0]\nenable=1\ntype=1\nsw-preset=1\n", False, True),
        ("[segvisual]\nenable=1\nwidth=100\n", False, True),
    ],
)
def test_keys_of_other_releases_are_named_and_left_out(
    read: Read, text: str, older: bool, newer: bool
) -> None:
    releases: dict[Generation, bool] = {"6.2": older, "9.1": newer}
    for generation, reads in releases.items():
        spec = read(text, generation)
        named = [n for n in spec.notices if "not read" in n.sentence or generation in n.sentence]
        assert bool(named) is not reads, generation
    assert codes(read(text, None), "key-of-another-release") == []


def test_a_key_that_is_not_read_does_nothing(read: Read) -> None:
    text = "[tiled-display]\nenable=1\nrows=2\ncolumns=2\nsquare-seq-grid=1\n"
    older, newer = read(text, "6.2").tiler, read(text, "9.1").tiler
    assert older is not None
    assert older.rows == 2
    assert newer is not None
    assert newer.rows is None


def test_payloads_in_protobuf_come_with_6_3(read: Read) -> None:
    (sink,) = read(BROKER, "9.1").sinks
    assert "schema=protobuf" in str(sink.text)
    spec = read(BROKER, "6.2")
    assert spec.sinks == ()
    (left_out,) = codes(spec, "element-left-out")
    assert "6.2 does not make it, but releases from 6.3 on" in left_out


def test_lists_of_sources_agree_from_6_4_on(read: Read) -> None:
    lists = "[source-list]\nlist=a;b\nnum-source-bins=3\n[source-attr-all]\nenable=1\ntype=2\n"
    assert len(read(lists, "6.2").sources) == 2
    with pytest.raises(ConfigError, match="num-source-bins is 3"):
        read(lists, "9.1")


def test_sources_of_yaml_are_those_of_the_table(tmp_path: Path) -> None:
    path = tmp_path / "app.yml"
    path.write_text("source0:\n  enable: 1\n  type: 2\n  uri: file://a.mp4\n")
    assert len(load_pipeline(path).sources) == 1
    with pytest.raises(ConfigError, match="no sources"):
        load_pipeline(path, generation="9.1")


def test_a_dewarper_without_a_number_ends_with_6_2(read: Read) -> None:
    text = "[dewarper]\nenable=1\nconfig-file=d.txt\n"
    read(text, "6.2")
    with pytest.raises(ConfigError, match=r"up to 6\.2 alone"):
        read(text, "9.1")
