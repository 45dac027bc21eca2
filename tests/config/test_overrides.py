"""Keys set over a config: as lines of the file would, by the command line and by programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.config import ClusterMode, ModelConfig, NetworkType
from headrace.config.keys import CLASS_KEYS, PROPERTY_KEYS
from headrace.config.overrides import (
    Overrides,
    combined,
    distributed,
    given_conf,
    given_keywords,
    given_labels,
    given_line,
)
from headrace.errors import ConfigError
from tests.profiles import examples

BASE = """[property]
gie-unique-id=1
batch-size=2
num-detected-classes=3
net-scale-factor=1
cluster-mode=2
labelfile-path=labels.txt
[class-attrs-all]
pre-cluster-threshold=0.5
topk=10
[class-attrs-1]
topk=7
"""
YAML = """property:
  gie-unique-id: 1
  batch-size: 2
  num-detected-classes: 3
  net-scale-factor: 1
  cluster-mode: 2
  labelfile-path: labels.txt
class-attrs-all:
  pre-cluster-threshold: 0.5
  topk: 10
class-attrs-1:
  topk: 7
"""


@pytest.fixture(params=["ini", "yaml"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    text, name = (BASE, "c.txt") if request.param == "ini" else (YAML, "c.yml")
    (tmp_path / name).write_text(text)
    return tmp_path / name


def lines(*texts: str) -> Overrides:
    return combined([given_line(text, "--set") for text in texts])


def both(path: Path, overrides: Overrides) -> ModelConfig:
    """Set while the file is read, and over what was read: the same values."""
    read, changed = ModelConfig.load(path, overrides), overrides.on(ModelConfig.load(path))
    assert read.values() == changed.values()
    assert [str(v) for v in read.effective()] == [str(v) for v in changed.effective()]
    return read


def test_a_key_wins_over_the_file_and_names_its_option(path: Path) -> None:
    cfg = both(path, lines("batch-size=4", "cluster-mode=4", "process-mode=2"))
    assert (cfg.batch_size, cfg.cluster_mode, cfg.process_mode) == (4, ClusterMode.NONE, 2)
    assert str(cfg.origin("batch_size")) == cfg.where("batch_size") == "--set"
    assert cfg.origin("batch-size").kind == "override"
    assert str(cfg.origin("net_scale_factor")).endswith(f"{path.name}:5")
    assert [str(n) for n in cfg.notices if "replaces" in n.sentence] == []


def test_the_last_one_of_a_key_counts(path: Path) -> None:
    assert both(path, lines("batch-size=4", "batch-size=8")).batch_size == 8


def test_class_groups_inherit_as_in_a_file(path: Path) -> None:
    cfg = both(
        path,
        lines(
            "class-attrs-all.topk=1", "class-attrs-all.eps=0.25", "class-attrs-2.detected-min-w=9"
        ),
    )
    assert [a.topk for a in cfg.per_class] == [1, 7, 1]
    assert [a.eps for a in cfg.per_class] == [0.25] * 3
    assert [a.detected_min_w for a in cfg.per_class] == [0, 0, 9]
    assert str(cfg.origin("topk", class_id=0)) == "--set"
    assert str(cfg.origin("topk", class_id=1)).endswith(":12")


def test_a_key_of_classes_needs_no_group(path: Path) -> None:
    assert both(path, lines("topk=3", "property.batch-size=5")).all_classes.topk == 3


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("batch-siez=4", "--set: batch-siez is not a key.\n  did you mean batch-size?"),
        ("cluster-mode=9", "--set: cluster-mode=9 is not a clustering mode"),
        ("batch-size=four", "--set: batch-size=four is not an integer"),
        ("class-attrs-9.topk=1", "is about a class beyond num-detected-classes=3"),
        ("class-attrs-x.topk=1", "names no class"),
        ("class-atrs-all.topk=1", "is not a group.*property, class-attrs-all.*did you mean"),
        ("primary-gie.topk=1", "--set: primary-gie is not a group"),
        ("source0.uri=a.mp4", "source0 is not a group.*name the video or URL behind the file"),
        ("class-attrs-all.batch-size=1", "batch-size is not a key.*belongs into"),
    ],
)
def test_what_is_wrong_is_refused_as_in_a_file(path: Path, line: str, words: str) -> None:
    for attempt in (
        lambda: ModelConfig.load(path, lines(line)),
        lambda: lines(line).on(ModelConfig.load(path)),
    ):
        with pytest.raises(ConfigError, match=f"(?s){words}"):
            attempt()


@pytest.mark.parametrize("text", ["batch-size", "=4", "", "2:"])
def test_what_is_no_pair_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not key=value"):
        given_line(text, "--set")


def test_the_text_of_an_error_is_that_of_the_line_in_a_file(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_text("[property]\ngie-unique-id=1\n")
    bad.write_text("[property]\ngie-unique-id=1\ninfer-dims=3;4\n")
    with pytest.raises(ConfigError) as written:
        ModelConfig.load(bad)
    with pytest.raises(ConfigError) as set_:
        ModelConfig.load(good, lines("infer-dims=3;4"))
    assert str(written.value).replace(f"{bad}:3", "--set") == str(set_.value)


def test_a_line_may_mend_what_the_file_lacks(tmp_path: Path) -> None:
    file = tmp_path / "c.txt"
    file.write_text("[property]\nbatch-size=many\n[class-attrs-1]\ntopk=5\n")
    cfg = ModelConfig.load(file, lines("num-detected-classes=2", "batch-size=1"))
    assert cfg.classes[1].topk == 5


def test_another_network_type_drops_the_classes(path: Path) -> None:
    cfg = both(path, lines("network-type=1"))
    assert cfg.network_type is NetworkType.CLASSIFIER
    assert not cfg.classes


def test_paths_start_at_the_working_directory(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    cfg = both(path, combined([given_labels("a b\\c.txt", "--labels")]))
    assert cfg.labelfile_path == tmp_path / "here" / "a b\\c.txt"
    assert str(cfg.origin("labelfile_path")) == "--labels"
    assert both(path, lines("onnx-file=/m.onnx")).onnx_file == Path("/m.onnx")


def test_a_foreign_file_is_not_made_a_config(tmp_path: Path) -> None:
    file = tmp_path / "app.txt"
    file.write_text("[primary-gie]\nenable=1\n")
    with pytest.raises(ConfigError, match="no group \\[property\\]"):
        ModelConfig.load(file, lines("batch-size=1"))


def test_notices_name_the_option(path: Path) -> None:
    cfg = ModelConfig.load(path, lines("is-classifier=1", "onnx-file=m.onnx # mine"))
    found = {n.where: n.sentence for n in cfg.notices if n.where == "--set"}
    assert "looks like a comment" in found["--set"]
    legacy = [n for n in cfg.notices if "is-classifier is an old key" in n.sentence]
    assert legacy[0].where == "--set"


# --- --conf ---------------------------------------------------------------------------------------


def conf(value: str) -> Overrides:
    return combined([given_conf(value, "--conf")])


def test_conf_of_a_detector_is_that_of_every_class(path: Path) -> None:
    both(path, conf("0.3"))
    with_own = lines("class-attrs-1.pre-cluster-threshold=0.9")
    cfg = both(path, with_own.plus(conf("0.3")))
    assert [a.pre_cluster_threshold for a in cfg.per_class] == [0.3] * 3
    assert str(cfg.origin("pre_cluster_threshold", class_id=1)) == "--conf"
    assert [a.topk for a in cfg.per_class] == [10, 7, 10]


def test_a_later_threshold_does_not_decide_instead(path: Path) -> None:
    post = lines("post-cluster-threshold=0.6", "class-attrs-1.post-cluster-threshold=0.1")
    cfg = both(path, post.plus(conf("0.3")))
    assert [a.post_cluster_threshold for a in cfg.per_class] == [0, 0.1, 0]
    told = [n for n in cfg.notices if n.where == "--conf"]
    assert "post-cluster-threshold=0.6 would drop more" in told[0].sentence


@pytest.mark.parametrize(
    ("kind", "field"), [(1, "classifier_threshold"), (2, "segmentation_threshold")]
)
def test_conf_of_other_types(path: Path, kind: int, field: str) -> None:
    cfg = both(path, lines(f"network-type={kind}").plus(conf("0.25")))
    assert getattr(cfg, field) == 0.25
    assert cfg.where(field) == "--conf"


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        (lines("network-type=100").plus(conf("0.5")), "--conf: network-type 100.*no threshold"),
        (conf("1.5"), "1.5 is not in range"),
        (conf("nan"), "nan is not in range"),
    ],
)
def test_conf_that_makes_no_sense_is_refused(path: Path, given_: Overrides, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ModelConfig.load(path, given_)


def test_conf_is_a_number() -> None:
    with pytest.raises(ConfigError, match="half is not a number"):
        given_conf("half", "--conf")


# --- several models -------------------------------------------------------------------------------


def test_a_number_says_which_model() -> None:
    given_ = [
        given_line("2:batch-size=4", "--set"),
        given_conf("1:0.5", "--conf"),
        given_line("2:batch-size=5", "--set"),
    ]
    first, second = distributed(given_, ["a.txt", "b.txt"])
    assert (first.lines, first.conf) == ((), 0.5)
    assert [line.text for line in second.lines] == ["4", "5"]
    assert second.conf is None


@pytest.mark.parametrize(
    ("text", "names", "words"),
    [
        ("topk=1", ["a.txt", "b.txt"], "2 models: 1 is a.txt, 2 is b.txt.*--set 1:topk=1"),
        ("3:topk=1", ["a.txt", "b.txt"], "no model 3"),
        ("0:topk=1", ["a.txt"], "no model 0"),
        ("topk=1", [], "--set topk=1: there is no config"),
    ],
)
def test_a_model_that_is_not_clear_is_refused(text: str, names: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s){words}"):
        distributed([given_line(text, "--set")], names)


# --- programs -------------------------------------------------------------------------------------


def keywords(**values: object) -> Overrides:
    return combined(given_keywords(values))


def test_keywords_are_the_same_lines(path: Path) -> None:
    cfg = both(
        path,
        keywords(
            batch_size=np.int64(4), cluster_mode=ClusterMode.NONE, offsets=[1, 2.5, 3],
            operate_on_class_ids=(0, 2), maintain_aspect_ratio=True, topk=3, min_boxes=2,
            labels=path.with_name("x;y.txt"), output_blob_names=["a;b", "c"], interval=None,
            conf=0.25, **{"class-attrs-2.topk": 5, "class-attrs-0.bg_color": np.ones(4)},
        ),
    )  # fmt: skip
    assert (cfg.batch_size, cfg.cluster_mode, cfg.offsets) == (4, 4, (1, 2.5, 3))
    assert (cfg.operate_on_class_ids, cfg.maintain_aspect_ratio) == ((0, 2), True)
    assert [a.topk for a in cfg.per_class] == [3, 7, 5]
    assert (cfg.all_classes.min_boxes, cfg.classes[0].bg_color) == (2, (1, 1, 1, 1))
    assert cfg.labelfile_path == path.with_name("x;y.txt")
    assert cfg.output_blob_names == ("a;b", "c")
    assert cfg.all_classes.pre_cluster_threshold == 0.25
    assert cfg.where("batch_size") == "batch_size"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"batch_siez": 4}, "did you mean batch-size"),
        ({"source": "v.mp4"}, "did you mean sources"),
        ({"batch_size": object()}, "is no value"),
        ({"batch_size": {}}, "is no value"),
        ({"batch_size": 1.5}, "batch-size=1.5 is not an integer"),
        ({"batch_size": -1}, "batch-size=-1 is not in range"),
        ({"conf": "half"}, "half is not a number"),
        ({"conf": 10**400}, "is not a number"),
        ({"class-attrs-9.topk": 1}, "beyond num-detected-classes"),
    ],
)
def test_keywords_that_are_wrong_are_refused(
    path: Path, values: dict[str, object], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        combined(given_keywords(values, ["sources"])).on(ModelConfig.load(path))


def test_a_loaded_config_takes_them_with_its_fields(path: Path) -> None:
    cfg = ModelConfig.load(path).with_overrides(batch_size=4, topk=2, conf=0.1)
    assert (cfg.batch_size, cfg.all_classes.topk) == (4, 2)
    assert cfg.all_classes.pre_cluster_threshold == 0.1
    assert str(cfg.origin("batch_size")) == "override"
    with pytest.raises(ConfigError, match="not a field"):
        cfg.with_overrides(nonsense=1)


@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_a_line_given_is_a_line_written(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """`--set` and the same line at the end of its group: the same values, or both refused."""
    rows = [*PROPERTY_KEYS.values(), *CLASS_KEYS.values()]
    key = data.draw(st.sampled_from([key for key in rows if key.name != "parse-func"]))
    text = data.draw(
        st.sampled_from(["0", "1", "2", "0.5", "1;2", "/x", "a b", "true", "", "x\\sy", "-1"])
    )
    folder = tmp_path_factory.mktemp("c")
    group = "property" if key.name in PROPERTY_KEYS else "class-attrs-all"
    plain, written = folder / "plain.txt", folder / "written.txt"
    plain.write_text(BASE)
    where = BASE.index("[class-attrs-all]") if group == "property" else BASE.index("[class-attrs-1")
    written.write_text(f"{BASE[:where]}{key.name}={text}\n{BASE[where:]}")
    if key.kind.name in ("PATH", "PATHS") and text not in ("", "/x"):
        text = "/x"
        written.write_text(f"{BASE[:where]}{key.name}={text}\n{BASE[where:]}")

    def outcome(path: Path, overrides: Overrides | None) -> object:
        try:
            return ModelConfig.load(path, overrides).values()
        except ConfigError as error:
            return error.finding.sentence, error.finding.expectation, error.finding.remedies

    assert outcome(plain, lines(f"{group}.{key.name}={text}")) == outcome(written, None)


@pytest.mark.parametrize(("name", "says"), [
    ("confidence", "did you mean conf?"), ("label", "did you mean labels?"),
    ("source", "did you mean sources?"),
])  # fmt: skip
def test_an_argument_of_another_name_is_hinted_at(name: str, says: str) -> None:
    with pytest.raises(ConfigError, match="neither an argument nor a key") as caught:
        given_keywords({name: 0.8}, ["sources"])
    assert caught.value.finding.remedies == (says,)


def test_a_name_like_none_has_no_empty_hint() -> None:
    with pytest.raises(ConfigError) as caught:
        given_keywords({"qqqqqq": 1}, ["sources"])
    assert caught.value.finding.remedies == ()
