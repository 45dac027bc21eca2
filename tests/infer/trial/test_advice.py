"""Advice is certain, tried or called a guess, and only what is certain or confirmed may be set."""

from __future__ import annotations

from pathlib import Path

from headrace._core.findings import Finding
from headrace.infer.trial import advised, plain, tried
from tests.infer.trial.test_trials import UNIT, opened

FINDING = Finding("input-range", "warning", "the range is wrong", "net-scale-factor")
DARK = {"net-scale-factor": "0.000001"}
HALF = {"net-scale-factor": "0.0078431373", "offsets": "127.5;127.5;127.5"}
RIGHT = {"net-scale-factor": UNIT}


def test_what_was_not_tried_is_a_guess_and_is_never_set() -> None:
    one = advised(FINDING, [RIGHT])
    assert str(one).endswith(f"a guess, not tried: net-scale-factor={UNIT}")
    two = advised(FINDING, [RIGHT, HALF])
    assert "guesses, not tried" in str(two)
    assert "set" not in one.data
    assert "set" not in two.data


def test_what_is_read_is_set_without_a_trial() -> None:
    finding = advised(FINDING, [RIGHT], basis="read")
    assert finding.data["set"] == RIGHT
    assert str(finding).endswith(f"set net-scale-factor={UNIT}")


def test_one_change_that_fits_is_confirmed(tmp_path: Path) -> None:
    with opened(tmp_path, net_scale_factor=1) as trials:
        finding = tried(advised(FINDING, [DARK, RIGHT]), trials, plain)
    assert finding.data["set"] == RIGHT
    assert [row["basis"] for row in finding.data["advice"]] == ["tried", "tried"]
    assert finding.data["advice"][1]["sound"] is True
    assert str(finding).endswith(f"set net-scale-factor={UNIT}")
    assert "scores up to" in str(finding)


def test_several_that_fit_are_all_listed_and_none_is_set(tmp_path: Path) -> None:
    with opened(tmp_path, net_scale_factor=1) as trials:
        finding = tried(advised(FINDING, [HALF, RIGHT]), trials, plain)
    assert "set" not in finding.data
    assert "2 of them fit" in str(finding)
    assert HALF["offsets"] in str(finding)
    assert UNIT in str(finding)


def test_a_change_that_gives_nothing_is_not_set(tmp_path: Path) -> None:
    with opened(tmp_path, net_scale_factor=1) as trials:
        finding = tried(advised(FINDING, [DARK]), trials)
    assert "set" not in finding.data
    assert "tried" in str(finding)


def test_what_is_read_is_told_with_what_comes_out(tmp_path: Path) -> None:
    with opened(tmp_path, net_scale_factor=1) as trials:
        finding = tried(advised(FINDING, [RIGHT], basis="read"), trials)
    assert finding.data["set"] == RIGHT
    assert finding.data["advice"][0]["basis"] == "read"
    assert "(with it: " in str(finding)
    assert "boxes in 5 frames" in str(finding)


def test_a_trial_without_budget_stays_a_guess_with_its_reason(tmp_path: Path) -> None:
    with opened(tmp_path, net_scale_factor=1) as trials:
        trials.budget.left_s, trials.budget.run_s = 0.0, 3.0
        finding = tried(advised(FINDING, [RIGHT]), trials)
    assert "a guess, not tried (a run of the network takes 3 s" in str(finding)
    assert "set" not in finding.data


def test_a_finding_without_advice_stays_as_it_is(tmp_path: Path) -> None:
    with opened(tmp_path) as trials:
        assert tried(FINDING, trials) is FINDING
