"""Films side by side: one decoder thread each where they are many, refused where memory lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

import noria
from noria.errors import NoriaError
from noria.media import open_source
from noria.pipeline import decoder_memory
from noria.pipeline.decoder_memory import DecoderMemory, free_memory
from tests.media.conftest import write_clip
from tests.pipeline.fakes import FakeSource

PIPELINE = "sources: [{{uri: {clip}, repeat: {repeat}}}]\nsinks: [fake]\n"


def repeated(folder: Path, repeat: int) -> Path:
    clip, file = write_clip(folder / "clip.mp4"), folder / "pipeline.yml"
    file.write_text(PIPELINE.format(clip=clip, repeat=repeat))
    return file


def test_more_films_than_memory_are_refused_before_they_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_source(str(write_clip(tmp_path / "clip.mp4"))) as clip:
        one = 64 * 48 * 1.5 * (10 + clip.reference_pictures)
    monkeypatch.setattr(decoder_memory, "free_memory", lambda: int(5.5 * one))
    with noria.open_pipeline(repeated(tmp_path, 5)) as pipeline:
        assert pipeline.run().frames == 5 * 12
    with pytest.raises(NoriaError) as caught:
        noria.open_pipeline(repeated(tmp_path, 1024))
    text = str(caught.value)
    assert "1024 sources are decoded side by side" in text
    assert "about 5 sources of that size" in text
    assert "lower repeat" in text


def test_one_film_is_never_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder_memory, "free_memory", lambda: 0)
    with noria.open_pipeline(repeated(tmp_path, 1)) as pipeline:
        assert pipeline.run().frames == 12


def test_many_films_have_a_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder_memory, "usable_cores", lambda: 4)
    assert [DecoderMemory(n).threads for n in (1, 4, 5, 1024)] == [None, None, 1, 1]


def test_pictures_in_memory_need_no_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder_memory, "free_memory", lambda: 0)
    memory = DecoderMemory(2)
    memory.add(FakeSource(3))
    memory.add(FakeSource(3))


def test_the_least_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder_memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(decoder_memory, "_CGROUP", tmp_path)
    assert free_memory() is None
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:   500 kB\n")
    assert free_memory() == 500 * 1024
    (tmp_path / "memory.current").write_text("1000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory() == 500 * 1024
    (tmp_path / "memory.max").write_text("300000\n")
    assert free_memory() == 299000
