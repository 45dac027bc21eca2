"""Fuzz the reader of calibration tables: any bytes give a table, or our error.

    pip install atheris
    python tests/fuzz/fuzz_calibration.py -max_total_time=600 CORPUS tests/fuzz/seeds/calibration

The tests replay `seeds/calibration` through `one_input`; atheris is needed for fuzzing only.
"""

from __future__ import annotations

import math
import sys

if __name__ == "__main__":
    from instrument import instrumented

    with instrumented("headrace"):
        from headrace.engine.precision.cache import CalibrationTable
        from headrace.errors import EngineError
else:
    from headrace.engine.precision.cache import CalibrationTable
    from headrace.errors import EngineError


def one_input(data: bytes) -> None:
    """Run one fuzz input; raises if the reader misbehaves."""
    try:
        table = CalibrationTable.from_bytes(data)
    except EngineError:
        return
    assert table.to_bytes() == data
    assert all(math.isfinite(s) and s >= 0 for s in table.scales.values())
    if all("\r" not in name for name in table.scales):
        again = CalibrationTable.of(table.scales, table.header)
        assert dict(CalibrationTable.from_bytes(again.to_bytes()).scales) == dict(table.scales)


if __name__ == "__main__":
    import atheris

    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
