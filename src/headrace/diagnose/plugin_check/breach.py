"""One breach of the contract, and the report of a check."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding, Level
from headrace.diagnose.plugin_check.clauses import CLAUSES, OF_METHODS


@dataclass(frozen=True, slots=True)
class Breach:
    """A clause that a plugin breaks.

    Attributes:
        clause: its name, a key of `CLAUSES`.
        event: the finding in words.
        level: `error`, or `warning` for what TensorRT may or may not notice.
        where: the plugin.
        hints: lines that help to find the place.
    """

    clause: str
    event: str
    level: Level = "error"
    where: str = ""
    hints: tuple[str, ...] = ()

    @property
    def finding(self) -> Finding:
        """The breach as a finding."""
        methods, promise = CLAUSES[self.clause]
        data = {"clause": self.clause, "methods": methods}
        return Finding(
            "plugin-contract",
            self.level,
            self.event,
            self.where,
            data,
            f"{methods}: {promise}",
            self.hints,
        )

    @property
    def lines(self) -> list[str]:
        """The clause and the hints, for people."""
        return self.finding.advice


def of_error(error: HeadraceError) -> Breach:
    """The breach that an error of a driver stands for."""
    method = str(error.data.get("method", ""))
    named = error.data.get("clause")
    if not isinstance(named, str) or named not in CLAUSES:
        named = OF_METHODS.get(method, "enqueue")
        if error.data.get("phase") == "load":
            named = "deserialize"
        if error.data.get("raised") == "CustomCodeError":  # of C++
            named = "exceptions"
    finding = error.finding
    return Breach(named, finding.sentence, "error", "", tuple(finding.advice[:3]))


class BrokenError(Exception):
    """A check found a breach that makes the rest of it pointless."""

    def __init__(self, breach: Breach) -> None:
        super().__init__(breach.event)
        self.breach = breach


def broken(clause: str, text: str, level: Level = "error") -> BrokenError:
    """Make the error for a breach."""
    return BrokenError(Breach(clause, text, level))


@dataclass(slots=True)
class PluginReport:
    """The result for one plugin.

    Attributes:
        plugin: its name, version and namespace.
        inputs: what it was given, in words; empty if nothing that it takes was found.
        guessed: which of this nobody gave.
        breaches: what it breaks.
        checked: checks that were made.
        skipped: checks that were not, with the reason.
        notes: facts, such as what of it needs a GPU.
    """

    plugin: str
    inputs: str = ""
    guessed: list[str] = field(default_factory=list)
    breaches: list[Breach] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether it was checked, and no breach is an error."""
        return bool(self.checked) and not any(b.level == "error" for b in self.breaches)

    def add(self, breach: Breach) -> None:
        """Add a breach, unless its clause is named already."""
        if breach.clause not in {b.clause for b in self.breaches}:
            self.breaches.append(breach)

    def to_json(self) -> dict[str, Any]:
        """The report as `--json` prints it."""
        return {
            "plugin": self.plugin,
            "passed": self.passed,
            "inputs": self.inputs,
            "guessed": self.guessed,
            "breaches": [b.finding.to_json() for b in self.breaches],
            "checked": self.checked,
            "skipped": self.skipped,
            "notes": self.notes,
        }

    def __str__(self) -> str:
        lines = [f"{self.plugin}: {self.inputs or 'no inputs that it takes were found'}"]
        lines += [str(b.finding) for b in self.breaches]
        return "\n".join(lines)
