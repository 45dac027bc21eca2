"""The right set-ups that the examples of lint's rules begin with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.diagnose.lint.catalogue import Example
from tests.diagnose.lint.models import put_model
from tests.mistakes import setups
from tests.mistakes.cases import Setup

Keys = dict[str, Any]


@dataclass(frozen=True)
class Base:
    """A right set-up.

    Attributes:
        configs: file name -> `group.key` (a key alone is in [property]) -> value; the last is
            the one that examples change.
        files: other files.
        models: files that are models.
        lint: the files that are linted.
        together: they are the models of one pipeline.
    """

    configs: Mapping[str, Mapping[str, Any]]
    files: Mapping[str, str] = field(default_factory=dict)
    models: Sequence[str] = ()
    lint: Sequence[str] = ("config.txt",)
    together: bool = False


def _of(setup: Setup, **more: Any) -> Base:
    files = {name: str(text) for name, text in setup.files.items()}
    return Base(setup.configs, files, setup.models, **more)


_APP: Keys = {
    "source0.enable": 1,
    "source0.type": 3,
    "source0.uri": "file://images",
    "sink0.enable": 1,
    "sink0.type": 1,
    "streammux.batch-size": 1,
    "primary-gie.enable": 1,
    "primary-gie.config-file": "config.txt",
}
_SECONDARY_APP: Keys = {
    **_APP,
    "primary-gie.config-file": "pgie.txt",
    "secondary-gie0.enable": 1,
    "secondary-gie0.config-file": "sgie.txt",
}
_YOLOV8 = _of(setups.YOLOV8)
_YAML = {"config.yml": _YOLOV8.configs["config.txt"]}
_PIPELINE = "models: [config.txt]\nsources: [images]\nsinks: [{kind: fake}]\n"

BASES: dict[str, Base] = {
    "yolov8": _YOLOV8,
    "ssd": _of(setups.SSD),
    "detectnet": _of(setups.DETECTNET),
    "nms": _of(setups.NMS),
    "channels-last": _of(setups.CHANNELS_LAST),
    "own-parser": _of(setups.OWN_PARSER),
    "classifier": _of(setups.CLASSIFIER),
    "secondary": _of(setups.SECONDARY, lint=("pgie.txt", "sgie.txt"), together=True),
    "yaml": Base(_YAML, _YOLOV8.files, _YOLOV8.models, ("config.yml",)),
    "app": Base({**_YOLOV8.configs, "config_app.txt": _APP}, _YOLOV8.files, _YOLOV8.models,
                ("config_app.txt",)),
    "app-secondary": Base(
        {**setups.SECONDARY.configs, "config_app.txt": _SECONDARY_APP},
        _of(setups.SECONDARY).files, setups.SECONDARY.models, ("config_app.txt",),
    ),
    "pipeline": Base(_YOLOV8.configs, {**_YOLOV8.files, "pipeline.yml": _PIPELINE},
                     _YOLOV8.models, ("pipeline.yml",)),
}  # fmt: skip


def write_example(example: Example, folder: Path, store: Path, *, wrong: bool) -> Base:
    """Write an example's wrong or right set-up into a new folder.

    Args:
        example: the example.
        folder: the folder.
        store: of models, for all examples.
        wrong: True for the set-up that the rule finds something in.

    Returns:
        Its base.
    """
    base = BASES[example.base]
    folder.mkdir(parents=True)
    (folder / "images").mkdir()
    configs = {name: dict(keys) for name, keys in base.configs.items()}
    last = next(reversed(configs))
    for line in example.wrong if wrong else example.right:
        file, key, value = split_line(line)
        if value is None:
            configs[file or last].pop(key, None)
        else:
            configs[file or last][key] = value
    texts = {name: config_text(keys, name) for name, keys in configs.items()}
    if wrong and example.edit:
        old, new = example.edit
        assert old in texts[last]
        texts[last] = texts[last].replace(old, new, 1)
    texts |= base.files
    if wrong:
        texts |= example.files
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode())
    named = {value for keys in configs.values() for value in keys.values()}
    models = {name: name for name in base.models}
    models |= {"detectnet.onnx": "detectnet.onnx"} if "detectnet.onnx" in named else {}
    models |= example.models if wrong else {}
    for name, made in models.items():
        put_model(made, folder / name, store)
    return base


def split_line(line: str) -> tuple[str, str, str | None]:
    """Split `file:group.key=value` or `-group.key`; return file, key and value."""
    if line.startswith("-"):
        return "", line[1:], None
    name, _, value = line.partition("=")
    file, _, key = name.rpartition(":")
    return file, key, value


def config_text(keys: Mapping[str, Any], name: str) -> str:
    """A config in the form that its name says; keys with None are left out."""
    yaml = name.endswith((".yml", ".yaml"))
    groups: dict[str, list[str]] = {}
    form: Callable[[str, Any], str] = (
        (lambda key, value: f"  {key}: {value}\n") if yaml else (lambda k, v: f"{k}={v}\n")
    )
    for key, value in keys.items():
        group, _, own = key.rpartition(".")
        if value is not None:
            groups.setdefault(group or "property", []).append(form(own, value))
    head = "{}:\n" if yaml else "[{}]\n"
    return "\n".join(head.format(group) + "".join(lines) for group, lines in groups.items())
