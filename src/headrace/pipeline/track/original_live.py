"""Keys of the original's tracker files that change while a tracker runs.

Source: the manual of Gst-nvtracker, the tables of keys (dynamic) and "runtime configuration".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace._core.findings import Finding
from headrace.pipeline.track.original_file import history_of, value_of
from headrace.pipeline.track.original_keys import find_key
from headrace.pipeline.track.settings_file import FileSetting

RESET = "Control.tracker-reset"


class LiveValues:
    """Values of a running tracker, shared by the followers of all sources.

    Attributes:
        values: by the column `to` of the keys' table; replaced as a whole, never changed.
        resets: times that all targets were to be forgotten.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values, self.resets = dict(values), 0

    def change(self, entries: Mapping[str, FileSetting], where: str) -> list[Finding]:
        """Take the keys of a file that may change; all of them, or none if one is refused.

        Returns:
            What is left as it was, and why.

        Raises:
            ConfigError: a value that a key cannot have.
        """
        values, fixed, unknown = dict(self.values), [], []
        for path, entry in entries.items():
            key = find_key(path)
            if key is None:
                unknown.append(path)
            elif key.live:
                values[key.to] = value_of(key, entry, where)
            elif key.path != RESET:
                fixed.append(key.name)
        values["history"] = history_of(values)
        reset = entries.get(RESET)
        if reset is not None and value_of(_reset_key(), reset, where):
            self.resets += 1
        self.values = values
        return _notices(fixed, unknown, where)


def _reset_key() -> Any:
    key = find_key(RESET)
    assert key is not None
    return key


def _notices(fixed: list[str], unknown: list[str], where: str) -> list[Finding]:
    rows = (
        ("tracker-settings", "stays as it is until the next start", fixed),
        ("tracker-key-unknown", "no tracker of the original has", unknown),
    )
    return [
        Finding(code, "warning", f"{text}: {', '.join(dict.fromkeys(names))}", where)
        for code, text, names in rows
        if names
    ]
