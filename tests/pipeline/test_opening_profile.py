"""Profiles: where they are chosen, and who names them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import headrace
from headrace.config import ModelConfig
from headrace.errors import ConfigError
from tests.inside import headrace as headrace_command

Config = Callable[..., Path]


@pytest.mark.parametrize("written", [None, "nvinfer", "modern"])
@pytest.mark.parametrize("asked", [None, "nvinfer", "modern"])
def test_the_program_wins_over_the_file(
    mean_config: Config, photos: Path, written: str | None, asked: str | None
) -> None:
    config = mean_config(**({"profile": written} if written else {}))
    pipeline = headrace.open_pipeline(config, sources=photos, profile=asked)  # type: ignore[arg-type]
    report = pipeline.run()
    wanted = asked or written or "nvinfer"
    assert report.profile == report.models[0].profile == wanted
    assert report.to_dict()["models"][0]["profile"] == wanted
    assert f"profile {wanted}" in repr(report)


def test_the_command_says_by_which_rules_it_ran(mean_config: Config, photos: Path) -> None:
    inputs = [str(mean_config(profile="modern")), str(photos)]
    ran = headrace_command("run", *inputs)
    assert "fps, profile modern: rules of training)" in ran.stdout, ran.stderr
    ran = headrace_command("run", *inputs, "--profile", "nvinfer")
    assert "fps, profile nvinfer: rules of the original)" in ran.stdout, ran.stderr


def test_other_profiles_are_refused(mean_config: Config) -> None:
    with pytest.raises(ConfigError, match=r"profile=fast.*\n?.*one of nvinfer, modern"):
        ModelConfig.load(mean_config(profile="fast"))
