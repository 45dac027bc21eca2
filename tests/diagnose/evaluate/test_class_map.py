"""Labels of a model meet classes of a data set."""

import numpy as np
import pytest

from headrace.diagnose.evaluate.class_map import match_classes
from headrace.errors import ConfigError


def match(labels, classes, count=None, **chosen):
    count = len(labels) if count is None else count
    return match_classes(labels, classes, count=count, chosen=chosen, where="c.txt")


def test_names_match_without_case_spaces_and_underscores():
    found = match(["Traffic_light", "person", "sofa"], ["person", "traffic light", "dog-house"])
    assert found.by == "name"
    assert found.table.tolist() == [1, 0, -1]
    assert found.classes_of(np.array([2, 0, 1, 7, -1])).tolist() == [-1, 1, 0, -1, -1]
    assert found.only_model == ("sofa",)
    assert found.only_dataset == ("dog-house",)
    assert found.known.tolist() == [0, 1]
    assert [n.level for n in found.notices] == ["warning", "info"]
    assert "1 of 3 classes of the data set are no labels of the model" in found.notices[0].sentence
    assert found.class_of("PERSON", 9) == 0
    assert found.class_of("", 0) == 1


def test_chosen_pairs_come_on_top_and_may_join_labels():
    found = match(["car", "truck", "person"], ["vehicle", "person"], car="vehicle", truck="Vehicle")
    assert found.table.tolist() == [0, 0, 1]
    assert found.notices == ()
    with pytest.raises(ConfigError, match="no class of the data set"):
        match(["car"], ["vehicle"], car="bus")
    with pytest.raises(ConfigError, match="no label of the model"):
        match(["car"], ["vehicle"], cat="vehicle")


def test_without_names_the_order_decides():
    named = match(["a", "b"], ["x", "y"])
    assert named.table.tolist() == [0, 1]
    assert named.notices[0].level == "warning"
    bare = match([], ["x", "y", "z"], 2)
    assert bare.table.tolist() == [0, 1]
    assert bare.only_dataset == ("z",)
    assert bare.notices[0].level == "warning"
    more = match([], ["x"], 3)
    assert more.table.tolist() == [0, -1, -1]
    assert more.notices[0].level == "info"
    none = match(["a", "b"], [])
    assert none.table.tolist() == [0, 1]
    assert none.notices == ()
    with pytest.raises(
        ConfigError, match="none of the model's 1 labels is one of the data set's 2"
    ):
        match(["a"], ["x", "y"])
