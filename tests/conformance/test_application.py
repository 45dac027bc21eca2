"""deepstream-app configs as the original reads them: a case a behaviour, each with its source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.config import PipelineSpec, load_pipeline
from headrace.errors import ConfigError
from headrace.pipeline.analytics import load_rules

CASES = json.loads(Path(__file__).with_name("app_cases.json").read_text())["cases"]


def fields(part: object, names: dict[str, Any]) -> dict[str, Any]:
    return {name: getattr(part, name) for name in names}


def outcome(spec: PipelineSpec, expect: dict[str, Any]) -> dict[str, Any]:
    """What is there, by the names that a case expects."""
    codes = {notice.code for notice in spec.notices}
    known: dict[str, Any] = {
        "sinks": [[Path(str(s.path)).name, s.source] for s in spec.sinks],
        "kinds": [sink.kind for sink in spec.sinks],
        "uris": [sink.uri for sink in spec.sinks],
        "sources": [source.uri for source in spec.sources],
        "protocols": [source.rtp_protocol for source in spec.sources],
        "tiler": spec.tiler,
        "frame_size": None if spec.frame_size is None else list(spec.frame_size),
        "frame_padding": spec.frame_padding,
        "batch_size": spec.batch_size,
        "batch_sizes": [model.batch_size for model in spec.models],
        "codes": [code for code in expect.get("codes", ()) if code in codes],
        "absent": [code for code in expect.get("absent", ()) if code not in codes],
        "osd": fields(spec.osd, expect.get("osd", {})),
    }
    if "model" in expect:
        known["model"] = fields(spec.models[0], expect["model"])
    return {name: known[name] for name in expect}


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_case(tmp_path: Path, case: dict[str, Any]) -> None:
    assert case["source"]
    expect = case["expect"]
    if "rules" in case:
        path = tmp_path / "rules.txt"
        path.write_text(case["rules"])
        (line,) = load_rules(path).sources[0].lines
        assert fields(line, expect["line"]) == expect["line"]
        return
    path = tmp_path / f"app.{case.get('form', 'txt')}"
    path.write_text(case["given"])
    (tmp_path / "sources.csv").write_text(case.get("csv", ""))
    if "refused" in expect:
        with pytest.raises(ConfigError) as caught:
            load_pipeline(path)
        assert caught.value.finding.code == expect["refused"]
        return
    assert outcome(load_pipeline(path), expect) == expect
