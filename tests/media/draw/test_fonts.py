"""Texts that the built-in font has no glyphs for: another font, or a warning that names them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import ImageFont

from headrace.media.draw import Painter, fonts
from headrace.media.draw.fonts import font_for
from headrace.media.draw.text import render_text
from headrace.media.draw.tiler import Tiler
from headrace.meta.figures import Caption
from tests.media.conftest import MakeMeta, gray_frame
from tests.media.conftest import make_meta as make_meta  # a fixture

ODD = "\u6c7d"  # a Chinese character; Pillow's own font has none


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without fonts."""
    monkeypatch.setattr(fonts, "_WIDE", ())
    monkeypatch.setattr(fonts, "_installed", dict)
    fonts._covering.cache_clear()
    render_text.cache_clear()


def test_latin_letters_need_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "_covering", None)
    font, missing = font_for("Größe: 12 %", "", 15)
    assert isinstance(font, ImageFont.FreeTypeFont)
    assert missing == ""


@pytest.mark.usefixtures("bare")
def test_characters_without_a_font_are_named(make_meta: MakeMeta) -> None:
    assert font_for(f"car {ODD}", "", 15)[1] == ODD
    painter = Painter()
    frame = gray_frame()
    meta = make_meta(frame, (4, 20, 30, 20, 0.9, 0), labels=(f"car {ODD}",))
    for _ in range(3):
        painter.draw(frame, meta)
    assert [n.code for n in painter.notices] == ["glyphs-missing"]
    assert ODD in str(painter.notices[0])
    assert "fonts-noto-cjk" in str(painter.notices[0])


@pytest.mark.usefixtures("bare")
def test_other_texts_than_labels_are_named_too(make_meta: MakeMeta) -> None:
    frame = gray_frame()
    meta = make_meta(frame)
    meta.figures = [Caption(f"in: {ODD}", 4, 4, (1.0, 1.0, 1.0, 1.0))]
    painter = Painter()
    painter.draw(frame, meta)
    (notice,) = painter.notices
    assert notice.data["characters"] == ODD
    tiler = Tiler()
    pairs = []
    for number in (0, 1):
        pair = make_meta(frame)
        pair.source_id, pair.source = number, f"{ODD}{number}.mp4"
        pairs.append((frame, pair))
    tiler.compose(pairs)
    assert [n.code for n in tiler.notices] == ["glyphs-missing"]


@pytest.mark.usefixtures("bare")
def test_an_installed_family_is_found_by_its_name_and_by_its_glyphs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = str(tmp_path / "other.ttf")
    asked = []

    class Font:
        def getmask(self, character: str) -> np.ndarray:
            return MASKS[character == ODD]

    def opened(name: str, size_px: int) -> object:
        asked.append(name)
        return Font() if name == file else None

    monkeypatch.setattr(fonts, "_opened", opened)
    monkeypatch.setattr(fonts, "_installed", lambda: {file: ("some sans", "some sans bold")})
    for family in ("Some Sans", ""):
        fonts._covering.cache_clear()
        font, missing = font_for(ODD, family, 15)
        assert isinstance(font, Font)
        assert missing == ""
    fonts._covering.cache_clear()
    assert font_for(ODD + "\u8f66", "", 15)[1] == "\u8f66"


class Mask(bytes):
    size = (3, 3)


MASKS = {False: Mask(9), True: Mask(b"\1" * 9)}
