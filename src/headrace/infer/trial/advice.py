"""Changes of a config that a finding recommends: their words, and the results of trying them.

A change is certain by reading (`read`: the file of the model says so), `tried` on the frames at
hand, or a `guess`, and is called so. A finding with advice has in its `data`

- `advice`: a list with `set` (the keys and values), `basis`, and the figures of a trial;
- `advised`: the same in words, which stand in its sentence;
- `set`: the one change that is certain or confirmed, and may be written. Without it none may.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from headrace._core.findings import Finding
from headrace.infer.trial.outcome import Outcome
from headrace.infer.trial.trials import Change, ConfigTrials, change_text

Basis = Literal["read", "tried", "guess"]

Fits = Callable[[Outcome, Outcome], bool]
"""Whether an outcome is right, beside that of the config as it is."""


def better(outcome: Outcome, present: Outcome) -> bool:
    """Whether a change gives sound boxes where there were none, or surer ones.

    Labels and class maps prove nothing: a network is sure of nonsense, too.
    """
    if outcome.kind != "boxes" or not outcome.sound:
        return False
    return not present.sound or outcome.total > present.total


def plain(outcome: Outcome, present: Outcome) -> bool:
    """Whether a change gives sound boxes, where the config as it is is known to be wrong."""
    return outcome.kind == "boxes" and outcome.sound


def some(outcome: Outcome, present: Outcome) -> bool:
    """Whether a change gives results where there were none."""
    return outcome.boxes > 0 == present.boxes


def calmer(outcome: Outcome, present: Outcome) -> bool:
    """Whether a change leaves fewer boxes than there were, and some."""
    return outcome.sound and outcome.boxes < present.boxes


def advised(finding: Finding, changes: Sequence[Change], *, basis: Basis = "guess") -> Finding:
    """Add changes to a finding that was not tried yet; its sentence ends with them.

    Args:
        finding: the words go to the end of its sentence.
        changes: what may help, the likeliest first.
        basis: `read` if the one change is certain without a trial.
    """
    rows = [{"set": dict(change), "basis": basis} for change in changes]
    data: dict[str, Any] = {**finding.data, "advice": rows, "advised": _words(changes, basis)}
    if basis == "read" and len(rows) == 1:
        data["set"] = rows[0]["set"]
    said = finding if "advised" in finding.data else finding.changed(suffix=": {advised}")
    return replace(said, data=data)


def tried_changes(finding: Finding) -> list[Change]:
    """The changes that a finding recommends, empty if none."""
    return [row["set"] for row in finding.data.get("advice", ())]


def tried(
    finding: Finding, trials: ConfigTrials, fits: Fits = better, proof: Fits | None = None
) -> Finding:
    """Try the changes of a finding on the frames at hand; without advice it stays as it is.

    Advice that is certain by reading keeps that basis; its trial adds the figures alone.

    Args:
        finding: with the changes of `advised`.
        trials: the frames.
        fits: tells whether a change may be right.
        proof: tells whether the only one that fits is; None: it is.
    """
    rows = finding.data.get("advice", ())
    if not rows:
        return finding
    changes = [row["set"] for row in rows]
    outcomes = [trials(change) for change in changes]
    ran = [o for o in outcomes if o.untried is None]
    present = trials.present
    data = {key: value for key, value in finding.data.items() if key != "set"}
    fitting = [o for o in ran if o.refused is None and fits(o, present)]
    if rows[0]["basis"] == "read":
        basis: Basis = "read"
        chosen = changes[:1]
    else:
        basis = "tried" if ran else "guess"
        only = fitting[:1] if len({o.figures for o in fitting}) == 1 else []  # others are twins
        chosen = [o.change for o in only if proof is None or proof(o, present)]
    data["advice"] = [
        {"set": dict(o.change), "basis": "guess" if o.untried and basis != "read" else basis}
        | dict(o.data)
        for o in outcomes
    ]
    data["advised"] = _words(changes, basis, outcomes, fitting, proved=bool(chosen))
    if len(chosen) == 1:
        data["set"] = dict(chosen[0])
    return replace(finding, data=data)


def _words(
    changes: Sequence[Change],
    basis: Basis,
    outcomes: Sequence[Outcome] = (),
    fitting: Sequence[Outcome] = (),
    *,
    proved: bool = False,
) -> str:
    texts = [change_text(change) for change in changes]
    if basis == "read":
        words = " or ".join(f"set {text}" for text in texts)
        known = [o for o in outcomes if o.untried is None]
        return f"{words} (with it: {known[0]})" if known else words
    if basis == "guess":
        why = f" ({outcomes[0].untried})" if outcomes else ""
        kind = "a guess, not tried" if len(texts) == 1 else "guesses, not tried"
        return f"{kind}{why}: {' or '.join(texts)}"
    if len(texts) == 1:
        if proved:
            return f"set {texts[0]} (with it: {outcomes[0]})"
        return f"tried {texts[0]}: {outcomes[0]}, which proves nothing"
    told = "; ".join(f"{text}: {o}" for text, o in zip(texts, outcomes, strict=True))
    end = "none of them is proved by that"
    if proved:
        end = f"set {change_text(fitting[0].change)}"
    elif len(fitting) > 1:
        end = f"{len(fitting)} of them fit: the pages of the model tell which is right"
    return f"tried on the same frames: {told}: {end}"
