"""The service of examples/13_service loses nothing when it is killed; see `tests.live.restarts`."""

from __future__ import annotations

import pytest

from tests.live.restarts import main


@pytest.mark.slow
def test_a_service_that_is_killed_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["--times", "6", "--several", "2"])
    assert code == 0, capsys.readouterr().out
