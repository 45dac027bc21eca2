"""The description of the service is what it answers, to right requests and to wrong ones."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from headrace.live import Address, LiveServer, LiveView
from headrace.live.allowed import AllowedSources, ServiceRules
from headrace.pipeline import Pipeline
from tests.media.conftest import write_clip
from tests.pipeline.fakes import FakeModel
from tests.profiles import examples

TOKEN = "of-the-test"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """A service with a token that reads sources of one folder."""
    folder = tmp_path_factory.mktemp("videos")
    write_clip(folder / "a.mp4", 5)
    view, pipeline = LiveView(), None
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADRACE_VIEW_TOKEN", TOKEN)
        pipeline = Pipeline([], FakeModel(), [view], keep_open=True)
        rules = ServiceRules(AllowedSources([str(folder)]))
        server = LiveServer(pipeline, view, Address(port=0), service=rules)
    running = threading.Thread(target=pipeline.run)
    running.start()
    yield server.address
    pipeline.stop()
    running.join(20)
    server.close()
    assert not running.is_alive()


def _described(address: Address) -> dict[str, Any]:
    link = http.client.HTTPConnection("127.0.0.1", address.port, timeout=15)
    link.request("GET", "/openapi.json", headers={"Authorization": f"Bearer {TOKEN}"})
    document: dict[str, Any] = json.loads(link.getresponse().read())
    link.close()
    return document


@pytest.mark.slow
def test_answers_are_as_described(address: Address) -> None:
    """Of each path, requests that the description allows, and ones that it does not."""
    schemathesis = pytest.importorskip("schemathesis")
    seen: set[tuple[str, int]] = set()
    # a right request may name a source or model that is not there, or a clip that nobody takes
    taken = {"positive_data_acceptance": {"expected-statuses": ["2xx", "403", "404", "422"]}}
    paths = ["/api/sources", "/api/sources/{id}/clip", "/api/models/{index}"]
    operations = [{"include-path": path, "checks": taken} for path in paths]
    config = schemathesis.Config.from_dict({"operations": operations})
    schema = schemathesis.openapi.from_dict(_described(address), config=config)
    for result in schema.get_all_operations():
        operation = result.ok()
        for mode in schemathesis.GenerationMode:
            _ask(address, operation.as_strategy(generation_mode=mode), seen)
    assert ("POST /api/settings", 200) in seen
    assert ("POST /api/sources", 403) in seen
    assert ("DELETE /api/sources/{id}", 404) in seen


def _ask(address: Address, cases: Any, seen: set[tuple[str, int]]) -> None:
    """Make requests, and hold each answer against the description."""
    headers = {"Authorization": f"Bearer {TOKEN}"}

    @settings(max_examples=examples(40), deadline=None, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(case=cases)
    def ask(case: Any) -> None:
        answer = case.call(base_url=address.url.rstrip("/"), headers=headers)
        case.validate_response(answer, headers=headers)
        seen.add((case.operation.label, answer.status_code))

    with suppress(Unsatisfiable):  # no request to a path without arguments is wrong
        ask()
