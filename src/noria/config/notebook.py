"""What a config looks like in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noria.config.model_config import ModelConfig


def config_html(cfg: ModelConfig) -> str:
    """Every value that is not a default, with its origin, and the notices."""
    from noria._core.html import notice_list, paragraph, table

    values = [v for v in cfg.effective() if v.origin != "default"]
    rows = [(v.group, v.key, v.text, v.origin.rpartition("/")[2]) for v in values]
    head = ("group", "key", "value", "origin")
    return paragraph(repr(cfg)) + table(head, rows, most=100) + notice_list(cfg.notices)
