"""Which variables of the environment a worker gets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace
from headrace.custom.guard import GuardOptions, keeper
from headrace.custom.guard.environment import (
    checked_rules,
    is_credential,
    keeper_environment,
    passed,
)
from headrace.errors import ConfigError
from headrace.infer.parser_choice import custom_library
from headrace.meta import DetectionParams, Layer, NetworkInfo
from tests.profiles import examples

NAMES = st.from_regex(r"[A-Z][A-Z0-9_]{0,12}", fullmatch=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("AWS_ACCESS_KEY_ID", "x"),
        ("GH_TOKEN", "x"),
        ("github_token", "x"),
        ("OPENAI_API_KEY", "x"),
        ("DB_PASSWORD", "x"),
        ("PGPASSWORD", "x"),
        ("MYSQL_PWD", "x"),
        ("REDISCLI_AUTH", "x"),
        ("SSH_AUTH_SOCK", "/tmp/agent"),
        ("SENTRY_DSN", "x"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/key.json"),
        ("AZURE_STORAGE_CONNECTION_STRING", "x"),
        ("SESSION_COOKIE", "x"),
        ("BROKER", "amqp://user:secret@host/"),
        ("PROXY", "http://:secret@host:3128"),
        ("CERTIFICATE", "-----BEGIN PRIVATE KEY-----"),
        ("ID", "AKIAIOSFODNN7EXAMPLE"),
        ("A", "ghp_0123456789abcdefghijABCDEFGHIJ012345"),
        ("B", "glpat-xyz"),
        ("C", "xoxb-1-2"),
        ("D", "eyJhbGciOi.eyJzdWIiOi.abc"),
        ("E", "Server=a;Password=b"),
        ("F", "Bearer abc"),
    ],
)
def test_credentials_stay_with_the_application(name: str, value: str) -> None:
    assert is_credential(name, value)
    assert passed({name: value, "LANG": "C"}) == ({"LANG": "C"}, [name])
    assert passed({name: value}, [name]) == ({name: value}, [])
    assert keeper_environment({f"HEADRACE_{name}": value}) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "/usr/bin:/bin"),
        ("TIKTOKEN_CACHE_DIR", "/cache"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("PWD", "/home/author"),
        ("LD_LIBRARY_PATH", "/usr/local/cuda/lib64"),
        ("OMP_NUM_THREADS", "4"),
        ("KMP_AFFINITY", "none"),
        ("CUDA_VISIBLE_DEVICES", "0"),
        ("AUTHOR", "someone"),
        ("KEYBOARD", "us"),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_CA_BUNDLE", "/etc/ssl/ca.pem"),
        ("MODEL_URL", "https://host/model.onnx"),
        ("EMAIL", "a@b.c"),
        ("TZ", "UTC"),
    ],
)
def test_what_a_library_needs_is_passed(name: str, value: str) -> None:
    assert passed({name: value}) == ({name: value}, [])
    assert passed({name: value}, ["-*"]) == ({}, [name])
    assert passed({name: value}, ["-*", name]) == ({name: value}, []), "the last one decides"


@settings(max_examples=examples(100))
@given(
    environment=st.dictionaries(NAMES, st.text(max_size=20)),
    rules=st.lists(NAMES | NAMES.map(lambda name: f"-{name}") | st.sampled_from(["*", "-*", "A?"])),
)
def test_every_variable_is_passed_or_named(environment: dict[str, str], rules: list[str]) -> None:
    kept, held = passed(environment, checked_rules(rules))
    assert kept.items() <= environment.items()
    assert sorted([*kept, *held]) == sorted(environment)


@pytest.mark.parametrize("rule", ["", "-", "A=1", "A B", "--A", "9", "A-B"])
def test_a_rule_that_names_nothing_is_refused(rule: str) -> None:
    with pytest.raises(ConfigError, match="is no variable of the environment"):
        checked_rules([rule])


@pytest.mark.skipif(keeper.can_guard() is not None, reason="no workers here")
def test_a_worker_gets_what_the_config_says(
    tmp_path: Path, mean_config: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["A_TOKEN", "B_TOKEN", "PLAIN", "DEBUG_ALL"]
    for name in names:
        monkeypatch.setenv(name, "x")
    (tmp_path / "parser.py").write_text(
        "import os\nfrom headrace import Detections\n"
        "def parse(layers, network, params):\n"
        f"    has = [name in os.environ for name in {names}]\n"
        "    return Detections([[*map(float, has)]], [1], [0])\n"
    )
    path = mean_config(
        custom_lib_path=tmp_path / "parser.py",
        parse_bbox_func_name="parse",
        custom_lib_guard="always",
        custom_lib_guard_env="A_*;-DEBUG_*",
    )
    cfg = headrace.ModelConfig.load(path)
    assert GuardOptions.of(cfg).environment == ("A_*", "-DEBUG_*")
    library = custom_library(cfg, tmp_path / "parser.py")
    params = DetectionParams(1, np.zeros(1, np.float32))
    layers = {"a": Layer("a", np.zeros(1, np.float32))}
    box = library.bbox_parser("parse")(layers, NetworkInfo(8, 8, 3), params).boxes[0]
    assert box.tolist() == [1, 0, 1, 0]
    (notice,) = [n for n in library.decisions if n.code == "guard-env"]
    assert {"B_TOKEN", "DEBUG_ALL"} <= set(notice.data["names"])
    library.close()  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match=r"config.*custom-lib-guard-env|is no variable"):
        GuardOptions.of(headrace.ModelConfig.load(mean_config(custom_lib_guard_env="A=1")))
