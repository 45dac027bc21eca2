"""Config files of nvdspreprocess are read as they are, or refused with line and way out."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ConfigError
from headrace.pipeline.preparation import load_preparation
from headrace.pipeline.preparation.rules import ALL_SOURCES
from tests.pipeline.preparation.files import text, write


def test_everything_is_read(tmp_path: Path) -> None:
    rules = load_preparation(
        write(
            tmp_path,
            property={"target-unique-ids": "1;4", "tensor-data-type": "5", "unique-id": "5"},
            user={"offsets": "1;2;3"},
            group={"draw-roi": "1", "roi-color": "1;0;0;1", "interval": "2"},
        )
    )
    assert (rules.target_ids, rules.unique_id, rules.dtype) == ((1, 4), 5, np.float16)
    assert (rules.scale, rules.offsets) == (np.float32(1 / 255), (1, 2, 3))
    assert (rules.width, rules.height, rules.shape) == (32, 32, (8, 3, 32, 32))
    (group,) = rules.groups
    assert group.regions == {0: ((10, 20, 64, 32), (0, 0, 40, 40)), 1: ((50, 0, 200, 40),)}
    assert (group.color, group.interval) == ((1, 0, 0, 1), 2)
    assert [n.level for n in rules.notices] == []
    assert rules.group_of(2) is None


def test_yaml_means_the_same(tmp_path: Path) -> None:
    path = tmp_path / "rules.yml"
    lines = []
    for line in text().splitlines():
        if line.startswith("["):
            lines.append(line[1:-1] + ":")
        else:
            lines.append("  " + line.replace("=", ": ", 1).rstrip(";"))
    path.write_text("\n".join(lines))
    found = load_preparation(path)
    assert found.groups == load_preparation(write(tmp_path)).groups
    assert found.shape == (8, 3, 32, 32)


def test_one_group_for_every_source(tmp_path: Path) -> None:
    path = write(tmp_path, group={"src-ids": "-1", "roi-params-src-1": None})
    with path.open("a") as file:
        file.write("[group-1]\nsrc-ids=7\nprocess-on-roi=0\n")
    rules = load_preparation(path)
    place, group = rules.group_of(3)
    assert (place, group.sources) == (0, (ALL_SOURCES,))
    assert group.regions_of(3) == ((10, 20, 64, 32), (0, 0, 40, 40))
    place, group = rules.group_of(7)
    assert (place, group.regions_of(7)) == (1, None)


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"property": {"network-input-shape": "8;3;32;16"}}, "network-input-shape=8;3;32;32"),
        ({"property": {"network-input-shape": None}}, "has no network-input-shape"),
        ({"property": {"tensor-name": None}}, "has no tensor-name"),
        ({"property": {"network-input-order": "2"}}, "0 (NCHW) or 1 (NHWC)"),
        ({"property": {"custom-lib-path": "libmine.so"}}, "a C++ library, a Python file"),
        ({"property": {"custom-lib-path": "mine.py"}}, "there is no file"),
        ({"property": {"custom-tensor-preparation-function": "Mine"}}, "has no function Mine"),
        ({"property": {"processing-width": "0"}}, "processing-width=0"),
        ({"group": {"roi-params-src-0": "1;2;3"}}, "is no list of regions"),
        ({"group": {"roi-params-src-0": "1;2;0;4"}}, "is no list of regions"),
        ({"group": {"roi-params-src-1": None}}, "has no roi-params-src-1"),
        ({"group": {"src-ids": None}}, "src-ids=0;1, or -1"),
        ({"group": {"roi-color": "1;0"}}, "roi-color"),
        ({"user": {"offsets": "a;b"}}, "offsets=a;b"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, changes: dict, wanted: str) -> None:
    path = write(tmp_path, **changes)
    with pytest.raises(ConfigError) as caught:
        load_preparation(path)
    assert wanted in str(caught.value)
    assert "config_preprocess.txt:" in str(caught.value)


def test_what_has_no_effect_is_reported(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        property={"tensor-nam": "x", "scaling-buf-pool-size": "6"},
        group={"custom-input-transformation-function": "Mine"},
    )
    texts = [n.sentence for n in load_preparation(path).notices if n.level == "warning"]
    assert len(texts) == 2
    assert "did you mean tensor-name?" in texts[0]
    assert "Mine is not called" in texts[1]


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "other.txt"
    path.write_text("[primary-gie]\nenable=1\n")
    with pytest.raises(ConfigError, match=r"no group \[property\]"):
        load_preparation(path)


@given(st.binary(max_size=200), st.integers(0, 2000))
def test_no_file_breaks_the_reader(tmp_path_factory, noise: bytes, place: int) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "rules.txt"
    good = text().encode()
    place %= len(good)
    path.write_bytes(good[:place] + noise + good[place + len(noise) :])
    with suppress(ConfigError):
        load_preparation(path)
