"""Edits mend what they are for and leave everything else of a file as it is."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from headrace._core.errors import ConfigError
from headrace._core.findings import Finding
from headrace.diagnose.lint.catalogue import Example, all_rules
from headrace.diagnose.lint.findings import LintFinding, Place
from headrace.diagnose.lint.fixes import FIXABLE, fixes_for, keys_of, with_keys
from headrace.diagnose.lint.linting import Linter, LintReport
from tests.diagnose.lint.setups import write_example

# what the wrong example's lines become; the other rules' edits are tried below
EXPECTED = {
    "unknown-key": {"batchsize=4": "batch-size=4"},
    "unknown-group": {"[class-attr-all]": "[class-attrs-all]"},
    "no-property-group": {"[Property]": "[property]"},
    "function-missing": {"parse-bbox-func-name=parse_row": "parse-bbox-func-name=parse_rows"},
    "duplicate-key": {"net-scale-factor=0.0039215697906911373": None},
    "key-overruled": {"is-classifier=1": None},
    "deprecated-key": {"threshold=0.3": "pre-cluster-threshold=0.3"},
    "value-quoted": {'labelfile-path="labels.txt"': "labelfile-path=labels.txt"},
    "value-blank": {"labelfile-path=labels.txt ": "labelfile-path=labels.txt"},
    "value-comment": {"labelfile-path=labels.txt # three": "# three"},
    "value-type": {"net-scale-factor=0,0039215697": "net-scale-factor=0.0039215697"},
    "value-choice": {"cluster-mode=NMS": "cluster-mode=2"},
    "threshold-above-all": {"pre-cluster-threshold=30": "pre-cluster-threshold=0.3"},
    "offsets-in-unit": {"offsets=0.5;0.5;0.5": "offsets=127.5;127.5;127.5"},
    "class-count": {"num-detected-classes=2": "num-detected-classes=3"},
    "input-range": {"net-scale-factor=1": "net-scale-factor=0.003921568627"},
    "input-colors": {"model-color-format=1": "model-color-format=0"},
    "input-channels": {"model-color-format=2": "model-color-format=0"},
    "masks-clustered": {"cluster-mode=2": "cluster-mode=4"},
    "input-dims": {"infer-dims=3;160;128": "infer-dims=3;128;160"},
    "byte-order-mark": {"\ufeff[property]": "[property]"},
    "labels-byte-order-mark": {"\ufefftomato": "tomato"},
    "labels-carriage-return": {"tomato\r": "tomato"},
    "labels-blank": {"cactus ": "cactus"},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


def _lint(folder: Path, *names: str) -> LintReport:
    return Linter().lint([folder / name for name in names or ("config.txt",)])


def test_every_edit_has_an_example() -> None:
    assert set(EXPECTED) == FIXABLE
    assert set(all_rules()) >= FIXABLE


@pytest.mark.parametrize("rule", EXPECTED)
def test_edits_change_the_lines_that_are_wrong(rule: str, store: Path, tmp_path: Path) -> None:
    example = all_rules()[rule].example
    assert example is not None
    base = write_example(example, tmp_path / "case", store, wrong=True)
    found = [f for f in _lint(tmp_path / "case", *base.lint).findings if f.code == rule]
    assert found
    (fix,) = fixes_for(found)
    before, after = (data.decode().split("\n") for data in (fix.before, fix.after))
    for old, new in EXPECTED[rule].items():
        assert old in before
        assert old not in after
        assert new is None or new in after
    untouched = [line for line in before if line in after]
    assert len(untouched) >= len(before) - (len(before) if "\r" in before[0] else 2)
    fix.write()
    again = _lint(tmp_path / "case", *base.lint)
    assert rule not in {f.code for f in again.findings}


def test_comments_carriage_returns_and_the_mode_are_kept(store: Path, tmp_path: Path) -> None:
    write_example(Example("yolov8", wrong=("num-detected-classes=1",)), tmp_path / "case", store,
                  wrong=True)  # fmt: skip
    config = tmp_path / "case" / "config.txt"
    text = f"# mine\n\n{config.read_text()}# the end\n".replace("\n", "\r\n")
    config.write_bytes(text.encode())
    config.chmod(0o640)
    (fix,) = fixes_for(_lint(tmp_path / "case", "config.txt").findings)
    assert "-num-detected-classes=1" in fix.diff
    assert "+num-detected-classes=3" in fix.diff
    fix.write()
    changed = text.replace("classes=1", "classes=3").encode()
    assert config.read_bytes() == changed
    assert stat.S_IMODE(config.stat().st_mode) == 0o640


def test_nothing_is_written_through_a_link(store: Path, tmp_path: Path) -> None:
    write_example(Example("yolov8", wrong=("num-detected-classes=1",)), tmp_path / "case", store,
                  wrong=True)  # fmt: skip
    config, link = tmp_path / "case" / "config.txt", tmp_path / "case" / "link.txt"
    text = config.read_text()
    link.symlink_to(config)
    (fix,) = fixes_for(_lint(tmp_path / "case", "link.txt").findings)
    with pytest.raises(ConfigError, match="it is a link to"):
        fix.write()
    assert (config.read_text(), link.is_symlink()) == (text, True)


def test_a_missing_key_gets_a_line_of_its_own_in_yaml_too(store: Path, tmp_path: Path) -> None:
    for base, line in (("yolov8", "cluster-mode=4"), ("yaml", "  cluster-mode: 4")):
        example = Example(base, wrong=("-cluster-mode", "output-instance-mask=1"))
        made = write_example(example, tmp_path / base, store, wrong=True)
        found = _lint(tmp_path / base, *made.lint).findings
        (fix,) = fixes_for(f for f in found if f.code == "masks-clustered")
        assert line in fix.after.decode().split("\n")


def test_keys_without_a_group_get_its_line(store: Path, tmp_path: Path) -> None:
    base = write_example(Example("yolov8"), tmp_path / "case", store, wrong=False)
    config = tmp_path / "case" / "config.txt"
    text = config.read_text()
    config.write_text("# mine\n" + text.replace("[property]\n", ""))
    (fix,) = fixes_for(_lint(tmp_path / "case", *base.lint).findings)
    fix.write()
    assert config.read_text() == f"# mine\n{text}"
    for other in ("tenant=9\n", "offset=1\n[property]\nbatch-size=1\n"):
        config.write_text(other)
        assert not fixes_for(_lint(tmp_path / "case", *base.lint).findings)


def test_a_file_that_changed_meanwhile_is_left_alone(store: Path, tmp_path: Path) -> None:
    write_example(Example("yolov8", wrong=("batchsize=4", "-batch-size")), tmp_path / "case",
                  store, wrong=True)  # fmt: skip
    config = tmp_path / "case" / "config.txt"
    (fix,) = fixes_for(_lint(tmp_path / "case").findings)
    config.write_text("[property]\n")
    with pytest.raises(ConfigError, match="changed meanwhile"):
        fix.write()
    assert config.read_text() == "[property]\n"


def test_what_is_not_certain_is_not_edited(store: Path, tmp_path: Path) -> None:
    lines = ("qwertz=1", "infer-dims=3;640;640", "net-scale-factor=abc", "cluster-mode=best")
    for number, line in enumerate(lines):
        folder = tmp_path / str(number)
        write_example(Example("yolov8", wrong=(line,)), folder, store, wrong=True)
        report = _lint(folder)
        assert report.findings
        assert fixes_for(report.findings) == []


def test_of_a_key_that_stands_twice_the_line_that_counts_is_edited(
    store: Path, tmp_path: Path
) -> None:
    write_example(Example("yolov8", edit=("batch-size=1", "batch-size=1\nnet-scale-factor=1")),
                  tmp_path / "case", store, wrong=True)  # fmt: skip
    config = tmp_path / "case" / "config.txt"
    for fix in fixes_for(_lint(tmp_path / "case").findings):
        fix.write()
    assert config.read_text().count("net-scale-factor") == 1
    assert "net-scale-factor=0.003921568627\n" in config.read_text()
    assert not [f for f in _lint(tmp_path / "case").findings if f.severity != "note"]


INI = b"# a camera\r\n[property]\r\noffsets=1;2;3\r\ntopk=9\r\n\r\n[class-attrs-all]\r\ntopk=3\r\n"
YAML = b"# a camera\nproperty:\n  offsets: 1;2;3\nclass-attrs-all:\n  topk: 3\n"


@pytest.mark.parametrize("text", [INI, YAML], ids=["ini", "yaml"])
def test_keys_are_set_and_left_out_in_their_group(text: bytes) -> None:
    keys = {"net-scale-factor": "0.5", "offsets": None, "class-attrs-all.topk": None,
            "class-attrs-all.eps": "0.2", "class-attrs-2.topk": "7"}  # fmt: skip
    changed = with_keys(text, keys)
    after = keys_of(changed)
    assert {name: after.get(name) for name in keys} == keys
    assert after.get("topk") == keys_of(text).get("topk")
    assert changed.startswith(b"# a camera")
    assert (changed.count(b"\r\n") == changed.count(b"\n")) is (text is INI)
    assert with_keys(text, {}) == text
    again = with_keys(changed, {"class-attrs-2.": None, "class-attrs-all.topk": "3"})
    assert not any(name.startswith("class-attrs-2") for name in keys_of(again))
    assert keys_of(again)["class-attrs-all.topk"] == "3"


def _confirmed(folder: Path, text: str, keys: dict[str, str | None]) -> str:
    """What the edits make of a config for a finding whose keys were confirmed on frames."""
    config = folder / "config.txt"
    config.write_text(text)
    finding = Finding("overlaps", "warning", "boxes overlap", str(config), {"set": keys})
    (fix,) = fixes_for([LintFinding(finding, Place(config, 1), config)])
    fix.write()
    return config.read_text()


def test_what_frames_confirmed_is_written_whole(tmp_path: Path) -> None:
    text = "[property]\nnet-scale-factor=1\noffsets=1;2;3\n# kept\nbatch-size=1"
    keys = {"net-scale-factor": "0.5", "offsets": None, "class-attrs-all.topk": "5"}
    assert _confirmed(tmp_path, text, keys) == (
        "[property]\nnet-scale-factor=0.5\n# kept\nbatch-size=1\n\n[class-attrs-all]\ntopk=5\n"
    )


def test_a_finding_without_confirmed_keys_writes_nothing(tmp_path: Path) -> None:
    config = tmp_path / "config.txt"
    config.write_text("[property]\nnet-scale-factor=1\n")
    advice = {"advice": [{"set": {"net-scale-factor": "0.5"}, "basis": "guess"}]}
    finding = Finding("input-range", "warning", "a range", str(config), advice)
    assert not fixes_for([LintFinding(finding, Place(config, 2), config)])


def test_a_bare_model_is_never_edited(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(b"weights")
    finding = Finding("input-range", "warning", "a range", str(model), {"set": {"offsets": None}})
    assert not fixes_for([LintFinding(finding, Place(model), model)])
