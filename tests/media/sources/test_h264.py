"""Reference pictures of H.264 films, from their headers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noria.media import open_source
from noria.media.sources.h264 import reference_pictures
from tests.media.sources.films import write_film


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "ts"])
@pytest.mark.parametrize(
    ("parameters", "wanted"),
    [
        ("ref=1:bframes=0", 1),
        ("ref=3:bframes=0", 3),
        ("ref=16:bframes=0", 16),
        ("ref=5:bframes=3:b-pyramid=none:cqm=jvt", 5),  # scaling matrices stand before the number
        ("ref=2:bframes=0:8x8dct=0:cabac=0:weightp=0", 2),
    ],
)
def test_it_is_what_the_encoder_was_asked_for(
    tmp_path: Path, suffix: str, parameters: str, wanted: int
) -> None:
    path = write_film(
        tmp_path / f"a.{suffix}", frames=20, options={"x264-params": parameters}, size=(64, 48)
    )
    with open_source(str(path)) as film:
        assert film.reference_pictures == wanted  # type: ignore[attr-defined]


def test_what_is_no_h264_says_nothing(tmp_path: Path) -> None:
    with open_source(str(write_film(tmp_path / "a.mp4", 5, codec="mpeg4"))) as film:
        assert film.reference_pictures == 0  # type: ignore[attr-defined]


@given(st.binary(max_size=60))
def test_no_damage_raises(data: bytes) -> None:
    for head in (b"", b"\1\x64\0\x1f\xff\xe1\0\x1a\x67\x64\0\x1f", b"\0\0\0\1\x67"):
        found = reference_pictures(head + data)
        assert found is None or found >= 0
