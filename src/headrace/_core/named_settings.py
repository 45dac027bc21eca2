"""The grammar `name:key=value,key=value`, in which trackers and tactics are written."""

from __future__ import annotations


def split_settings(text: str) -> tuple[str, dict[str, str]]:
    """Split `iou:max_age=30,min-iou=0.3` into the name and its settings.

    Blanks around each part count for nothing, and dashes in keys are underscores. A key without
    `=value` has an empty value; the last value of a repeated key counts.
    """
    name, _, rest = text.partition(":")
    parts = (part.partition("=")[::2] for part in rest.split(",") if part.strip())
    return name.strip(), {key.strip().replace("-", "_"): value.strip() for key, value in parts}
