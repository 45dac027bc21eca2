"""Names near one that is not there."""

from __future__ import annotations

from headrace._core.near import alternatives, did_you_mean, near_names, nearest


def test_the_most_similar_name_comes_first() -> None:
    assert near_names("convolution", ["Pooling", "Convolution3D", "Convolution"]) == [
        "Convolution",
        "Convolution3D",
    ]
    assert near_names("convolution", ["Convolution3D", "Convolution"], 1) == ["Convolution"]
    assert near_names("jpg", ["jsonl", "png"], 1, cutoff=0.5) == ["png"]
    assert near_names("", ["a"]) == near_names("a", []) == []


def test_a_key_is_near_whatever_its_case_dashes_and_blanks() -> None:
    keys = ["model-file", "uff-file", "gie_unique_id"]
    assert nearest("Model_File", keys) == nearest(";model -fil", keys) == "model-file"
    assert nearest("gie-unique-ids", keys) == "gie_unique_id"
    assert nearest("batch-size", keys) is None
    assert nearest("model-file" * 100_000, keys) is None


def test_the_question_names_all_that_are_near() -> None:
    assert did_you_mean("a", "b", "c") == "did you mean a, b or c?"
    assert did_you_mean("a") == "did you mean a?"
    assert did_you_mean() is did_you_mean(None) is None
    assert alternatives(["a", "b"]) == "a or b"
