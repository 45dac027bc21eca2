"""`python -m benchmarks.gpu [PART …]`."""

from __future__ import annotations

import sys

from benchmarks.gpu import report

if __name__ == "__main__":  # processes that decode import this file, too
    report(sys.argv[1:])
