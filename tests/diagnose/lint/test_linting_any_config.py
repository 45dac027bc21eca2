"""Laws of lint for any config: it ends, escapes, keeps order, and its edits come to an end."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.config.keys import CLASS_KEYS, PROPERTY_KEYS
from headrace.diagnose.lint.catalogue import Example, all_rules
from headrace.diagnose.lint.fixes import fixes_for
from headrace.diagnose.lint.linting import Linter
from headrace.diagnose.lint.targets import TARGETS
from headrace.diagnose.lint.text import json_data, sarif_text
from tests.diagnose.lint.setups import write_example
from tests.profiles import examples

_PATHS = ("-file", "-path", "-files")  # kept: they would name files of this machine
_KEYS = [k for k in (*PROPERTY_KEYS, *CLASS_KEYS) if not k.endswith(_PATHS)]
_VALUES = st.one_of(
    st.integers(-3, 10).map(str),
    st.floats(-2, 300).map(lambda v: f"{v:g}"),
    st.sampled_from(["0;1;2", "0,5", "NMS", "RGB", "", " ", '"x"', "1 # one", "3;128;160"]),
    st.text("abc;.,:#=[]\\ \t", max_size=8),
)  # fmt: skip
_LINES = st.lists(st.tuples(st.sampled_from(_KEYS), _VALUES), max_size=6)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_LINES, st.booleans(), st.sampled_from([None, *TARGETS]))
def test_any_lines_are_linted_and_mended(
    store: Path, lines: list[tuple[str, str]], in_yaml: bool, target: str | None
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "case")
        base = write_example(Example("yaml" if in_yaml else "yolov8"), folder, store, wrong=False)
        config = folder / base.lint[0]
        sign = "  {}: {}\n" if in_yaml else "{}={}\n"
        more = "".join(sign.format(key, value) for key, value in lines)
        config.write_text(config.read_text() + more)
        chosen = TARGETS[target] if target else None
        for _ in range(12):
            report = Linter(chosen).lint([config])
            assert {f.code for f in report.findings} <= set(all_rules())
            json_data(report, {})
            sarif_text(report, "1")
            if not (fixes := fixes_for(report.findings)):
                break
            for fix in fixes:
                assert fix.diff
                fix.write()
        else:
            pytest.fail(f"edits do not come to an end: {more}")
