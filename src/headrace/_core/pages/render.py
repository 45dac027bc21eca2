"""Pages from templates: text from outside is escaped, images travel inside the page."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from io import BytesIO
from math import isnan
from os import PathLike
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import numpy.typing as npt
from PIL import Image

import headrace
from headrace._core.errors import MediaError
from headrace._core.files import os_errors, write_atomically

TEMPLATES = Path(__file__).parent / "templates"


def render_page(template: str, /, **values: Any) -> str:
    """Fill a template of this package.

    Every value is escaped, so file names, labels and messages stay text. The page's own policy
    forbids scripts and every request to the outside.

    Args:
        template: file name in `templates`; it extends `base.html`.
        values: its variables, `title` among them; a missing one is an error and not an empty
            place.

    Raises:
        jinja2.TemplateError: the template is wrong or lacks a value.
    """
    return _environment().get_template(template).render(version=headrace.__version__, **values)


def write_page(path: str | PathLike[str], page: str) -> Path:
    """Write a page as a file, whole or not at all.

    Raises:
        MediaError: it cannot be written.
    """
    target = Path(path)
    with os_errors(MediaError, "the report cannot be written", target):
        write_atomically(target, [page.encode("utf-8", "backslashreplace")])
    return target


def image_uri(rgb: npt.NDArray[np.uint8], *, max_width: int = 960, quality: int = 82) -> str:
    """Encode an image as a `data:` address, for `src` of an image.

    Args:
        rgb: (H, W, 3) uint8.
        max_width: wider images are made smaller, in pixels.
        quality: of WebP, 0 to 100; 100 keeps every value.
    """
    image = Image.fromarray(np.ascontiguousarray(rgb))
    if image.width > max_width:
        height = max(1, round(image.height * max_width / image.width))
        image = image.resize((max_width, height), Image.Resampling.LANCZOS)
    with BytesIO() as out:
        image.save(out, "WEBP", quality=quality, lossless=quality == 100)
        return f"data:image/webp;base64,{b64encode(out.getvalue()).decode()}"


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = _number
    environment.filters["percent"] = _percent
    return environment


def _number(value: float | None, digits: int = 3) -> str:
    """`12,345` or `0.125`; an em dash for no value and for NaN."""
    if value is None or isnan(value):
        return "—"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


def _percent(value: float | None, digits: int = 1) -> str:
    """`97.5 %` for 0.975; an em dash for no value and for NaN."""
    return "—" if value is None or isnan(value) else f"{100 * value:.{digits}f} %"
