"""`python -m tests.mistakes [DIR]`: which mistakes Headrace names, case by case, and their share.

DIR has cases from elsewhere; without it those of this folder are written to a temporary one.
`python -m tests.mistakes --repair [NAME]...` tells instead which of them `headrace repair` undoes.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.mistakes import correct, mistakes
from tests.mistakes.cases import faults, run_case
from tests.mistakes.repairs import verdict
from tests.mistakes.store import fill


def _share(title: str, folders: list[Path]) -> None:
    good = 0
    for folder in folders:
        outcome = run_case(folder)
        wrong = faults(outcome)
        good += not wrong
        said = outcome.first.partition("\n")[0]
        print(f"{'LACK' if wrong else 'ok  '} {folder.name}: {said}")
        for text in wrong[:3]:
            print(f"       {text}")
    print(f"{title}: {good} of {len(folders)}, {good / max(1, len(folders)):.1%}")


def _repairs(names: list[str]) -> None:
    """Print what `headrace repair` makes of the planted mistakes and of the right set-ups."""
    with tempfile.TemporaryDirectory() as name:
        store = Path(name, "store")
        fill(store)
        for title, cases in (("mistakes", mistakes.CASES), ("right ones", correct.CASES)):
            verdicts = []
            for case in cases:
                if not names or case.name in names:
                    verdicts.append(verdict(case, Path(name, title, case.name), store))
                    print(verdicts[-1], flush=True)
            fates = Counter(one.fate for one in verdicts)
            lost = [one for one in verdicts if one.undoable and one.before < 1]
            won = sum(one.fate == "repaired" for one in lost)
            worse = [one.name for one in verdicts if one.worse]
            wrong = [one.name for one in verdicts if one.fate == "wrong"]
            print(f"{title}: {dict(fates)}")
            print(f"change a box and are undone by keys: {won} of {len(lost)} repaired")
            print(f"worse: {worse}; other boxes written: {wrong}")


def _main() -> None:
    if sys.argv[1:2] == ["--repair"]:
        _repairs(sys.argv[2:])
        return
    if len(sys.argv) > 1:
        _share("as expected", sorted(p.parent for p in Path(sys.argv[1]).rglob("case.yml")))
        return
    with tempfile.TemporaryDirectory() as name:
        store = Path(name, "store")
        fill(store)
        for title, cases in (
            ("mistakes named", mistakes.CASES),
            ("right ones let alone", correct.CASES),
        ):
            for case in cases:
                case.write(Path(name, title, case.name), store)
            _share(title, [Path(name, title, case.name) for case in cases])


_main()
