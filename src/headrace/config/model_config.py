"""`ModelConfig`: one model's configuration, typed, every value with its origin."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import headrace
from headrace._core.errors import ConfigError
from headrace._core.findings import Finding
from headrace._core.formats.archives import is_bare_model
from headrace.config.document import AddedLine, report
from headrace.config.field_checks import KEY_OF_FIELD, check_classes, check_field
from headrace.config.file_kinds import file_kind
from headrace.config.key import Key
from headrace.config.model_fields import ModelFields
from headrace.config.model_files import missing_files, onnx_of_engine
from headrace.config.origin import OVERRIDE, EffectiveValue, Origin
from headrace.config.overrides import Overrides, combined, given_keywords, is_key
from headrace.config.profile import with_profile
from headrace.config.reading import MAX_BYTES, Reading, read_config, read_lines
from headrace.config.server_config import is_server_config, read_server_config
from headrace.config.value_notices import rule_notices


class ModelConfig(ModelFields):
    """The content of an nvinfer config file: one model.

    Fields are the `[property]` keys with `-` as `_`; `docs/configuration.md` lists them all. Paths
    are absolute. An absent or empty text or path is None.
    """

    @classmethod
    def _key(cls, field: str) -> Key | None:
        return KEY_OF_FIELD.get(field)

    @classmethod
    def _label(cls, field: str) -> str:
        return KEY_OF_FIELD[field].name if field in KEY_OF_FIELD else field

    @classmethod
    def _check_field(cls, field: str, value: Any) -> Any:
        return check_field(field, value)

    def _check_whole(self) -> None:
        check_classes(self)

    @classmethod
    def load(
        cls,
        path: str | Path,
        overrides: Overrides | None = None,
        *,
        refused: list[ConfigError] | None = None,
    ) -> ModelConfig:
        """Read a config file; `.yml` and `.yaml` are YAML, every other name is INI.

        The text of a protocol buffer that nvinferserver reads is taken, too: the ONNX model of the
        Triton repository that it names runs in this process.

        For a bare model, `.onnx` or an NN Archive, it is what its file tells (docs/bare-models.md).

        Files that the config names need not exist (see `check_files`).

        Args:
            path: the file.
            overrides: keys of the command line, read as if they stood at its end.
            refused: gets the errors of single values in place of an exception, where nothing else
                is wrong; their fields keep their defaults. For who looks for all faults at once.

        Raises:
            ConfigError: the file cannot be read or something in it is refused. Everything that is
                wrong is reported at once, with file, line, key, value, and what is allowed.
            ModelError: a bare model cannot be read, or does not tell enough.
        Source: config facts, sections 1 to 3.
        """
        path, overrides = Path(path), overrides or Overrides()
        if is_bare_model(path) and file_kind(path) != "model":
            return headrace._wiring.load_bare_model(path, overrides)
        if (data := _server_text(path)) is not None:
            return overrides.with_conf(cls._of_server(data, path).with_lines(overrides.lines))
        cfg = cls._of(path, read_config(path, overrides.lines, refused=refused))
        return overrides.with_conf(cfg._with_onnx_of_engine())

    def _with_onnx_of_engine(self) -> Self:
        model = onnx_of_engine(self)
        if model is None:
            return self
        text = f"the config names no model: {model.name}, which lies beside the engine, is used"
        notice = Finding("onnx-of-engine", "info", text, self.where("model_engine_file"))
        origin = Origin("model", text="beside model-engine-file")
        return self.changed({"onnx_file": model}, {"onnx_file": origin}, [notice])

    @classmethod
    def of_text(cls, data: bytes, path: Path) -> Self:
        """Read the text of a config that is to stand at `path`, as `load` does.

        Raises:
            ConfigError: something in it is refused.
        """
        return cls._of(path, read_config(path, data=data))._with_onnx_of_engine()

    @classmethod
    def _of_server(cls, data: bytes, path: Path) -> Self:
        values, origins, notices = read_server_config(data, path)
        cfg = cls(**values)
        cfg._path, cfg._origins, cfg._read_notices = path, origins, notices
        return cfg

    @classmethod
    def _of(cls, path: Path, reading: Reading) -> Self:
        cfg = cls.__new__(cls)
        cfg._take(reading.values, {})
        cfg._path = path
        cfg._origins = reading.origins
        cfg._read_notices = reading.notices
        return cfg

    def with_lines(self, lines: Sequence[AddedLine]) -> Self:
        """A copy with lines of a config applied; see `ModelFields`."""
        reading = Reading(self._set_values(), dict(self._origins), self._read_notices)
        reading = read_lines(self._path, reading, lines)
        kind = reading.values.get("network_type", self.network_type)
        if not kind.has_class_attrs:
            for name in ("all_classes", "classes"):
                reading.values.pop(name, None)
        copy = self._of(self._path, reading)
        copy._labels = self._labels
        return copy

    def of_model(self, path: Path, labels: tuple[tuple[str, ...], ...]) -> Self:
        """A copy that names a bare model as its file, with the labels that it has itself."""
        copy = self.changed({}, {})
        copy._path, copy._labels = path, labels
        return copy

    @property
    def notices(self) -> tuple[Finding, ...]:
        """Decisions and oddities of the reading, in the order of the file, then of the values."""
        return self._read_notices + self._rule_notices

    @cached_property
    def _rule_notices(self) -> tuple[Finding, ...]:
        return rule_notices(self)

    def check_files(self, *, skip: Collection[str] = ()) -> None:
        """Make sure that the files a run needs are there.

        Args:
            skip: keys whose files are not looked for.

        Raises:
            ConfigError: naming each missing one with its line, and similar names in its folder.
        """
        report(self.path, missing_files(self, skip))

    def with_overrides(self, **values: object) -> Self:
        """A copy with some fields set by the program; their origin is `override`.

            config.with_overrides(batch_size=4, conf=0.4, topk=20)

        Paths are relative to the working directory. A network type that has no per-class settings
        drops them.

        Args:
            values: fields; beside them `conf`, the threshold that decides for this network type,
                `labels`, a label file, keys of `[class-attrs-all]` (`topk`), and in a mapping those
                of one class (`**{"class-attrs-2.topk": 5}`).

        Raises:
            ConfigError: a value is refused, or there is no such field.
        """
        further = {n: values.pop(n) for n in list(values) if n not in self.FIELDS and is_key(n)}
        cfg = self.changed(values, dict.fromkeys(values, OVERRIDE)) if values else self
        return combined(given_keywords(further)).on(cfg)

    def dump(self, format: Literal["ini", "yaml"] = "ini") -> str:
        """The config as a file's text: values that were set or are no defaults, paths absolute.

        Loading it gives the same values.

        Raises:
            ConfigError: the form cannot write a value (YAML lists cannot hold a semicolon, INI
                percentages no fraction).
        """
        from headrace.config.dump import dump

        return dump(self, format)

    def effective(self) -> list[EffectiveValue]:
        """Every value in use with its origin, in the order of the documentation."""
        from headrace.config.dump import effective

        return [EffectiveValue(*row) for row in effective(with_profile(self))]

    def _repr_html_(self) -> str:
        """The values that are not defaults, with their origins, for notebooks."""
        from headrace._core.html import notice_list, paragraph, table

        values = [v for v in self.effective() if v.origin != "default"]
        rows = [(v.group, v.key, v.text, v.origin.rpartition("/")[2]) for v in values]
        head = ("group", "key", "value", "origin")
        return paragraph(repr(self)) + table(head, rows, most=100) + notice_list(self.notices)

    def __repr__(self) -> str:
        model = self.onnx_file or self.model_engine_file
        return (
            f"ModelConfig({self.path.name!r}, {self.network_type.label}, "
            f"{self.num_detected_classes} classes, model {model.name if model else None!r})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ModelConfig) or self.values() != other.values():
            return False
        mine = (self._path, self._origins, self._read_notices)
        return mine == (other._path, other._origins, other._read_notices)


def _server_text(path: Path) -> bytes | None:
    """The content of a config of nvinferserver; None for every other file."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return None
        data = path.read_bytes()
    except (OSError, ValueError):
        return None
    return data if is_server_config(data) else None
