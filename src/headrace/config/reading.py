"""From a document to typed values: the meaning of each entry, and everything wrong with it.

Source: config facts, sections 1.2 (groups), 1.7 (order), 2 and 3 (keys).
"""

from __future__ import annotations

import os
import re
import select
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import field

from headrace._core.errors import ConfigError
from headrace._core.files import os_reason
from headrace._core.findings import Finding
from headrace._core.near import did_you_mean, nearest
from headrace._core.notices import notices_on_errors
from headrace._core.plain_record import PlainRecord
from headrace._core.text import quoted
from headrace.config.class_attrs import ClassAttrs
from headrace.config.document import AddedLine, Document, Entry, Group, report
from headrace.config.enums import ClusterMode, NetworkType
from headrace.config.ini_groups import read_keyfile
from headrace.config.key import Key
from headrace.config.keys import CLASS_KEYS, PROPERTY_KEYS, suggestion
from headrace.config.neighbours import refuse_neighbour
from headrace.config.origin import Origin
from headrace.config.paths import given_kind, missing_hints, resolve
from headrace.config.value_notices import remark_text
from headrace.config.values import BadValueError, Kind, Values, parse_ini, parse_yaml
from headrace.config.wrong_file import refuse_folder, refuse_model

MAX_BYTES = 1 << 20
_CONFIGS = (".txt", ".yml", ".yaml")
_PIPE_TIMEOUT_S = 10.0
_MAX_SUGGESTIONS = 50  # looking for the nearest key costs a millisecond
_CLASS_GROUP = re.compile(r"class-attrs-([0-9]+)(.*)", re.DOTALL)
_BAD = object()
_HINTS = {
    "cluster-mode": "your parser already returns suppressed boxes? then 4 is what you want.",
    "num-detected-classes": "count the lines of the label file, or the classes of the model",
}
ANALYTICS_GROUP = re.compile(
    r"(roi-filtering|overcrowding|line-crossing|direction-detection)-stream-([0-9]+|all)"
)
"""Names of groups that only rules of `nvdsanalytics` have."""


class Reading(PlainRecord):
    """The content of a file: field values, their origins, and notices of oddities.

    `origins` uses field names, `all_classes.<name>` and `classes.<n>.<name>`.
    """

    values: Values = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    notices: tuple[Finding, ...] = ()


def is_yaml(path: Path) -> bool:
    """Whether a file is read as YAML, by its name."""
    return path.name.endswith((".yml", ".yaml"))


def read_document(data: bytes, path: Path) -> Document:
    """Find the groups and keys of a file, INI or YAML by its name."""
    if not is_yaml(path):
        return read_keyfile(data, path)
    from headrace.config.yaml_nodes import read_yaml  # brings PyYAML

    return read_yaml(data, path)


def read_config(
    path: Path,
    lines: Sequence[AddedLine] = (),
    data: bytes | None = None,
    refused: list[ConfigError] | None = None,
) -> Reading:
    """Read and check a config file, INI or YAML by its name, with lines added to it.

    `data` is its text where that is not to be read from the file. `refused` gets the problems of
    single values, where nothing else is wrong: the reading lacks them.
    """
    if data is None:
        data = read_bytes(path)
    refuse_neighbour(data, path)
    document = read_document(data, path)
    if "property" in document.groups:  # else it is no config
        document.add(lines)
    return _interpreted(document, Reading(), refused)


def read_lines(path: Path, reading: Reading, lines: Sequence[AddedLine]) -> Reading:
    """Read and check lines that change a config; `reading` has its values without them."""
    document = Document(path, "ini", {"property": Group("property", 1)})
    document.add(lines)
    return _interpreted(document, reading)


def _interpreted(
    document: Document, reading: Reading, refused: list[ConfigError] | None = None
) -> Reading:
    interpreter = _Interpreter(document, reading)
    interpreter.run()
    findings = tuple(n for _, n in sorted(document.notices, key=lambda pair: pair[0]))
    reading.notices += findings
    of_values = all(problem.code in _OF_VALUES for problem in document.problems)
    if refused is not None and of_values and "network-type" not in interpreter.refused:
        refused += document.problems
        return reading
    with notices_on_errors(findings):
        report(document.path, document.problems)
    return reading


_OF_VALUES = frozenset(
    ("value-choice", "value-form", "value-path", "value-range", "value-text", "value-type")
)


def read_bytes(path: Path, noun: str | None = None) -> bytes:
    """Read a config file, or a file that `noun` names.

    Raises:
        ConfigError: it cannot be read, or is far too large.
    """
    where = quoted(str(path), limit=None)
    try:
        with open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as file:
            _wait_for_writer(file.fileno(), where)
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(
            f"there is no such {noun or given_kind(path)}.",
            where=where,
            fix=[quoted(hint, limit=None) for hint in missing_hints(path.absolute())],
            code="file-unreadable",
        ) from None
    except IsADirectoryError:
        names = [p.name for p in path.iterdir() if p.suffix in _CONFIGS]
        refuse_folder(path, has_configs=bool(names))
        likely = [path / n for n in sorted(names, key=lambda n: ("config" not in n, n))[:1]]
        raise ConfigError(
            "a config is a file, and this is a folder.",
            where=where,
            fix=[f"name the file in it, as {quoted(str(file), limit=None)}" for file in likely],
            code="file-unreadable",
        ) from None
    except (OSError, ValueError) as error:
        problem = f"the {noun or 'config file'} cannot be read: {os_reason(error)}."
        raise ConfigError(problem, where=where, code="file-unreadable") from None
    large = len(data) > MAX_BYTES
    refuse_model(path, data, where, large=large)
    if large:
        raise ConfigError(
            f"the file is larger than {MAX_BYTES >> 20} MiB.",
            where=where,
            expected="a config file, which is a few KiB of text",
            code="wrong-file",
        )
    return data


def _wait_for_writer(fd: int, where: str) -> None:
    """Refuse a pipe without a writer, which would be waited for without end."""
    if stat.S_ISFIFO(os.fstat(fd).st_mode):
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        if not poll.poll(_PIPE_TIMEOUT_S * 1000):
            raise ConfigError(
                f"the file is a pipe, and nothing came out of it for {_PIPE_TIMEOUT_S:g} s.",
                where=where,
                expected="a config file",
                code="file-unreadable",
            )
    os.set_blocking(fd, True)


def _rule_of(key: Key) -> str:
    """The rule about texts that are no value of `key`."""
    if key.enum or key.choices:
        return "value-choice"
    return "value-path" if key.kind in (Kind.PATH, Kind.PATHS) else "value-type"


class _Interpreter:
    def __init__(self, document: Document, reading: Reading) -> None:
        self.document = document
        self.reading = reading
        self.lines: dict[str, int] = {}  # of the keys of [property] that count
        self.refused: set[str] = set()  # keys of [property] whose value is unknown
        self.unknown = 0

    def run(self) -> None:
        groups = self.document.groups
        if rules := next(filter(ANALYTICS_GROUP.fullmatch, groups), None):
            self.document.refuse(
                groups[rules].line,
                f"[{quoted(rules)}] is a group of nvdsanalytics: this file has rules, no model.",
                "a model's config",
                "headrace run CONFIG SOURCE --analytics FILE counts by them",
                code="wrong-file",
            )
            return
        if "property" in groups:
            self._properties(groups["property"])
        elif not self.document.problems:
            self._no_property_group()
        network_type = self.reading.values.get("network_type", NetworkType.DETECTOR)
        numbered: list[Group] = []
        strays = self._strays()
        for name, group in groups.items():
            if name == "class-attrs-all" or name.startswith("class-attrs-"):
                if not network_type.has_class_attrs:
                    self.document.remark(
                        group.line,
                        f"[{quoted(name)}] is not read: "
                        f"network-type {network_type} does not use it",
                        "info",
                        code="group-unread",
                    )
                elif name != "class-attrs-all":
                    numbered.append(group)
            elif name != "property" and name not in strays:
                self._foreign_group(group)
        if network_type.has_class_attrs:
            self._classes(groups.get("class-attrs-all"), numbered)

    # --- [property] -------------------------------------------------------------------------------

    def _properties(self, group: Group) -> None:
        entries = self._entries(group)
        for entry in entries.values():
            key = PROPERTY_KEYS.get(entry.key)
            if key is None or key.name == "parse-func":
                self._unknown(entry, "property")
            elif self.document.form_of(entry) == "yaml" and not key.in_yaml:
                self._ini_only(entry, key)
            elif key.field is None:
                self._legacy(entry, key, entries)
            else:
                value = self._convert(entry, key)
                if value is _BAD:
                    self.refused.add(key.name)
                else:
                    self._store(key.field, value, entry)
        self._normalise()

    def _normalise(self) -> None:
        values, lines, remark = self.reading.values, self.lines, self.document.remark
        if 0 in (values.get("infer_dims") or ()):
            values["infer_dims"] = None
            message = "infer-dims holds a 0 and counts as absent: the model's size is used"
            remark(lines["infer_dims"], message, "info", code="dims-zero")
        percent = values.get("max_gpu_mem_per", 99.0)
        if not 0 < percent <= 100:
            values["max_gpu_mem_per"] = 99.0 if percent <= 0 else 100.0
            remark(
                lines["max_gpu_mem_per"],
                f"max-gpu-mem-per={percent:g} is outside 0..100; "
                f"{values['max_gpu_mem_per']:g} is used",
                code="value-clamped",
            )

    def _legacy(self, entry: Entry, key: Key, entries: dict[str, Entry]) -> None:
        """Old keys that mean one of today's, in files where today's is absent."""
        document = self.document
        winner = entries.get(key.legacy or "")
        if winner is not None:
            document.remark(
                entry.line,
                f"{key.name} is ignored: {winner.key} in {document.place(winner.line)} says it "
                "already",
                code="key-overruled",
                data={"counts": winner.key, "remove": True},
            )
            return
        value = self._convert(entry, key)
        if value is _BAD:
            return
        old = f"{key.name} is an old key"
        if key.name == "is-classifier":
            kind = NetworkType.CLASSIFIER if value else NetworkType.DETECTOR
            self._store("network_type", kind, entry)
            text = f"{old}, read as network-type={int(kind)}"
            document.remark(entry.line, text, "info", code="deprecated-key")
        elif key.name == "enable-dbscan":
            if value:
                self._store("cluster_mode", ClusterMode.DBSCAN, entry)
            meaning = "read as cluster-mode=1" if value else "and 0 says nothing"
            document.remark(entry.line, f"{old}, {meaning}", "info", code="deprecated-key")
        else:
            order = PROPERTY_KEYS["uff-input-order"]
            if order.trouble(value[3]):
                document.refuse(
                    entry.line,
                    f"{document.written(entry)} does not end in {order.trouble(value[3])}.",
                    f"as last item {order.expected()}",
                    code="value-choice",
                )
                return
            self._store("infer_dims", value[:3], entry)
            self._store("uff_input_order", value[3], entry)
            dims = ";".join(map(str, value[:3]))
            text = f"{old}, read as infer-dims={dims}"
            document.remark(entry.line, text, "info", code="deprecated-key")

    # --- [class-attrs-*] --------------------------------------------------------------------------

    def _classes(self, common: Group | None, numbered: list[Group]) -> None:
        values = self.reading.values
        old: ClassAttrs = values.get("all_classes", ClassAttrs())
        base = old
        classes: dict[int, ClassAttrs] = dict(values.get("classes", {}))
        if common is not None:
            base = self._apply(base, common, "all_classes")
            # of the config that lines change
            classes = {n: self._following(a, old, base, n) for n, a in classes.items()}
        for group in numbered:
            number = self._class_number(group)
            if number is not None:
                classes[number] = self._apply(classes.get(number, base), group, f"classes.{number}")
        if common is not None:
            values["all_classes"] = base
        if classes:
            values["classes"] = classes

    def _following(
        self, attrs: ClassAttrs, old: ClassAttrs, new: ClassAttrs, number: int
    ) -> ClassAttrs:
        """Change the values of a class that are those of all classes along with these."""
        changed = {
            name: getattr(new, name)
            for name in ClassAttrs.__slots__
            if getattr(attrs, name) == getattr(old, name) != getattr(new, name)
            and f"classes.{number}.{name}" not in self.reading.origins
        }
        return replace(attrs, **changed)

    def _class_number(self, group: Group) -> int | None:
        document, count = self.document, self.reading.values.get("num_detected_classes")
        name = quoted(group.name)
        match = _CLASS_GROUP.fullmatch(group.name)
        if not match:
            document.refuse(
                group.line,
                f"[{name}] names no class.",
                "[class-attrs-all], or a class number: [class-attrs-0]",
                code="class-group-name",
            )
            return None
        digits = match[1].lstrip("0") or "0"
        number = int(digits) if len(digits) < 11 else 2**63
        if number >= (count or 0) and "num-detected-classes" not in self.refused:
            document.refuse(
                group.line,
                f"[{name}] is about a class beyond num-detected-classes={count or 0}.",
                f"a class from 0 to {count - 1}" if count else "num-detected-classes in [property]",
                code="class-beyond",
            )
            return None
        if match[2]:
            text = f"[{name}] is read as [class-attrs-{number}]"
            document.remark(group.line, text, code="class-group-name")
        return number

    def _apply(self, base: ClassAttrs, group: Group, prefix: str) -> ClassAttrs:
        """`base` with the entries of one group on top, in file order."""
        document = self.document
        changes: Values = {}
        entries = self._entries(group)
        for entry in entries.values():
            key = CLASS_KEYS.get(entry.key)
            if key is None:
                self._unknown(entry, "class-attrs")
                continue
            if document.form_of(entry) == "yaml" and not key.in_yaml:
                self._ini_only(entry, key)
                continue
            value = self._convert(entry, key)
            if value is _BAD:
                continue
            name = key.field or "pre_cluster_threshold"
            if key.legacy:
                self._old_threshold(entry, key.legacy, entries)
            changes[name] = value
            self._origin(f"{prefix}.{name}", entry)
        return replace(base, **changes)

    def _old_threshold(self, entry: Entry, new: str, entries: dict[str, Entry]) -> None:
        other = entries.get(new)
        if other is None:
            text = f"threshold is an old key, read as {new}"
            self.document.remark(entry.line, text, "info", code="deprecated-key")
            return
        winner, loser = sorted((entry, other), key=lambda e: e.line, reverse=True)
        self.document.remark(
            entry.line,
            f"threshold and {new} in one group are the same setting: {winner.key} in "
            f"{self.document.place(winner.line)} counts, {loser.key} in "
            f"{self.document.place(loser.line)} does not",
            code="key-overruled",
            data={"counts": winner.key, "remove": loser is entry},
        )

    # --- one entry --------------------------------------------------------------------------------

    def _entries(self, group: Group) -> dict[str, Entry]:
        written = self.document.written

        def replaced(first: Entry, second: Entry) -> str:
            return f"{written(second)} replaces {written(first)} of line {first.line}"

        return self.document.counting(group, replaced)

    def _convert(self, entry: Entry, key: Key) -> Any:
        document = self.document
        if entry.problem:
            fix = None
            if entry.problem == "is a sequence":
                fix = "a list is one text with semicolons: 3;640;640"
            elif entry.problem == "has no value":
                fix = 'write a value, or remove the line; an empty text is ""'
            message = f"{key.name} {entry.problem}."
            document.refuse(entry.line, message, key.expected(), fix, code="value-form")
            return _BAD
        try:
            if document.form_of(entry) == "ini":
                value = parse_ini(key.kind, entry.text)
            else:
                value = parse_yaml(key.kind, entry.text, loose=key.loose)
            remark_text(document, entry, key)
            if key.kind is Kind.PATH:
                value = self._resolved(value, entry) if value else None
            elif key.kind is Kind.PATHS:
                value = tuple(self._resolved(item, entry) for item in value)
            elif key.kind is Kind.STRING and not key.choices:
                value = value or None
        except BadValueError as bad:
            plain = key.enum is None and key.kind is not Kind.INT and not key.counts
            noun = bad.noun if key.enum is None else key.enum.noun()
            expected = bad.expected if plain else key.expected()
            fix = bad.fix or _HINTS.get(key.name)
            message, code = f"{document.written(entry)} is not {noun}.", _rule_of(key)
            document.refuse(entry.line, message, expected, fix, code=code)
            return _BAD
        trouble = None if value is None else key.trouble(value)
        if trouble:
            document.refuse(
                entry.line,
                f"{document.written(entry)} is not {trouble}.",
                key.expected(),
                _HINTS.get(key.name),
                code="value-choice" if key.enum or key.choices else "value-range",
            )
            return _BAD
        return key.enum(value) if key.enum is not None else value

    def _resolved(self, text: str, entry: Entry) -> Path:
        return resolve(os.path.join(os.getcwd(), text) if entry.given else text, self.document.path)

    def _store(self, name: str, value: Any, entry: Entry) -> None:
        self.reading.values[name] = value
        self.lines[name] = entry.line
        self._origin(name, entry)

    def _origin(self, name: str, entry: Entry) -> None:
        document = self.document
        if entry.given:
            option = document.where(entry.line)
            origin = Origin("override", key=entry.key, text=entry.text, option=option)
        else:
            origin = Origin("file", document.path, entry.line, entry.key, entry.text)
        self.reading.origins[name] = origin

    # --- what nobody reads ------------------------------------------------------------------------

    def _unknown(self, entry: Entry, group: str) -> None:
        self.unknown += 1
        known = self.unknown <= _MAX_SUGGESTIONS
        hint, meant = suggestion(entry.key, group) if known else ("", None)
        if entry.given:
            problem = f"{entry.key} is not a key."
            self.document.refuse(entry.line, problem, None, hint or None, code="unknown-key")
            return
        message = f"{quoted(entry.key)} is not a key and has no effect"
        message = f"{message}; {hint}" if hint else message
        self.document.remark(entry.line, message, code="unknown-key", data={"meant": meant})

    def _ini_only(self, entry: Entry, key: Key) -> None:
        self.document.remark(
            entry.line,
            f"{key.name} is not read in YAML and has no effect; write {key.legacy}",
            code="ini-only-key",
        )

    def _strays(self) -> set[str]:
        """Report keys at the top of a YAML file, which have lost their indent; return their names.

        A per-class key belongs to the class group above it.
        """
        strays: dict[str, list[Group]] = {}
        owner = None
        groups = self.document.groups.values() if self.document.form == "yaml" else ()
        for group in groups:
            if group.name == "property" or _CLASS_GROUP.match(group.name + "0"):
                owner = group.name
            elif group.entries and not group.entries[0].problem:
                continue  # a mapping
            elif group.name in CLASS_KEYS:
                meant = "class-attrs-all" if owner in (None, "property") else owner
                strays.setdefault(str(meant), []).append(group)
            elif group.name in PROPERTY_KEYS:
                strays.setdefault("property", []).append(group)
        for meant, keys in strays.items():
            names, s = ", ".join(key.name for key in keys), "s" * (len(keys) == 1)
            self.document.remark(
                keys[0].line,
                f"{names} stand{s} outside of every group and ha{'s' if s else 've'} no effect: "
                f"indent under {quoted(meant)}:",
                code="stray-key",
            )
        return {key.name for keys in strays.values() for key in keys}

    def _foreign_group(self, group: Group) -> None:
        name = quoted(group.name)
        plain = group.name.strip().lower().replace("_", "-")
        meant = None
        if re.match(r"class-?att?r", plain) and plain not in ("class-attrs-all",):
            number = re.search(r"[0-9]+$", plain)
            meant = f"class-attrs-{number[0] if number else 'all'}"
        elif plain in ("property", "class-attrs-all"):
            meant = plain
        else:
            self.unknown += 1
            if self.unknown <= _MAX_SUGGESTIONS:
                meant = nearest(plain, ["property", "class-attrs-all"])
        if group.entries and group.entries[-1].given:
            expected = "property, class-attrs-all or class-attrs-<n>"
            problem = f"{name} is not a group of a model's config, and no other can be set."
            fix = did_you_mean(meant)
            if re.fullmatch(r"(source|sink)[a-z0-9-]*", plain):
                fix = "name the video or URL behind the file, and each output as -o OUT"
            self.document.refuse(
                group.entries[-1].line, problem, expected, fix, code="unknown-group"
            )
        elif meant:
            text = f"group [{name}] is not read; did you mean [{meant}]?"
            self.document.remark(group.line, text, code="unknown-group", data={"meant": meant})
        else:
            text = f"group [{name}] is not read"
            self.document.remark(group.line, text, "info", code="unknown-group")

    def _no_property_group(self) -> None:
        document = self.document
        names = list(document.groups)
        near = [n for n in names if n.strip().lower() in ("property", "properties")]
        fix = None
        if near:
            fix = f"[{quoted(near[0])}] is another name: write it in small letters, without blanks"
        elif {"application", "primary-gie"} & set(names):
            fix = "this is an application's file: give the one its config-file key names"
        elif {"sources", "models", "sinks"} & set(names):
            fix = "this is a pipeline file: headrace run takes it; give a config that it names"
        line = document.groups[near[0]].line if near else 1
        problem = "the file has no group [property]."
        document.refuse(line, problem, "a line [property]", fix, code="no-property-group")
