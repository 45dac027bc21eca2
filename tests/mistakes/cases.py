"""What a case is, how it is written into a folder, run, and judged.

A folder with a `case.yml` is a case, wherever it comes from:

    command: [run, config.txt, images, -o, out.jsonl]   # after `headrace`, run in this folder
    expect:
      words: [net-scale-factor, 0..1|255]   # each in the first lines; | parts alternatives
      rule: input-range                     # the finding's name in `--json`
      exit: 3                               # the exit code
      quiet: true                           # nothing is wrong: no warning
      boxes: expected.json                  # a list of [label, left, top, width, height] an image

The first lines are the first three that the run prints, without its `note:` lines, which tell what
was decided. In those that count frames or objects, or name outputs, nothing is looked for.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner, Result

from tests.mistakes import scene

FIRST = 3
_BOX = ("label", "left", "top", "width", "height")
_COUNTS = re.compile(r"done: |found \d|wrote ")
OFF = 2.0  # pixels that a box may be away from what was painted
Keys = Mapping[str, Any]
Files = Mapping[str, str | bytes | None]


@dataclass(frozen=True)
class Setup:
    """A set-up that is right.

    Attributes:
        configs: file name to keys; `group.key` stands in a group of its own.
        files: other files, labels and parsers: name to text or bytes.
        models: names of files in the store.
        command: arguments of `headrace`.
        boxes: whether `out.jsonl` has the painted squares.
    """

    configs: Mapping[str, Keys]
    files: Files
    models: Sequence[str]
    command: Sequence[str] = ("run", "config.txt", "images", "-o", "out.jsonl")
    boxes: bool = True


@dataclass(frozen=True)
class Case:
    """A set-up with something changed.

    Attributes:
        name: of the case and its folder.
        setup: what it begins with.
        keys: changed keys of the last config, None drops one; `file:key` is of another config.
        words: what the first lines must say; none if nothing is wrong.
        files: changed files; None drops one.
        models: file name to the one of the store that lies there instead.
        command: instead of the set-up's.
        exit: the exit code, if it matters.
        scene: the images.
        kinds: classes that a right set-up still finds.
        waits: why Headrace does not name it yet; empty if it does.
    """

    name: str
    setup: Setup
    keys: Keys = field(default_factory=dict)
    words: Sequence[str] = ()
    files: Files = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    command: Sequence[str] = ()
    exit: int | None = None
    scene: str = "images"
    kinds: Sequence[int] = (0, 1, 2)
    waits: str = ""

    def write(self, folder: Path, store: Path) -> None:
        """Write the case as its user has it.

        Args:
            folder: a new one, for the case.
            store: images, models and engines of all cases, from `fill`.
        """
        folder.mkdir(parents=True)
        configs = {name: dict(keys) for name, keys in self.setup.configs.items()}
        last = next(reversed(configs), "")
        for key, value in self.keys.items():
            file, _, name = key.rpartition(":")
            configs[file or last][name] = value
        files = {name: config_text(keys) for name, keys in configs.items()}
        for name, content in (files | dict(self.setup.files) | dict(self.files)).items():
            if content is not None:
                data = content.encode() if isinstance(content, str) else content
                (folder / name).write_bytes(data)
        for name in {*self.setup.models, *self.models}:
            shutil.copyfile(store / self.models.get(name, name), folder / name)
        (folder / "images").symlink_to(store / self.scene)
        expect = {"words": list(self.words)} if self.words else {"quiet": True}
        if self.exit is not None:
            expect["exit"] = self.exit
        if not self.words and self.setup.boxes:
            expect["boxes"] = "expected.json"
            (folder / "expected.json").write_text(json.dumps(self._painted()))
        case = {"command": list(self.command or self.setup.command), "expect": expect}
        (folder / "case.yml").write_text(yaml.safe_dump(case, sort_keys=False))

    def _painted(self) -> list[list[tuple[str, int, int, int, int]]]:
        return [
            [
                (scene.NAMES[s.kind], s.left, s.top, scene.SIDE, scene.SIDE)
                for s in scene.squares(number, self.scene)
                if s.kind in self.kinds
            ]
            for number in range(scene.COUNT)
        ]


def config_text(keys: Keys) -> str:
    """An INI file; keys with a None are left out."""
    groups: dict[str, list[str]] = {"property": []}
    for key, value in keys.items():
        group, _, name = key.rpartition(".")
        if value is not None:
            groups.setdefault(group or "property", []).append(f"{name}={value}\n")
    return "\n".join(f"[{name}]\n{''.join(lines)}" for name, lines in groups.items())


@dataclass(frozen=True)
class Outcome:
    """A run's exit code and what it printed, in the order of a terminal."""

    folder: Path
    code: int
    lines: tuple[str, ...]

    @property
    def first(self) -> str:
        """What a user reads first."""
        lines = self.lines[:FIRST]
        return "\n".join(x for x in lines if not _COUNTS.match(x))


def run_case(folder: Path) -> Outcome:
    """Run a case's command in this process, in its folder.

    Raises:
        Exception: a defect of Headrace's own.
    """
    result = _invoked(folder)
    lines = [line for line in result.output.splitlines() if line.strip()]
    # the folder's name may have the words that are looked for
    return Outcome(folder, result.exit_code, tuple(x.replace(str(folder), ".") for x in lines))


def _invoked(folder: Path, *more: str) -> Result:
    from headrace.cli import main

    before = Path.cwd()
    os.chdir(folder)
    try:
        result = CliRunner().invoke(main, [*map(str, _case(folder)["command"]), *more])
    finally:
        os.chdir(before)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def _rules(folder: Path) -> list[str]:
    """The rules that found something, in the order of the report."""
    printed = _invoked(folder, "--json").stdout
    notices = json.loads(printed)["notices"] if printed.startswith("{") else []
    return [notice["code"] for notice in notices if notice.get("code")]


def faults(outcome: Outcome) -> list[str]:
    """What an outcome lacks of what its case expects; empty if it is as it should be."""
    expect = _case(outcome.folder)["expect"]
    first = outcome.first.lower()
    found = [
        f"the first lines lack {word!r}"
        for word in expect.get("words", ())
        if not any(part in first for part in str(word).lower().split("|"))
    ]
    if "rule" in expect and expect["rule"] not in (rules := _rules(outcome.folder)):
        found.append(f"--json has the rules {rules}, not {expect['rule']!r}")
    if "exit" in expect and outcome.code != expect["exit"]:
        found.append(f"exit code {outcome.code} instead of {expect['exit']}")
    if expect.get("quiet"):
        found += [line for line in outcome.lines if line.startswith(("warning", "error"))]
        found += [f"exit code {outcome.code}"] if outcome.code else []
    if "boxes" in expect and not outcome.code:
        wanted = json.loads((outcome.folder / expect["boxes"]).read_text())
        found += _misplaced(outcome.folder / "out.jsonl", wanted)
    return found


def _case(folder: Path) -> dict[str, Any]:
    case: dict[str, Any] = yaml.safe_load((folder / "case.yml").read_text())
    return case


def _same(box: list[Any], other: list[Any]) -> bool:
    pairs = zip(box[1:], other[1:], strict=True)
    return box[0] == other[0] and all(abs(x - y) <= OFF for x, y in pairs)


def _misplaced(path: Path, wanted: list[list[list[Any]]]) -> list[str]:
    """Images of the JSON Lines at `path` with other boxes than `wanted`."""
    lines = path.read_text().splitlines()
    found = [] if len(lines) == len(wanted) else [f"{len(lines)} images, not {len(wanted)}"]
    for number, (line, expected) in enumerate(zip(lines, wanted, strict=False)):
        boxes = [[o[key] for key in _BOX] for o in json.loads(line)["objects"]]
        missed = [e for e in expected if not any(_same(box, e) for box in boxes)]
        if missed or len(boxes) != len(expected):
            found.append(f"image {number} has {boxes} instead of {expected}")
    return found
