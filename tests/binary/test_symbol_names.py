"""What is suggested for a function that is not there: what was probably meant comes first."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.binary.symbol_names import missing_name_hints, near_functions
from headrace.config import ModelConfig
from headrace.custom import open_library
from headrace.errors import CustomLibraryError, ParserError
from headrace.infer.model.library_source import library_source
from headrace.infer.parser_choice import choose_parser
from headrace.infer.parser_fit import require_grid_outputs
from headrace.network.tensor_spec import TensorSpec
from tests.custom.conftest import Compile

PARSERS = {
    "NvDsInferParseCustomYolo": "bbox_parser",
    "NvDsInferParseCustomYoloMask": "instance_parser",
    "NvDsInferParseCustomYoloClassifier": "classifier_parser",
    "NvDsInferParseCustomYoloSemSeg": "segmentation_parser",
}


def hints(path: Path, parser: str, name: str) -> list[str]:
    with pytest.raises(CustomLibraryError, match="no function") as caught:
        getattr(open_library(path), parser)(name)
    return caught.value.finding.remedies


@pytest.mark.parametrize("name", PARSERS)
def test_a_near_miss_is_suggested_first(compile_parser: Compile, name: str) -> None:
    own = name.removeprefix("NvDsInferParseCustom")
    wrong = [name[:-1], name.lower(), own, f"Custom{own}", f"NvDsInferParse{own}", f"Nv{name}"]
    wrong += [name.replace("Infer", "Infre"), name.replace("Yolo", "Yoloo"), own.lower()]
    for typed in wrong:
        meant, *_, there = hints(compile_parser("named.cpp"), PARSERS[name], typed)
        assert meant.startswith(f"did you mean {name}"), typed
        assert there.startswith(f"its exported parser-like functions: {name}, "), typed


def test_other_kinds_come_after_and_are_told(compile_parser: Compile) -> None:
    library = compile_parser("named.cpp")
    meant, other, there = hints(library, "bbox_parser", "NvDsInferParseCustomYoloMsk")
    assert meant == "did you mean NvDsInferParseCustomYolo?"
    assert other == (
        "NvDsInferParseCustomYoloMask, by its name for parse-bbox-instance-mask-func-name"
    )
    assert there.endswith(", NvDsInferParseCustomYolo_cuda")
    meant, other, there = hints(library, "bbox_parser", "NvDsInferParseCustomYolo_cud")
    assert meant.startswith("did you mean NvDsInferParseCustomYolo")
    assert other == "NvDsInferParseCustomYolo_cuda, for GPU memory by its name"
    (there,) = hints(library, "bbox_parser", "NvDsInferParseCustomResnet")
    assert "did you mean" not in there


def test_without_a_name_the_parsers_of_the_library_are_told(
    compile_parser: Compile, tmp_path: Path
) -> None:
    path = tmp_path / "c.txt"
    keys = "num-detected-classes=2\ninfer-dims=3;4;4\n"
    outputs = [TensorSpec("out", np.dtype(np.float32), ("n", 5))]
    library = compile_parser("named.cpp")
    path.write_text(f"[property]\ncustom-lib-path={library}\n{keys}")
    with pytest.raises(ParserError, match="no parse-bbox-func-name is set") as caught:
        require_grid_outputs(ModelConfig.load(path), outputs)
    assert caught.value.finding.remedies[0] == (
        f"{library.name} has NvDsInferParseAbcBoxes, NvDsInferParseCustomYolo, "
        "NvDsInferParseCustomYoloTiny"
    )
    path.write_text(f"[property]\n{keys}")
    with pytest.raises(ParserError) as caught:
        require_grid_outputs(ModelConfig.load(path), outputs)
    assert not any(" has " in hint for hint in caught.value.finding.remedies)


def test_engine_creators(compile_parser: Compile, tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_text(
        f"[property]\ncustom-lib-path={compile_parser('named.cpp')}\n"
        "engine-create-func-name=NvDsInferParseYoloCudaEngineGet\nnum-detected-classes=2\n"
        "infer-dims=3;4;4\n"
    )
    with pytest.raises(CustomLibraryError, match="no function") as caught:
        library_source(ModelConfig.load(path), [])
    assert caught.value.where == f"{path}:3: {compile_parser('named.cpp')}"
    meant, there = caught.value.finding.remedies
    assert meant == "did you mean NvDsInferYoloCudaEngineGet?"
    assert there.startswith("its exported functions: NvDsInferYoloCudaEngineGet, ")


def test_functions_of_a_library_come_before_built_in_parsers(
    compile_parser: Compile, tmp_path: Path
) -> None:
    def told(library: Path, name: str) -> list[str]:
        path = tmp_path / "c.txt"
        path.write_text(
            f"[property]\nonnx-file=m.onnx\ncustom-lib-path={library}\nnum-detected-classes=2\n"
            f"parse-bbox-func-name={name}\ncluster-mode=2\n"
        )
        with pytest.raises(CustomLibraryError) as caught:
            choose_parser(ModelConfig.load(path))
        return caught.value.finding.remedies

    broken, loaded = compile_parser("named.cpp", "-DBROKEN"), compile_parser("named.cpp")
    fix = told(broken, "NvDsInferParseCustomYol")
    mine = next(i for i, h in enumerate(fix) if "did you mean NvDsInferParseCustomYolo?" in h)
    headrace = next(i for i, h in enumerate(fix) if "headrace has no built-in parser" in h)
    assert mine < headrace
    assert any("has no function 'NvDsInferParseCustomYol' either" in h for h in fix)
    # the name is right: no other is suggested
    assert not any("did you mean" in h for h in told(broken, "NvDsInferParseAbcBoxes"))
    assert not any("headrace" in h for h in told(loaded, "NvDsInferParseCustomYol"))
    assert told(loaded, "NvDsInferParseCustomResnet")[-1] == (
        "without custom-lib-path, headrace's built-in parser NvDsInferParseCustomResnet decodes "
        "the "
        "outputs"
    )
    assert "did you mean NvDsInferParseCustomResnet?" in told(loaded, "ParseCustomResnett")[-1]


def test_annotated_python_functions(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from headrace.meta import Classification, Detections\n"
        "def colours(layers, network, params) -> Classification: ...\n"
        "def faces(layers, network, params) -> Detections: ...\n"
        "def colors(layers, network, params): ...\n"
    )
    library = open_library(path)
    for parser, meant in (("bbox_parser", "colors"), ("classifier_parser", "colours or colors")):
        with pytest.raises(CustomLibraryError) as caught:
            getattr(library, parser)("colouurs")
        assert caught.value.finding.remedies[0] == f"did you mean {meant}?"
    with pytest.raises(CustomLibraryError) as caught:
        library.bbox_parser("colouurs")
    assert caught.value.finding.remedies[1] == "colours, which returns Classification"


LETTERS = st.sampled_from("abcdefghijklmnopqrstuvwxyz")
NAMES = st.lists(st.text(LETTERS, min_size=6, max_size=12), min_size=1, max_size=8, unique=True)


@given(names=NAMES, data=st.data())
def test_case_and_prefix_never_hide_a_name(names: list[str], data: st.DataObject) -> None:
    there = [f"NvDsInferParse{n.title()}" for n in names]
    meant = data.draw(st.sampled_from(there))
    prefix = data.draw(st.sampled_from(["", "NvDs", "NvDsInferParse", "NvDsInferParseCustom"]))
    typed = prefix + meant.removeprefix("NvDsInferParse")
    typed = data.draw(st.sampled_from([typed, typed.lower(), typed.upper()]))
    near = near_functions(typed, there)
    assert near[meant] == 1
    # names that begin like a prefix may be as near: `Parsed` beside `ParseParsed`
    assert meant in missing_name_hints(typed, there, kind="functions").hints[0]


@pytest.mark.parametrize("typed", ["Parsed", "PARSED", "NvDsParsed", "NvDsInferParseCustomParsed"])
def test_a_name_may_begin_like_a_prefix(typed: str) -> None:
    hints = missing_name_hints(
        typed, ["NvDsInferParseParsed", "NvDsInferBoxes"], kind="functions"
    ).hints
    assert hints[0] == "did you mean NvDsInferParseParsed?"


def test_nothing_there() -> None:
    assert missing_name_hints("a", [], kind="functions").hints == ["it has no functions at all"]


@pytest.mark.parametrize("name", ["ParseYoloX", "a" * 5000])
def test_hostile_names_take_no_time_and_no_room(name: str) -> None:
    names = [f"NvDsInferParseCustom{i:05d}" for i in range(20_000)]
    names += ["NvDsInferParse_Yolo_X", "ab" * 500_000, *(f"{i}" * 400 for i in range(1000, 2000))]
    start = time.monotonic()
    hints = missing_name_hints(name, names, kind="functions").hints
    assert time.monotonic() - start < 5
    assert max(map(len, hints)) < 10_000
    assert len(name) > 100 or "did you mean NvDsInferParse_Yolo_X?" in hints
