"""Pages hold text as text, images inside, and ask for nothing outside."""

from __future__ import annotations

import re
from base64 import b64decode
from io import BytesIO
from pathlib import Path

import jinja2
import numpy as np
import pytest
from PIL import Image

from headrace._core.pages import image_uri, render_page, write_page
from headrace._core.pages.render import _environment
from headrace.errors import MediaError


def test_a_page_is_escaped_and_has_no_outside_resource() -> None:
    page = render_page("base.html", title="<script>alert(1)</script> & co")
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; co" in page
    assert "default-src 'none'" in page
    assert not re.search(r"""(?:src|href)=["']?(?!data:|#)|url\(|@import""", page)


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    assert write_page(path, "<p>one \udc80</p>") == path
    assert path.read_text() == "<p>one \\udc80</p>"
    for wrong in (tmp_path, tmp_path / "none" / "a.html", Path("/dev/null")):
        with pytest.raises(MediaError, match="the report cannot be written"):
            write_page(wrong, "<p>two</p>")
    assert list(tmp_path.iterdir()) == [path]


def test_a_page_without_a_value_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError, match="title"):
        render_page("base.html")


def test_parts_escape_their_cells_and_mark_numbers() -> None:
    text = '{% import "parts.html" as parts %}{{ parts.table(["a", "b"], [["<i>", 3]], (1,)) }}'
    table = _environment().from_string(text).render()
    assert "<td>&lt;i&gt;</td>" in table
    assert '<td class="n">3</td>' in table


def test_a_bar_stays_within_its_frame() -> None:
    text = '{% import "parts.html" as parts %}{{ parts.bar(share, "kept") }}'
    template = _environment().from_string(text)
    widths = [re.findall(r"width:([\d.]+)%", template.render(share=s))[0] for s in (-1, 0.25, 7)]
    assert widths == ["0.0", "25.0", "100.0"]


def test_numbers_and_shares() -> None:
    text = "{{ 12345 | number }} {{ 0.12345 | number }} {{ none | number }} {{ 0.977 | percent }}"
    assert _environment().from_string(text).render() == "12,345 0.123 — 97.7 %"


def test_an_image_comes_back_from_its_address() -> None:
    rgb = np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)
    kind, _, data = image_uri(rgb, quality=100).partition(";base64,")
    assert kind == "data:image/webp"
    with Image.open(BytesIO(b64decode(data))) as image:
        np.testing.assert_array_equal(np.asarray(image.convert("RGB")), rgb)


def test_a_wide_image_is_made_smaller() -> None:
    data = image_uri(np.zeros((50, 200, 3), np.uint8), max_width=100).partition(",")[2]
    with Image.open(BytesIO(b64decode(data))) as image:
        assert image.size == (100, 25)
