"""Each rule's wrong example raises the rule, its right one does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.diagnose.lint.catalogue import LintRule, all_rules
from headrace.diagnose.lint.linting import Linter
from headrace.diagnose.lint.targets import TARGETS
from tests.diagnose.lint.setups import write_example

EXAMPLES = [rule for rule in all_rules().values() if rule.example is not None]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.mark.parametrize("rule", EXAMPLES, ids=lambda rule: str(rule.id))
def test_example(
    rule: LintRule, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = rule.example
    assert example is not None
    target = TARGETS[example.target] if example.target else None
    found = {}
    for wrong in (True, False):
        folder = tmp_path / ("wrong" if wrong else "right")
        base = write_example(example, folder, store, wrong=wrong)
        monkeypatch.chdir(folder)
        report = Linter(target).lint([Path(name) for name in base.lint], together=base.together)
        found[wrong] = {finding.code: finding for finding in report.findings}
        others = [f for f in report.findings if f.severity != "note"]
        assert wrong or target or not others, f"the right one has {others}"
    assert rule.id in found[True], f"the wrong one has {sorted(found[True])}"
    assert rule.id not in found[False]
    assert found[True][rule.id].place.path is not None
