"""Keys that the command line or a program sets over a config: `--set`, `--conf`, `--labels`.

Each is a line that is read with the lines of the file, by the same rules, and wins over them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace._core.errors import ConfigError
from headrace._core.findings import Finding
from headrace._core.formats.archives import is_bare_model
from headrace._core.near import did_you_mean, nearest
from headrace._core.text import quoted
from headrace.config.document import AddedLine
from headrace.config.dump import ini_text, value_text
from headrace.config.enums import NetworkType
from headrace.config.frozen import plain
from headrace.config.key import Key
from headrace.config.keys import CLASS_KEYS, PROPERTY_KEYS, suggestion
from headrace.config.origin import Origin
from headrace.config.values import Kind

if TYPE_CHECKING:
    from headrace.config.class_attrs import ClassAttrs
    from headrace.config.model_fields import Model

EVERY = -1
"""The number of an option that is for every model; no text of the command line has it."""

_NUMBER = re.compile(r"([0-9]{1,6}):(.*)", re.DOTALL)
_PARSERS = {
    "0": "parse-bbox-func-name",
    "1": "parse-classifier-func-name",
    "2": "parse-segmentation-func-name",
    "3": "parse-bbox-instance-mask-func-name",
}
_TEXTS = (Kind.STRING, Kind.PATH)
_LABELS = "labelfile-path"
_MEANT = dict.fromkeys(("confidence", "confidence_threshold", "score", "threshold"), "conf")
_THRESHOLDS = {
    NetworkType.CLASSIFIER: "classifier_threshold",
    NetworkType.SEGMENTATION: "segmentation_threshold",
}


class Overrides(NamedTuple):
    """The keys that are set over one config.

    Attributes:
        lines: in the order in which they were given; the last one of a key counts.
        conf: see `with_confidence`.
        conf_option: where that comes from, for messages.
    """

    lines: tuple[AddedLine, ...] = ()
    conf: float | None = None
    conf_option: str = "conf"

    def plus(self, other: Overrides) -> Overrides:
        """Add others, which win."""
        conf = self[1:] if other.conf is None else other[1:]
        return Overrides(self.lines + other.lines, *conf)

    def on(self, cfg: Model) -> Model:
        """Copy a config with these keys set.

        Raises:
            ConfigError: there is no such key, or a value is refused.
        """
        return self.with_conf(cfg.with_lines(self.lines) if self.lines else cfg)

    def with_conf(self, cfg: Model) -> Model:
        """Copy a config that has the lines already, with the threshold."""
        return cfg if self.conf is None else with_confidence(cfg, self.conf, self.conf_option)

    def with_parser(self, path: Path, function: object) -> Overrides:
        """Add the name of a program's own parser: that of a bare model need not be guessed then."""
        if function is None or not is_bare_model(path):
            return self
        kinds = [line.text.strip() for line in self.lines if line.key == "network-type"]
        key = _PARSERS.get(kinds[-1] if kinds else "0")
        name = getattr(function, "__name__", "")
        line = AddedLine("property", key or "", name if name.isidentifier() else "parser", "parser")
        return Overrides((line,)).plus(self) if key else self


class GivenKey(NamedTuple):
    """One option: `number` is the model that it is for, from 1; `EVERY`; None if it does not say.

    `shown` is the option as it was written, up to where the number belongs, and the rest.
    """

    number: int | None
    overrides: Overrides
    shown: tuple[str, str]


def with_confidence(cfg: Model, conf: float, option: str) -> Model:
    """Copy a config with the threshold set that decides about its results.

    That is `pre-cluster-threshold` of all classes, own groups included, for models that find
    objects; `classifier-threshold`; or `segmentation-threshold`. A `post-cluster-threshold` that
    would drop more is set to 0.

    Args:
        cfg: the config.
        conf: 0 to 1.
        option: what asks for it, for messages: `--conf`.

    Raises:
        ConfigError: it is out of range; the network type has no threshold.
    """
    if not 0 <= conf <= 1:
        raise ConfigError(f"{conf:g} is not in range.", where=option, expected="0 to 1")
    origin = Origin("override", key=option, text=f"{conf:g}", option=option)
    kind = cfg.network_type
    if kind in _THRESHOLDS:
        name = _THRESHOLDS[kind]
        return cfg.changed({name: conf}, {name: origin})
    if not kind.has_class_attrs:
        raise ConfigError(
            f"network-type {kind} has no threshold.",
            where=option,
            expected="a detector, classifier or segmentation model",
        )
    lowered: list[float] = []

    def changed(attrs: ClassAttrs) -> ClassAttrs:
        post = attrs.post_cluster_threshold
        if 0 < post >= conf:
            lowered.append(post)
            attrs = replace(attrs, post_cluster_threshold=0.0)
        return replace(attrs, pre_cluster_threshold=conf)

    values = {
        "all_classes": changed(cfg.all_classes),
        "classes": {number: changed(attrs) for number, attrs in cfg.classes.items()},
    }
    names = ["pre_cluster_threshold"] + ["post_cluster_threshold"] * bool(lowered)
    groups = ["all_classes", *(f"classes.{number}" for number in cfg.classes)]
    notices = []
    if lowered:
        text = f"post-cluster-threshold={max(lowered):g} would drop more: it is set to 0"
        notices.append(Finding("threshold-lowered", "info", text, option))
    return cfg.changed(values, {f"{g}.{n}": origin for g in groups for n in names}, notices)


def given_line(text: str, option: str) -> GivenKey:
    """Read one `key=value` of the command line, maybe with a group and the number of a model.

    `topk=5` means `class-attrs-all.topk=5`: no key is in two groups.

    Raises:
        ConfigError: it is not that.
    """
    number, rest = _numbered(text)
    name, sign, value = rest.partition("=")
    name = name.strip()
    if not (sign and name):
        raise ConfigError(
            f"'{quoted(text)}' is not key=value.",
            where=option,
            expected="batch-size=4, class-attrs-0.topk=5, or 2:batch-size=4 for the second model",
        )
    group, key = _place(name)
    line = AddedLine(group, key, value.lstrip(), option)
    return GivenKey(number, Overrides((line,)), (option, rest))


def given_conf(text: str, option: str) -> GivenKey:
    """Read a threshold for `with_confidence`, maybe with the number of a model.

    Raises:
        ConfigError: it is no number.
    """
    number, rest = _numbered(text)
    return GivenKey(number, Overrides((), _number(rest, option), option), (option, rest))


def given_labels(text: str, option: str) -> GivenKey:
    """Read the path of a label file, maybe with the number of a model before it."""
    number, rest = _numbered(text)
    line = AddedLine("property", _LABELS, ini_text(rest), option)
    return GivenKey(number, Overrides((line,)), (option, rest))


def given_keywords(values: Mapping[str, object], others: Collection[str] = ()) -> list[GivenKey]:
    """Read keyword arguments of a program.

    Args:
        values: keys with `_` for `-`, and `conf` and `labels`. A key of all classes has its own
            name, one of a class is `class-attrs-2.topk`. None leaves the config's value.
        others: names of the function's other arguments, for hints.

    Raises:
        ConfigError: there is no such key, or a value cannot be written in a config.
    """
    settings = []
    for name, value in values.items():
        if value is None:
            continue
        shown = (name, "")
        if name == "conf":
            overrides = Overrides((), _number(value, name), name)
        else:
            group, key = _place(name.replace("_", "-")) if name != "labels" else _place(_LABELS)
            known = PROPERTY_KEYS.get(key) or CLASS_KEYS.get(key)
            if known is None:
                raise _unknown(name, key, others)
            overrides = Overrides((AddedLine(group, key, _text(known, value, name), name),))
        settings.append(GivenKey(None, overrides, shown))
    return settings


def is_key(name: str) -> bool:
    """Whether `given_keywords` takes an argument of this name."""
    return (
        name in ("conf", "labels")
        or "." in name
        or _place(name.replace("_", "-"))[1] in (PROPERTY_KEYS | CLASS_KEYS)
    )


def combined(settings: Sequence[GivenKey]) -> Overrides:
    """Add settings up, all for one model."""
    return sum_of([item.overrides for item in settings])


def sum_of(parts: Sequence[Overrides]) -> Overrides:
    """Add overrides up; later ones win."""
    whole = Overrides()
    for part in parts:
        whole = whole.plus(part)
    return whole


def distributed(settings: Sequence[GivenKey], names: Sequence[str]) -> list[Overrides]:
    """Share options out among models.

    Args:
        settings: options; without a number they are for the only model.
        names: of the models, in the order in which they run.

    Raises:
        ConfigError: there is no model, or not the one of that number; or there are several.
    """
    for item in settings:
        if item.number == EVERY:
            continue
        option, text = item.shown
        location = f"{option} {text}".strip()
        numbered = ", ".join(f"{i} is {quoted(name)}" for i, name in enumerate(names, 1))
        if not names:
            raise ConfigError("there is no config to set it in.", where=location)
        if item.number is None and len(names) > 1:
            instead = f"ModelConfig.load(path).with_overrides({option}=...)"
            if option == "parser":
                instead = "Inferencer.from_config(path, parser=...)"
            raise ConfigError(
                f"there are {len(names)} models: {numbered}.",
                where=location,
                expected="the model it is for",
                fix=f"{option} 1:{text}"
                if text
                else f"headrace.{instead} in the place of its path",
            )
        if item.number is not None and not 1 <= item.number <= len(names):
            where = f"{option} {item.number}:{text}"
            raise ConfigError(f"there is no model {item.number}: {numbered}.", where=where)
    return [
        sum_of([item.overrides for item in settings if item.number in (None, EVERY, number)])
        for number in range(1, len(names) + 1)
    ]


def _numbered(text: str) -> tuple[int | None, str]:
    match = _NUMBER.fullmatch(text)
    return (int(match[1]), match[2]) if match else (None, text)


def _place(name: str) -> tuple[str, str]:
    """Group and key of a name that may have both."""
    group, dot, key = name.rpartition(".")
    if key == "min-boxes":
        key = "minBoxes"
    if not dot:
        group = "class-attrs-all" if key in CLASS_KEYS else "property"
    return group, key


def _number(value: Any, where: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        shown = quoted(str(value))
        raise ConfigError(f"{shown} is not a number.", where=where, expected="0 to 1") from None


def _unknown(name: str, key: str, others: Collection[str]) -> ConfigError:
    argument = _MEANT.get(name.lower()) or nearest(name, [*others, "conf", "labels"])
    hint = did_you_mean(argument) or suggestion(key, "property")[0]
    return ConfigError(
        f"{quoted(name)} is neither an argument nor a key of a config.", fix=hint or None
    )


def _text(key: Key, value: Any, name: str) -> str:
    """A program's value as the INI form writes it."""
    if isinstance(value, Path):
        value = str(value)
    if isinstance(value, str):
        return ini_text(value) if key.kind in _TEXTS else value
    value = plain(value.tolist() if hasattr(value, "tolist") else value)
    if isinstance(value, list):
        value = tuple(str(x) if isinstance(x, Path) else x for x in value)
    items = value if isinstance(value, tuple) else (value,)
    texts = key.kind in (Kind.STRINGS, Kind.PATHS)
    if not all(isinstance(item, str if texts else int | float) for item in items):
        kind = type(value).__name__
        raise ConfigError(
            f"{quoted(str(value))} ({kind}) is no value.", where=name, expected=key.expected()
        )
    return value_text(key, value, "ini")
