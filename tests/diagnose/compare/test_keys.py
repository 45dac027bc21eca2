"""Settings that differ, by stage."""

from __future__ import annotations

from headrace.config.keys import CLASS_KEYS, PROPERTY_KEYS
from headrace.diagnose.compare.chain import ChainStage
from headrace.diagnose.compare.keys import _STAGES, KeyChange, key_changes
from headrace.diagnose.compare.sides import SideSpec, open_sides
from headrace.infer.run_options import RunOptions
from tests.diagnose.compare.test_run import changed


def test_every_key_of_a_stage_exists():
    assert set(_STAGES) == set(ChainStage)
    named = {key for keys in _STAGES.values() for key in keys}
    assert named <= {*PROPERTY_KEYS, *CLASS_KEYS}


def test_keys_of_one_class_and_of_a_profile_are_found(scene):
    config = scene / "config_infer_primary.txt"
    other = changed(scene, profile="modern", **{"class-attrs-2.topk": 5})
    a, b = open_sides(SideSpec(config), other, RunOptions())
    found = key_changes(a, b)
    a.close()
    b.close()
    assert "class-attrs-2.topk" in [change.key for change in found[ChainStage.CLUSTER]]
    assert [c.key for c in found[ChainStage.ATTACH]] == ["profile"]
    assert not found[ChainStage.LABELS]


def test_changes_are_short_but_tell_the_values_apart():
    assert str(KeyChange("s", "0.00392156862745098", "1.0")) == "s 0.00392157 → 1"
    assert str(KeyChange("s", "0.10000001", "0.1")) == "s 0.10000001 → 0.1"
    assert str(KeyChange("f", "/x/a.onnx", "/y/b.onnx")) == "f a.onnx → b.onnx"
    assert str(KeyChange("f", "/x/a.onnx", "/y/a.onnx")) == "f /x/a.onnx → /y/a.onnx"
    assert str(KeyChange("f", "", "m.ppm")) == "f (none) → m.ppm"
