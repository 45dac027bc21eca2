"""HLS: a playlist that players can follow, whole segments, old ones deleted or kept."""

from __future__ import annotations

from pathlib import Path

import av
import pytest

from headrace.errors import MediaError
from headrace.media import open_sink
from tests.media.conftest import MakeMeta, gray_frame


def write(spec: str, make_meta: MakeMeta, frames: int = 100) -> None:
    with open_sink(spec, fps=25) as sink:
        for i in range(frames):
            frame = gray_frame(i)
            sink.write(frame, make_meta(frame))


def test_segments_and_a_playlist(tmp_path: Path, make_meta: MakeMeta) -> None:
    playlist = tmp_path / "new" / "live.m3u8"
    write(f"{playlist}?segment=0.4", make_meta)
    text = playlist.read_text()
    assert text.count("#EXTINF:0.4") == 10
    assert text.rstrip().endswith("#EXT-X-ENDLIST")
    assert {p.name for p in playlist.parent.iterdir()} == {
        "live.m3u8", *(f"live{i}.ts" for i in range(10))
    }  # fmt: skip
    with av.open(str(playlist)) as container:
        assert sum(1 for _ in container.decode(video=0)) == 100


def test_old_segments_are_deleted(tmp_path: Path, make_meta: MakeMeta) -> None:
    write(f"hls:{tmp_path}/live.m3u8?segment=0.4&keep=2", make_meta)
    text = (tmp_path / "live.m3u8").read_text()
    assert [line for line in text.splitlines() if line.endswith(".ts")] == ["live8.ts", "live9.ts"]
    assert 2 <= len(list(tmp_path.glob("*.ts"))) <= 4
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize(
    "query", ["segments=2", "segment=0", "segment=x", "keep=1.5", "keep=-1", "segment=inf"]
)
def test_options_that_are_wrong(tmp_path: Path, query: str) -> None:
    with pytest.raises(MediaError, match=r"not an option|out of range"):
        open_sink(f"{tmp_path}/a.m3u8?{query}")
    assert not list(tmp_path.iterdir())
