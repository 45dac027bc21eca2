"""Compute the expectations of `cases.json` again with the independent oracle.

`python -m tests.conformance.regenerate` rewrites the file; with `--check` it only says which cases
differ from the oracle and exits with 1 if there are any.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.conformance import oracle
from tests.conformance.cases import OWN_CASES, compare


def differences(cases: list[dict[str, Any]]) -> list[str]:
    """What the oracle says otherwise, one line per case."""
    found = []
    for case in cases:
        expected = oracle.expect(case["area"], case["given"], case.get("generation", "9.1"))
        if expected is None:
            continue
        try:
            compare(case["expect"], expected, case.get("tolerance", 0.0))
        except AssertionError as error:
            found.append(f"{case['id']}: {error}")
    return found


def render(content: dict[str, Any]) -> str:
    """One case a line, so that a change shows as one line."""
    head = {k: v for k, v in content.items() if k != "cases"}
    lines = [json.dumps(case, ensure_ascii=False) for case in content["cases"]]
    return json.dumps(head)[:-1] + ', "cases": [\n' + ",\n".join(lines) + "\n]}\n"


def main(arguments: list[str]) -> int:
    path = Path(arguments[-1]) if arguments and arguments[-1] != "--check" else OWN_CASES
    content = json.loads(path.read_text(encoding="utf-8"))
    wrong = differences(content["cases"])
    for line in wrong:
        print(line)
    if "--check" in arguments:
        return 1 if wrong else 0
    for case in content["cases"]:
        fresh = oracle.expect(case["area"], case["given"], case.get("generation", "9.1"))
        case["expect"] = fresh if fresh is not None else case["expect"]
    path.write_text(render(content), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
