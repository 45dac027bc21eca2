"""Models of many exporters are read as what they are: HEADRACE_FORMS names an index of them.

Its columns stand in the head of `tests.outside.exporter_forms`, which also writes the page.
"""

from __future__ import annotations

import csv
import os
import warnings
from collections import Counter
from pathlib import Path

import pytest

from tests.outside.exporter_forms import answer

INDEX = Path(os.environ.get("HEADRACE_FORMS", ""))


@pytest.mark.slow
@pytest.mark.skipif(not INDEX.is_file(), reason="no HEADRACE_FORMS")
def test_no_form_is_read_wrongly() -> None:
    with INDEX.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if Path(row["path"]).is_file()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers = [answer(row) for row in rows]
    wrong = [(*one.named, one.words) for one in answers if one.state == "wrong"]
    assert wrong == []
    counts = Counter(one.state for one in answers)
    assert counts["read"] + counts["asked"] >= 0.85 * len(answers)
