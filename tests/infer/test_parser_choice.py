"""Which parser a config of each network type gets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.config import ModelConfig
from headrace.errors import ConfigError, CustomLibraryError
from headrace.infer.parser_choice import (
    Choice,
    choose_parser,
)
from headrace.infer.parsers import (
    WELL_KNOWN,
    WELL_KNOWN_CLASSIFIERS,
    WELL_KNOWN_INSTANCES,
    WELL_KNOWN_SEGMENTATIONS,
)
from headrace.infer.parsers.class_maps import Segmenter

PARSER = """
def my_parser(layers, network, params):
    return None
"""
KINDS = {
    "bbox": (0, "parse-bbox-func-name", WELL_KNOWN),
    "classifier": (
        1,
        "parse-classifier-func-name",
        WELL_KNOWN_CLASSIFIERS,
    ),
    "segmentation": (
        2,
        "parse-segmentation-func-name",
        WELL_KNOWN_SEGMENTATIONS,
    ),
    "instance": (
        3,
        "parse-bbox-instance-mask-func-name",
        WELL_KNOWN_INSTANCES,
    ),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., ModelConfig]:
    def load(kind: str, name: str | None = None, library: str | None = None) -> ModelConfig:
        number, key, _ = KINDS[kind]
        lines = ["[property]", "onnx-file=m.onnx", f"network-type={number}", "cluster-mode=4"]
        lines += ["num-detected-classes=2"]
        lines += [f"{key}={name}"] * bool(name) + [f"custom-lib-path={library}"] * bool(library)
        (tmp_path / "my.py").write_text(PARSER)
        path = tmp_path / "config.txt"
        path.write_text("\n".join(lines) + "\n")
        return ModelConfig.load(path)

    return load


def choose(cfg: ModelConfig) -> Choice:
    choice = choose_parser(cfg)
    assert choice is not None
    return choice


def first_known(kind: str) -> str:
    return sorted(KINDS[kind][2])[0]  # type: ignore[call-overload, no-any-return]


Load = Callable[..., ModelConfig]


def test_a_function_of_the_library_comes_first(load: Load, kind: str) -> None:
    choice = choose(load(kind, "my_parser", "my.py"))
    assert choice.source == "my_parser in my.py"
    assert choice.library is not None
    assert choice.notices == []
    assert choice.parser.where.endswith("my.py: my_parser")


def test_a_name_that_the_library_lacks_is_an_error_with_near_names(load: Load, kind: str) -> None:
    cfg = load(kind, "my_parsr", "my.py")
    with pytest.raises(CustomLibraryError, match="did you mean my_parser") as caught:
        choose(cfg)
    origin = cfg.origin(KINDS[kind][1])
    assert origin.line
    assert caught.value.where == f"{origin}: {cfg.custom_lib_path}"


@pytest.mark.parametrize("library", ["absent.so", "text.so"])
def test_a_library_that_cannot_be_loaded(
    load: Load, kind: str, library: str, tmp_path: Path
) -> None:
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises((ConfigError, CustomLibraryError), match="no built-in parser MyOwn"):
        choose(load(kind, "MyOwn", library))
    name = first_known(kind)
    choice = choose(load(kind, name, library))
    assert choice.source == f"built-in {name}"
    assert choice.parser is KINDS[kind][2][name]  # type: ignore[index]
    assert [n.level for n in choice.notices] == ["warning"]


def test_a_missing_python_file_is_never_replaced(load: Load, kind: str) -> None:
    with pytest.raises(ConfigError, match=r"absent\.py"):
        choose(load(kind, first_known(kind), "absent.py"))


def test_a_well_known_name_needs_no_library(load: Load, kind: str) -> None:
    name = first_known(kind)
    cfg = load(kind, name)
    choice = choose(cfg)
    assert choice.source == f"built-in {name}"
    assert [n.level for n in choice.notices] == ["info"]
    assert not any(
        "custom-lib-path" in n.sentence for n in cfg.notices
    )  # one owner of what is said


BUILT_IN = {
    "bbox": "coverage/bbox grid",
    "classifier": "classifier",
    "segmentation": "segmentation",
}


@pytest.mark.parametrize("kind", BUILT_IN)
def test_without_a_name_the_built_in_parser_is_used(load: Load, kind: str) -> None:
    choice = choose(load(kind))
    assert choice.source == f"built-in {BUILT_IN[kind]}"
    assert not [n for n in choice.notices if "labelfile-path" not in n.sentence]
    assert (choice.parser is None) == (kind == "classifier")
    assert choose(load(kind, None, "my.py")).source == choice.source


@pytest.mark.parametrize("kind", BUILT_IN)
def test_an_unknown_name_without_library_has_no_effect_and_is_said(load: Load, kind: str) -> None:
    cfg = load(kind, "MyOwn")
    choice = choose(cfg)
    assert choice.source == f"built-in {BUILT_IN[kind]}"
    notice, *others = choice.notices
    assert not [n for n in others if "labelfile-path" not in n.sentence]
    assert notice.level == "warning"
    assert f"{KINDS[kind][1]}=MyOwn has no effect without custom-lib-path" in notice.sentence
    assert str(notice).startswith(f"{cfg.path}:6")
    assert not any("custom-lib-path" in n.sentence for n in cfg.notices)


def test_a_built_in_classifier_without_labels_is_a_warning(load: Load, tmp_path: Path) -> None:
    """It attaches what has a text, and without labels there is none."""
    (notice,) = choose(load("classifier")).notices
    assert (notice.level, "labelfile-path is not given" in notice.sentence) == ("warning", True)
    (tmp_path / "l.txt").write_text("cat;dog\n")
    for keys in ({"labelfile_path": tmp_path / "l.txt"}, {"output_tensor_meta": True}):
        assert choose(load("classifier").with_overrides(**keys)).notices == []


def test_instance_segmentation_refuses_to_go_without(load: Load) -> None:
    with pytest.raises(ConfigError, match="network-type=3 without parse-bbox-instance-mask"):
        choose_parser(load("instance"))
    with pytest.raises(ConfigError, match="MyOwn has no effect without custom-lib-path") as caught:
        choose_parser(load("instance", "MyOwn"))
    assert first_known("instance") in str(caught.value)
    with pytest.raises(ConfigError, match="did you mean NvDsInferParseYoloSeg"):
        choose_parser(load("instance", "NvDsInferParseYoloSeq"))


def test_the_generation_of_segmentation(load: Load) -> None:
    choice = choose_parser(load("segmentation"), generation="6.2")
    assert isinstance(choice.parser, Segmenter)
    assert choice.parser.generation == "6.2"


def test_the_warning_of_a_stand_in_says_how_to_have_the_library(tmp_path: Path) -> None:
    (tmp_path / "lib.so").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    text = "[property]\nnetwork-type=0\ncustom-lib-path=lib.so\n"
    (tmp_path / "c.txt").write_text(f"{text}parse-bbox-func-name=NvDsInferParseYolo\n")
    choice = choose_parser(ModelConfig.load(tmp_path / "c.txt"))
    assert choice.parser is WELL_KNOWN["NvDsInferParseYolo"]
    assert "\n  fetch it: git lfs pull" in str(choice.notices[0])


def test_a_parser_of_another_kind_is_named_with_its_keys(tmp_path: Path) -> None:
    keys = "network-type=3\nparse-bbox-instance-mask-func-name=HeadraceParseYoloV8Pose\n"
    config = tmp_path / "c.txt"
    config.write_text(f"[property]\nonnx-file=m.onnx\n{keys}")
    with pytest.raises(ConfigError) as caught:
        choose_parser(ModelConfig.load(config))
    named = "network-type=0 with parse-bbox-func-name=HeadraceParseYoloV8Pose"
    assert named in str(caught.value)
