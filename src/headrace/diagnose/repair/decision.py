"""The decision on a search: nothing to repair, a set-up that is chosen, or none."""

from __future__ import annotations

from typing import Literal

from headrace._core.text import counted
from headrace.config.enums import ProcessMode
from headrace.diagnose.repair.candidate import Candidate, change_words, text_change
from headrace.diagnose.repair.plausibility import TRUE_BOX, against
from headrace.diagnose.repair.search import MARGIN, Search

Outcome = Literal["nothing", "chosen", "undecided"]

_BETTER = 1.02
"""How many times as plausible results must be that the model's file speaks for."""

_DECIDES = "a source that shows objects, or a true box, decides"


def verdict(search: Search, start: Candidate, best: Candidate) -> tuple[Outcome, str]:
    """The outcome of a search, and the reason in words.

    Args:
        search: that has run.
        start: the config as it is.
        best: the likeliest candidate.
    """
    found, frames = start.plausibility.terms[0].words, counted(len(search.runs.frames), "frame")
    changed = best.text != start.text or not search.sure
    if search.sure and _healthy(start) and _meets(start, search):
        if start.plausibility.boxes or not _finds_boxes(start):
            if not _outdone(search, start, best):
                return "nothing", f"nothing speaks against it: {found}"
        elif not changed or not best.plausibility.sound or not best.plausibility.clean:
            nothing = f"{frames} show nothing to it, and no other set-up finds anything certain"
            return "undecided", f"{nothing}: {_DECIDES}"
        elif not _convincing(search, best):
            return "undecided", (
                f"{frames} show nothing to it, and what {_words(search, start, best)} finds "
                f"({best.plausibility.terms[0].words}) is no proof: {_DECIDES}"
            )
    known = start.score > 0 and search.sure
    if not changed or (known and best.score < MARGIN * start.score):
        return "undecided", f"no change of keys makes it better: {_against(start) or found}"
    outcome, reason = _weighed(search, start, best)
    secondary = start.config is not None and start.config.process_mode is ProcessMode.SECONDARY
    if outcome == "undecided" and secondary:
        reason = "process-mode=2 has it look at the objects of another model, and none is here"
        reason += ": repair that one; headrace explain takes both"
    return outcome, reason


def _weighed(search: Search, start: Candidate, best: Candidate) -> tuple[Outcome, str]:
    """Whether the likeliest set-up is sure enough to be chosen."""
    words, figures = _words(search, start, best), best.plausibility
    if not figures.sound or not (figures.clean or best.firm):
        frames = counted(len(search.runs.frames), "frame")
        return "undecided", f"no set-up finds anything certain in {frames}"
    if not _finds_boxes(best) and not best.firm:
        return "undecided", (
            "labels, class maps and tensors do not tell right from wrong, and the model's file "
            f"does not decide {words}"
        )
    if not _meets(best, search):
        return "undecided", "no set-up finds the true box"
    rival = search.rival(best)
    if rival is None:
        return "chosen", f"{words}: {figures.terms[0].words}"
    other = _words(search, start, rival)
    backed = best.firm and not rival.firm and best.score >= rival.score
    if best.score < MARGIN * rival.score and not backed:
        return "undecided", (
            f"{words} ({figures.terms[0].words}) is no more plausible than {other} "
            f"({rival.plausibility.terms[0].words})"
        )
    ratio = best.score / rival.score
    less = f"the next, {other}, is {ratio:.2g} times less plausible"
    return "chosen", f"{words}: {figures.terms[0].words}; {less}"


def _words(search: Search, start: Candidate, candidate: Candidate) -> str:
    """The change of a candidate in words."""
    plain = "the config as it is" if search.sure else "what recognition takes first"
    if candidate.text != start.text:
        plain = "the edits that lint is certain of"
    return change_words(text_change(start.text, candidate.text)) or plain


def _outdone(search: Search, start: Candidate, best: Candidate) -> bool:
    """Whether results that may be right are against the model's file, and its own are better."""
    if search.agrees(start) or not search.agrees(best) or not best.firm:
        return False
    return best.plausibility.score >= _BETTER * start.plausibility.score


def _healthy(start: Candidate) -> bool:
    """Whether nothing speaks against a set-up; one that finds nothing may look at empty scenes."""
    run = start.run
    if run is None or run.error is not None or against(run):
        return False
    if run.losses.reasons and (start.plausibility.boxes or run.losses.dropped):
        return False
    return start.plausibility.ordinary or not _finds_boxes(start)


def _convincing(search: Search, best: Candidate) -> bool:
    """Whether a set-up proves that one which finds nothing is wrong, though nothing else does."""
    figures, run = best.plausibility, best.run
    if run is None or not search.quiet(best) or not figures.clean:
        return False
    often = figures.certain >= max(2, len(run.metas) // 2)
    return often and search.agrees(best) and run.config.num_detected_classes == len(run.labels)


def _finds_boxes(candidate: Candidate) -> bool:
    return candidate.config is not None and candidate.config.network_type.has_class_attrs


def _meets(candidate: Candidate, search: Search) -> bool:
    """Whether a candidate finds each true box under its label."""
    terms = [term for term in candidate.plausibility.terms if term.name == TRUE_BOX]
    return len(terms) == len(search.truths) and not any(term.missed for term in terms)


def _against(candidate: Candidate) -> str:
    """The findings and losses that speak against a candidate, in words."""
    refusal = candidate.refusal or (candidate.run.error if candidate.run else None)
    if refusal is not None:
        return f"{refusal:brief}"
    assert candidate.run is not None
    reasons = [*(f"{f:brief}" for f in against(candidate.run)), *candidate.run.losses.reasons]
    return reasons[0] if reasons else ""
