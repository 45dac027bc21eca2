"""Small damages of files, as data that hypothesis can shrink."""

from __future__ import annotations

from hypothesis import strategies as st

EDITS = ("set", "delete", "insert", "repeat", "cut")
places, values = st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=8)


def edited(data: bytes, kind: str, place: float, value: bytes) -> bytes:
    """The bytes after one of `EDITS`.

    Args:
        place: where, 0 to 1.
        value: what is put there; of what is deleted, the length; repeated are 64 bytes, as often
            as it is long.
    """
    at = int(place * len(data))
    match kind:
        case "set":
            return data[:at] + value + data[at + len(value) :]
        case "delete":
            return data[:at] + data[at + len(value) :]
        case "insert":
            return data[:at] + value + data[at:]
        case "repeat":
            return data[:at] + data[at : at + 64] * len(value) + data[at:]
    return data[:at]
