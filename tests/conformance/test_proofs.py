"""The page of docs/conformance.md: up to date, and every proof it names is one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from docs._ext.conformance import level_of, page
from docs._ext.conformance_table import APPROXIMATE, BEHAVIOURS, PROOFS, REMARKS
from headrace.config import ModelConfig
from headrace.config.keys import CLASS_KEYS, KEYS, PROPERTY_KEYS
from tests.conformance import build
from tests.conformance.cases import OWN_CASES, load_cases
from tests.conformance.test_conformance import run

ROOT = Path(__file__).parents[2]
CASES = {case.id: case for case in load_cases(OWN_CASES)}

# How cases spell what is a key: they are about a part of the product that needs no config.
SAID_AS = {
    "labelfile-path": {"labels", "file_text"},
    "num-detected-classes": {"num_detected_classes"},
    "mean-file": {"mean_pixel_bytes", "files"},
    "model-engine-file": {"candidates"},
    "nms-iou-threshold": {"nms_iou"},
    "gie-unique-id": {"unique_id", "gie_unique_id"},
    "onnx-file": {"engine_min_batch"},
}


def test_the_page_is_up_to_date() -> None:
    written = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    assert written == page(), "run: make schema"


def test_every_proof_exists() -> None:
    named = [(key, p) for key, proofs in PROOFS.items() for p in proofs]
    named += [(b.rule, p) for b in BEHAVIOURS for p in b.proofs]
    for what, proof in named:
        there = (ROOT / proof).is_file() if "/" in proof else proof in CASES
        assert there, f"{what}: no proof {proof}"


def test_every_key_that_acts_has_a_proof_and_only_known_keys_have_one() -> None:
    names = {key.name for key in KEYS}
    assert set(PROOFS) <= names
    assert set(APPROXIMATE) <= names
    assert set(REMARKS) <= names
    for key in KEYS:
        if level_of(key)[0] in ("exact", "approximate"):
            assert PROOFS.get(key.name), f"{key.name} acts, and nothing proves it"


def test_every_case_proves_something() -> None:
    """A case that the page leaves out would not be missed if it went away."""
    used = {p for proofs in PROOFS.values() for p in proofs} | {
        p for b in BEHAVIOURS for p in b.proofs
    }
    assert sorted(set(CASES) - used) == []


def test_every_key_has_exactly_one_account() -> None:
    """It acts, or it says why not, or it comes later: never two of these."""
    for key in KEYS:
        assert not (key.acts and key.reason), key.name
    assert {level_of(key)[0] for key in KEYS} <= {
        "exact",
        "approximate",
        "not applicable",
        "not yet",
    }


PAIRS = [(k, p) for k, proofs in PROOFS.items() for p in proofs if "/" not in p]


@pytest.mark.parametrize(("key", "case_id"), PAIRS, ids=[f"{k}-{p}" for k, p in PAIRS])
def test_the_case_sets_the_key(key: str, case_id: str) -> None:
    """Some config that the case makes has the key, or what it gives says the same."""
    said = set(_names(CASES[case_id].given))
    spelled = {key, key.replace("-", "_"), *SAID_AS.get(key, ())}
    assert spelled & said or any(_sets(cfg, key) for cfg in _made_by(case_id)), (
        f"{case_id} says nothing of {key}"
    )


@cache
def _made_by(case_id: str) -> list[ModelConfig]:
    """Run a case and keep the configs that it makes."""
    made: list[ModelConfig] = []
    plain = build.config

    def recorded(*args: Any, **kwargs: Any) -> ModelConfig:
        cfg = plain(*args, **kwargs)
        made.append(cfg)
        return cfg

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "config", recorded)
        run(CASES[case_id])
    return made


def _sets(cfg: ModelConfig, key: str) -> bool:
    if key in PROPERTY_KEYS:
        return cfg.origin(key).kind != "default"
    assert key in CLASS_KEYS
    return any(cfg.origin(key, class_id=n).kind != "default" for n in range(len(cfg.per_class)))


def _names(given: Any) -> Iterator[str]:
    """Every key at any depth."""
    if isinstance(given, dict):
        for name, value in given.items():
            yield name
            yield from _names(value)
    elif isinstance(given, list):
        for value in given:
            yield from _names(value)


def test_files_of_tests_speak_of_their_key() -> None:
    """One of the files that prove a key names it."""
    for key, proofs in PROOFS.items():
        texts = [(ROOT / p).read_text(encoding="utf-8") for p in proofs if "/" in p]
        said = [key in text or key.replace("-", "_") in text for text in texts]
        assert not said or any(said), f"none of {proofs} names {key}"
