"""The options of a run: one declaration for commands, functions and pages."""

from __future__ import annotations

import inspect
import runpy
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import click
import pytest

import headrace
from headrace._core.errors import ConfigError
from headrace.cli import _COMMANDS, main
from headrace.config.enums import Generation
from headrace.config.profile import Profile
from headrace.custom.guard import GuardMode
from headrace.infer.run_options import KEY_OPTIONS, Abi, Palette, RunOptions, declared, option_name
from tests.conftest import write_mean_model

PAGES = Path(__file__).parents[2] / "docs" / "cli"
OWN = {("eval", "limit"), ("record", "limit")}  # options of that name with another meaning
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "open_pipeline": headrace.open_pipeline,
    "from_config": headrace.Inferencer.from_config,
    "batch": headrace.batch,
    "evaluate": headrace.evaluate,
    "compare": headrace.compare,
}
COMMANDS = sorted({c for o in (*declared().values(), *KEY_OPTIONS.values()) for c in o.commands})


def test_the_declarations_name_what_is_there() -> None:
    named = {f for option in declared().values() for f in option.functions}
    assert named == set(FUNCTIONS)
    assert set(COMMANDS) <= set(_COMMANDS)
    kinds = {"abi": Abi, "guard": GuardMode, "profile": Profile, "generation": Generation}
    kinds["palette"] = Palette
    choices = {name: o.choices for name, o in declared().items() if o.choices}
    assert choices.keys() == kinds.keys()
    for name, kind in kinds.items():
        assert set(choices[name]) == set(get_args(kind)), name


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_has_the_arguments_of_the_fields_and_documents_them(function: str) -> None:
    call = FUNCTIONS[function]
    parameters = inspect.signature(call).parameters
    assert call.__doc__ is not None
    for field in fields(RunOptions):
        if function not in field.metadata["option"].functions:
            continue
        parameter = parameters[field.name]
        assert parameter.annotation == field.type
        assert parameter.kind is parameter.KEYWORD_ONLY
        expected = 1 if (function, field.name) == ("from_config", "streams") else field.default
        assert parameter.default == expected
        text = f" {field.name}: {field.metadata['option'].text} "
        assert text in " ".join(call.__doc__.split()) + " "


def test_the_sources_have_what_the_script_writes() -> None:
    script = runpy.run_path(str(PAGES.parents[1] / "scripts" / "run_options.py"))
    for function, (name, _) in script["FUNCTIONS"].items():
        text = (Path(headrace.__file__).parent / name).read_text()
        assert script["rewritten"](text, function) == text, "run `make stubs`"
        stale = text.replace("threads: int | None = None", "threads: int = 1", 1)
        assert stale != text
        assert script["rewritten"](stale, function) == text


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_the_options_and_its_page_names_them(command: str) -> None:
    found = main.get_command(click.Context(main), command)
    assert found is not None
    flags = {flag for parameter in found.params for flag in parameter.opts}
    page = (PAGES / f"{command}.md").read_text()
    names = {option_name(name): o for name, o in declared().items()}
    names |= {"--set": KEY_OPTIONS["keys"]}
    names |= {f"--{name}": KEY_OPTIONS[name] for name in ("conf", "labels")}
    for flag, option in names.items():
        if command in option.commands:
            assert flag in flags
            assert flag in page
        elif (command, flag.removeprefix("--")) not in OWN and command not in ("replay", "compile"):
            assert flag not in flags


def test_a_misspelt_argument_is_hinted_at(tmp_path: Path) -> None:
    for name, meant in {"thread": "threads", "sorces": "sources", "palete": "palette"}.items():
        with pytest.raises(ConfigError, match="neither an argument nor a key") as caught:
            headrace.open_pipeline("config.txt", sources="a.mp4", **{name: 1})
        assert caught.value.finding.remedies == (f"did you mean {meant}?",)
    with pytest.raises(TypeError, match=r"evaluate\(\) got an unexpected keyword argument 'topk'"):
        headrace.evaluate("config.txt", tmp_path, topk=3)
    with pytest.raises(TypeError, match=r"compare\(\) got an unexpected keyword argument 'limit'"):
        headrace.compare("a.txt", "b.txt", "a.mp4", limit=3)


def test_those_that_stand_for_keys_are_set_over_every_config(
    mean_config: Callable[..., Path],
) -> None:
    cfg = headrace.ModelConfig.load(mean_config())
    options = RunOptions(profile="modern", abi="24", guard="never", guard_env="HF_*,-DEBUG")
    changed = options.over(cfg)
    assert changed.custom_lib_guard_env == ("HF_*", "-DEBUG")
    assert (changed.profile, changed.custom_lib_abi) == ("modern", "24")
    assert changed.custom_lib_guard == "never"
    assert str(changed.origin("custom_lib_abi")) == "--abi"
    assert RunOptions().over(cfg) is cfg


def test_evaluate_keeps_its_own_limit() -> None:
    given = RunOptions(limit=3, threads=2).arguments(headrace.evaluate)
    assert given["threads"] == 2
    assert "limit" not in given


def test_streams_of_a_model_are_those_asked_for(tmp_path: Path, mean_config: Any) -> None:
    write_mean_model(tmp_path / "mean.onnx")
    path = mean_config()
    with headrace.Inferencer.from_config(path) as one:
        assert one.streams == 1
    with headrace.Inferencer.from_config(path, streams=2, threads=2) as two:
        assert (two.streams, two.session.options.threads) == (2, 1)
