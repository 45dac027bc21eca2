"""The findings of the doctor."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from headrace._core.errors import HeadraceError

Area = Literal["gpu", "engine", "video", "tools", "guard", "extra"]
State = Literal["ok", "absent", "problem"]


@dataclass(frozen=True, slots=True)
class Check:
    """The state of one part of the machine.

    Attributes:
        area: that of the part.
        name: of the part.
        state: `ok`: it was used here, or is there. `absent`: it is not installed, and nothing
            that is needs it. `problem`: it is there, and cannot be used.
        text: the version, or the reason.
        fix: commands that bring it, or mend it.
    """

    area: Area
    name: str
    state: State
    text: str
    fix: tuple[str, ...] = ()

    @classmethod
    def of(cls, area: Area, name: str, state: State, error: HeadraceError, more: str = "") -> Check:
        """The check of a part that `error` speaks of; `more` follows its sentence."""
        return cls(area, name, state, f"{error:brief}{more}", error.finding.remedies)


@dataclass(frozen=True, slots=True)
class Findings:
    """All checks.

    Attributes:
        system: Headrace, Python, processor and system, in one line.
        device: where `headrace run` computes: `cpu` or `cuda:N`; None of one part alone.
        checks: in the order of their areas.
    """

    system: str
    device: str | None
    checks: tuple[Check, ...]

    @property
    def problems(self) -> tuple[Check, ...]:
        """The checks of parts that are there and cannot be used."""
        return tuple(check for check in self.checks if check.state == "problem")

    def to_dict(self) -> dict[str, Any]:
        """Make JSON data of it."""
        checks = [asdict(check) for check in self.checks]
        return {"system": self.system, "device": self.device, "checks": checks}
