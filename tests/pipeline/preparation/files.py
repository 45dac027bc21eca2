"""A config file of `nvdspreprocess` for tests, its values replaceable."""

from __future__ import annotations

from pathlib import Path

PROPERTY = {
    "enable": "1",
    "target-unique-ids": "1",
    "process-on-frame": "1",
    "network-input-order": "0",
    "processing-width": "32",
    "processing-height": "32",
    "network-input-shape": "8;3;32;32",
    "network-color-format": "0",
    "tensor-data-type": "0",
    "tensor-name": "image",
    "scaling-filter": "1",
    "custom-lib-path": "/opt/nvidia/deepstream/deepstream/lib/gst-plugins/"
    "libcustom2d_preprocess.so",
    "custom-tensor-preparation-function": "CustomTensorPreparation",
}
GROUP = {
    "src-ids": "0;1",
    "custom-input-transformation-function": "CustomAsyncTransformation",
    "process-on-roi": "1",
    "roi-params-src-0": "10;20;64;32;0;0;40;40;",
    "roi-params-src-1": "50;0;200;40",
}
USER = {"pixel-normalization-factor": "0.00392156862745098"}


def text(
    property: dict[str, str | None] | None = None,
    group: dict[str, str | None] | None = None,
    user: dict[str, str | None] | None = None,
) -> str:
    """The text of a file; None takes a key out."""
    groups = (
        ("property", PROPERTY, property), ("user-configs", USER, user), ("group-0", GROUP, group)
    )  # fmt: skip
    lines = []
    for name, keys, changes in groups:
        values = {**keys, **(changes or {})}
        lines += [f"[{name}]", *(f"{k}={v}" for k, v in values.items() if v is not None)]
    return "\n".join(lines) + "\n"


def write(folder: Path, **changes: dict[str, str | None]) -> Path:
    """A file with these changes."""
    path = folder / "config_preprocess.txt"
    path.write_text(text(**changes))
    return path
