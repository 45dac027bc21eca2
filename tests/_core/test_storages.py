"""Storages: a package that is missing is named, with its command."""

from __future__ import annotations

import sys

import pytest

from headrace._core.storages import PACKAGES, refusal, usable_schemes
from headrace.batches.bucket import Bucket
from headrace.batches.remote import fetched
from headrace.errors import MissingExtraError

registry = pytest.importorskip("fsspec.registry")


@pytest.fixture(params=sorted(PACKAGES.items()), ids=lambda item: item[0])
def absent(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A scheme and its package, which is not installed."""
    scheme, package = request.param
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "fsspec.implementations.http", raising=False)
    monkeypatch.delitem(registry._registry, scheme, raising=False)
    return scheme, package


def test_a_package_of_a_storage_is_named(absent: tuple[str, str]) -> None:
    scheme, package = absent
    with pytest.raises(MissingExtraError, match=f"{package} is not installed") as caught:
        Bucket(f"{scheme}://user:secret@place/results")
    assert "secret" not in str(caught.value)
    assert f"pip install {package}" in str(caught.value)
    with (
        pytest.raises(MissingExtraError, match=f"pip install {package}"),
        fetched(f"{scheme}://place/a.mp4"),
    ):
        pass
    assert usable_schemes()[scheme] is False


def test_a_storage_that_nobody_lists_keeps_its_own_words() -> None:
    with pytest.raises(MissingExtraError, match="paramiko") as caught:
        Bucket("sftp://place/results")
    assert "install the package that reads sftp://" in str(caught.value)


@pytest.mark.parametrize(
    ("error", "words", "advice"),
    [
        (FileNotFoundError("The specified bucket does not exist"), "there is no such bucket", 0),
        (FileNotFoundError("bucket/a.mp4"), "there is no such file", 0),
        (PermissionError("Forbidden"), "access is refused: Forbidden", 1),
        (ValueError("Unable to locate credentials"), "access is refused: Unable to locate", 1),
        (OSError("503 Slow Down"), "503 Slow Down", 0),
        (ValueError("no region"), "ValueError: no region", 0),
    ],
)
def test_answers_of_storages_are_worded(error: Exception, words: str, advice: int) -> None:
    text, fix = refusal(error)
    assert text.startswith(words)
    assert len(fix) == advice
