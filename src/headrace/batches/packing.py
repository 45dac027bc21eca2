"""Small tables: those that wait to be packed, and the check of files against the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

from headrace.batches.ledger import Ledger
from headrace.batches.tables import TABLES, is_arrow
from headrace.batches.units import BatchUnit

WAITING = "waiting"
"""The folder of tables that wait."""

_SMALL_BYTES = 64 << 10  # of the tables of a whole input


def waiting_place(kind: str, unit: str) -> str:
    """Where a table of a unit waits, below the folder of the batch."""
    return f"{WAITING}/{TABLES[kind]}/{unit[0]}/{unit}.table"


def is_small(unit: BatchUnit, tables: Sequence[Path]) -> bool:
    """Whether the tables of a unit are packed with others: those of whole inputs that are short.

    Raises:
        OSError: one cannot be read.
    """
    if unit.span is not None or not tables:  # a span may turn out void: packed, it could not go
        return False
    return any(map(is_arrow, tables)) or sum(t.stat().st_size for t in tables) <= _SMALL_BYTES


@dataclass(slots=True)
class TablesThatCount:
    """Tables that ledger and files agree about, and those that are missing.

    Attributes:
        final: ids of units and packs whose tables readers see.
        waiting: ids of units whose tables wait.
        gone: ids of units that are done by the ledger, and whose tables are not there.
    """

    final: set[bytes] = field(default_factory=set)
    waiting: set[bytes] = field(default_factory=set)
    gone: list[bytes] = field(default_factory=list)


def agreement(
    ledger: Ledger,
    final: Mapping[str, AbstractSet[bytes]],
    waiting: Mapping[str, AbstractSet[bytes]],
) -> TablesThatCount:
    """Hold the files that are there against the ledger.

    A unit needs a table of each kind. A pack counts as long as every unit of it does: one that is
    lost, or has run again, takes the others with it, since its rows cannot be taken out.

    Args:
        ledger: what is done.
        final, waiting: kind -> ids in the names of the files.
    """
    agreed = TablesThatCount()
    packs = {
        pack
        for pack, units in ledger.packs.items()
        if all(pack in ids for ids in final.values())
        and all(ledger.pack_of.get(unit) == pack for unit in units)
        and all(ledger.outcomes.get(unit) == "done" for unit in units)
    }
    agreed.final |= packs
    for key, outcome in ledger.outcomes.items():
        if outcome != "done":
            continue
        if key in ledger.pack_of:
            if ledger.pack_of[key] not in packs:
                agreed.gone.append(key)
        elif all(key in ids for ids in final.values()):
            agreed.final.add(key)
        elif all(key in ids for ids in waiting.values()):
            agreed.waiting.add(key)
        else:
            agreed.gone.append(key)
    return agreed
