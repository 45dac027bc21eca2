"""Which sources are inferred where they take turns and whole buffers are skipped.

Sources in a row give a frame each: a buffer of B begins where the last one ended. With every k-th
inferred, inferred buffers of S sources begin at the multiples of gcd(k B, S), and hold all sources
where that is at most B. Buffers of live sources may end with the row, S/B of them rounded up in a
round: then every k-th meets all of them where k has no divisor in common with their number.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from headrace._core.findings import Finding


def never_inferred(
    sources: int, batch_size: int | None, intervals: Iterable[int], *, live: bool
) -> list[Finding]:
    """A warning if `interval` skips some of the sources for ever, else nothing.

    Args:
        sources: how many there are.
        batch_size: frames of a buffer at most; None is one of each source.
        intervals: of the primary models.
        live: whether frames come in real time: a buffer may then be cut before the next round.
    """
    if batch_size is None or batch_size >= sources:
        return []
    rounds = -(-sources // batch_size)
    for interval in intervals:
        every = interval + 1
        starved = gcd(every * batch_size, sources) > batch_size
        if starved or (live and gcd(every, rounds) > 1):
            data = {"sources": sources, "batch_size": batch_size, "interval": interval}
            text = (
                "{sources} sources take turns in batches of {batch_size}, and interval={interval} "
                "skips whole batches: some of the sources are never inferred"
            )
            fix = f"write batch-size={sources} into [streammux] or the pipeline file"
            return [
                Finding(
                    "sources-skipped",
                    "warning",
                    text,
                    None,
                    data,
                    None,
                    (fix, "or leave interval out"),
                )
            ]
    return []
