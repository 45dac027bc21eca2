"""Fixtures for tests of parsers and plugins; pytest loads them by their entry point."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headrace.diagnose.plugin_check import PluginReport
    from headrace.infer.recordings import Recording


@pytest.fixture
def headrace_recording(
    request: pytest.FixtureRequest,
) -> Callable[[str | PathLike[str]], Recording]:
    """Load recordings of `headrace record`; relative paths start at the folder of the test's file.

        def test_parser(headrace_recording):
            for item in headrace_recording("street.safetensors"):
                found = parse(item.layers, item.network, item.params)
                headrace.assert_same_objects(found, item)

    The function raises MediaError if a file is damaged, or is no recording.
    """
    from headrace.infer.recordings import load_recording

    return lambda path: load_recording(request.path.parent / path)


@pytest.fixture
def headrace_check_plugin(request: pytest.FixtureRequest) -> Callable[..., list[PluginReport]]:
    """Check plugins as `headrace check-plugin` does; relative paths start at the test's folder.

        def test_plugins(headrace_check_plugin):
            headrace_check_plugin("libscale.so", "float32:2x3x17x13", scale=2.0)

    The function takes the library or Python file, type and shape of each input, and fields by name;
    `only` names the plugins to check. It returns the reports.

    Raises:
        AssertionError: a clause is broken, or a plugin could not be checked.
    """
    from headrace.diagnose.plugin_check import check_library
    from headrace.diagnose.plugin_check.subjects import parsed_input

    def check(
        path: str | PathLike[str], *inputs: str, only: tuple[str, ...] = (), **fields: object
    ) -> list[PluginReport]:
        given = [parsed_input(text) for text in inputs]
        reports = check_library(request.path.parent / path, inputs=given, fields=fields, only=only)
        failed = [str(report) for report in reports if not report.passed]
        assert not failed, "\n".join(failed)
        return reports

    return check
