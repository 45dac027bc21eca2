"""dump() and load() undo each other; effective() tells every value and where it came from."""

from __future__ import annotations

import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.config import ClassAttrs, ModelConfig
from headrace.config.key import Key
from headrace.config.keys import CLASS_KEYS, PROPERTY_KEYS
from headrace.config.values import INT_MAX, INT_MIN, Kind
from headrace.errors import ConfigError
from tests.config.conftest import Load
from tests.profiles import examples

FORMS: list[Literal["ini", "yaml"]] = ["ini", "yaml"]
TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=[chr(n) for n in range(32)])
    | st.sampled_from(" \t\n\r\\\"'#;"),
    max_size=12,
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=32)


def values_of(key: Key) -> st.SearchStrategy[Any]:
    """Every value that a key may have."""
    if key.enum is not None:
        return st.sampled_from(list(key.enum))
    if key.choices:
        return st.sampled_from(key.choices)
    low = INT_MIN if key.low is None else int(key.low)
    high = INT_MAX if key.high is None else int(key.high)
    if key.name == "num-detected-classes":
        high = 50
    integers = st.integers(low, high)
    numbers = st.floats(key.low, key.high or 2.0**127, width=32) if key.low is not None else FLOATS
    items = {"max_size": 4} if not key.counts else {"min_size": min(key.counts)}
    if key.counts:
        items["max_size"] = min(max(key.counts), 8)
    counted = [n for n in key.counts if n <= 8] or range(5)
    return {
        Kind.INT: integers,
        Kind.FLAG: st.booleans(),
        Kind.INT_FLAG: st.booleans(),
        Kind.FLOAT: numbers,
        Kind.PERCENT: st.integers(1, 100).map(float),
        Kind.STRING: TEXT.map(lambda text: text or None),
        Kind.PATH: TEXT.map(lambda text: Path("/no/such", text)),
        Kind.INTS: st.lists(integers, **items).filter(lambda v: len(v) in counted).map(tuple),
        Kind.FLOATS: st.lists(FLOATS, **items).map(tuple),
        Kind.STRINGS: st.lists(TEXT.map(lambda t: t.replace(";", ",")), max_size=3).map(tuple),
        Kind.PATHS: st.lists(
            TEXT.map(lambda t: Path("/no/such", t.replace(";", ","))), max_size=3
        ).map(tuple),
    }[key.kind]


BY_CLASS_FIELD = {k.field: k for k in CLASS_KEYS.values() if k.field}
CLASS_ATTRS = st.builds(ClassAttrs, **{f: values_of(k) for f, k in BY_CLASS_FIELD.items()})


@st.composite
def configs(draw: st.DrawFn) -> ModelConfig:
    keys = draw(st.lists(st.sampled_from([k for k in PROPERTY_KEYS.values() if k.field])))
    chosen = {key.field or "": draw(values_of(key)) for key in keys}
    cfg = ModelConfig(**chosen)
    if not cfg.network_type.has_class_attrs:
        return cfg
    numbers = (
        draw(st.sets(st.integers(0, cfg.num_detected_classes - 1), max_size=2))
        if (cfg.num_detected_classes)
        else set()
    )
    common = draw(st.just(ClassAttrs()) | CLASS_ATTRS)
    return cfg.with_overrides(all_classes=common, classes={n: draw(CLASS_ATTRS) for n in numbers})


@settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(configs(), st.sampled_from(FORMS))
def test_load_undoes_dump(cfg: ModelConfig, form: Literal["ini", "yaml"]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.yml" if form == "yaml" else "model.txt")
        path.write_bytes(cfg.dump(form).encode())
        again = ModelConfig.load(path)
        assert again.values() == cfg.values()
        # and from here on the text stays the same
        assert again.dump(form) == cfg.dump(form)


def test_a_real_file_survives_both_forms(load: Load, tmp_path: Path) -> None:
    cfg = load(
        "gpu-id=0\nnet-scale-factor=0.0039215697906911373\nonnx-file=../a b.onnx\n"
        "num-detected-classes=3\ncluster-mode=2\noffsets=1.5;2;3\nmaintain-aspect-ratio=1\n"
        "input-dims=3;4;5;0\noutput-blob-names=x;y\n"
        "[class-attrs-all]\ntopk=300\nminBoxes=2\n[class-attrs-2]\nbg-color=0;0;1;0.5\n"
    )
    for form in FORMS:
        path = tmp_path / f"again.{'yml' if form == 'yaml' else 'txt'}"
        path.write_text(cfg.dump(form))
        assert ModelConfig.load(path).values() == cfg.values()


@pytest.mark.parametrize(
    ("form", "values", "words"),
    [
        ("yaml", {"output_blob_names": ("a;b",)}, "semicolons"),
        ("ini", {"max_gpu_mem_per": 90.5}, "integers only"),
    ],
)
def test_what_a_form_cannot_write(
    form: Literal["ini", "yaml"], values: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        ModelConfig(**values).dump(form)


def test_effective_lists_every_key_once_with_its_origin(load: Load) -> None:
    cfg = load(
        "batch-size=2\noffsets=1;2;3\nnum-detected-classes=2\n[class-attrs-1]\ntopk=4\n"
    ).with_overrides(gpu_id=1)
    rows = {(row.group, row.key): row for row in cfg.effective()}
    assert len(rows) == len(cfg.effective())
    assert {k for g, k in rows if g == "property"} == {
        k.name for k in PROPERTY_KEYS.values() if k.field
    }
    assert rows["property", "batch-size"].text == "2"
    assert rows["property", "batch-size"].origin.endswith("model.txt:2")
    assert rows["property", "offsets"].text == "1.0;2.0;3.0"
    assert rows["property", "gpu-id"].origin == "override"
    assert rows["property", "interval"].origin == "default"
    assert rows["class-attrs-1", "topk"].origin.endswith("model.txt:6")
    assert rows["class-attrs-all", "topk"].origin == "default"
    assert len([k for g, k in rows if g == "class-attrs-all"]) == len(fields(ClassAttrs))


def test_effective_tells_where_the_network_config_is(load: Load, tmp_path: Path) -> None:
    def shown() -> str:
        cfg = load("custom-network-config=nets/yolo.cfg\nnum-detected-classes=2\n")
        assert cfg.custom_network_config == "nets/yolo.cfg"
        return next(r.text for r in cfg.effective() if r.key == "custom-network-config")

    assert shown() == "nets/yolo.cfg", "any text that a library may understand"
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "yolo.cfg").touch()
    assert shown() == str(tmp_path / "nets" / "yolo.cfg")
    long = load(f"custom-network-config={'x' * 5000}\nnum-detected-classes=2\n")
    assert "x" * 5000 in {row.text for row in long.effective()}


class TestOverrides:
    @pytest.mark.parametrize(
        ("values", "words"),
        [
            ({"batch_size": 0}, "batch-size=0 is not in range"),
            ({"batch_size": "x"}, "batch-size=x is not usable"),
            ({"cluster_mode": 7}, "cluster-mode=7 is not a clustering mode"),
            ({"bacth_size": 1}, "did you mean batch_size"),
            ({"num_detected_classes": 10**12}, "0 to 65536"),
            ({"onnx_file": "a\ud800"}, "UTF-8"),
            ({"custom_lib_abi": "32"}, "auto, 24, 28"),
            ({"num_detected_classes": 1}, "class-attrs-3"),
            ({"all_classes": ClassAttrs(eps=-1)}, "eps=-1 is not in range"),
        ],
    )
    def test_refused(self, load: Load, values: dict[str, Any], words: str) -> None:
        cfg = load("num-detected-classes=4\n[class-attrs-3]\ntopk=1\n")
        with pytest.raises(ConfigError, match=words):
            cfg.with_overrides(**values)

    def test_the_original_stays(self, load: Load) -> None:
        cfg = load("batch-size=2\n")
        assert cfg.with_overrides(batch_size=3).batch_size == 3
        assert cfg.batch_size == 2

    def test_paths_start_at_the_working_directory(self, load: Load) -> None:
        assert load("").with_overrides(onnx_file="a.onnx").onnx_file == Path.cwd() / "a.onnx"

    def test_notices_follow_the_values(self, load: Load) -> None:
        cfg = load("symmetric-padding=1\nnetword-mode=1\n")
        assert any("symmetric-padding has no effect" in n.sentence for n in cfg.notices)
        cfg = cfg.with_overrides(maintain_aspect_ratio=True)
        assert not any("symmetric-padding has no effect" in n.sentence for n in cfg.notices)
        assert any("netword-mode" in n.sentence for n in cfg.notices)

    def test_another_type_drops_class_settings(self, load: Load) -> None:
        cfg = load("num-detected-classes=4\n[class-attrs-3]\ntopk=1\n")
        assert not cfg.with_overrides(network_type=1).classes

    def test_class_settings_that_no_file_can_say(self) -> None:
        with pytest.raises(ConfigError, match="taken back"):
            ModelConfig(
                num_detected_classes=1, all_classes=ClassAttrs(topk=3), classes={0: ClassAttrs()}
            )
