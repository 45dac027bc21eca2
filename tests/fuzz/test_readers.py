"""The readers of what others send end with a value or an error for any change of an input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.edits import EDITS, edited, places, values
from tests.fuzz.fuzz_readers import READERS, seeds
from tests.profiles import examples


@pytest.mark.parametrize("reader", READERS)
def test_seeds_are_read(reader: str) -> None:
    for seed in seeds(reader):
        READERS[reader](seed)


@pytest.mark.parametrize("reader", READERS)
@given(data=st.data())
@settings(deadline=None, max_examples=examples(30))
def test_any_change_of_an_input_is_read_or_refused(reader: str, data: st.DataObject) -> None:
    content = data.draw(st.sampled_from(seeds(reader)))
    for _ in range(data.draw(st.integers(1, 4))):
        edit = data.draw(st.sampled_from(EDITS)), data.draw(places), data.draw(values)
        content = edited(content, *edit)
    READERS[reader](content)


@pytest.mark.parametrize("dtype", ["<04", "1_0", "f4,f4", "(", "O", "<f4\0", "M8[s]"])
def test_a_worker_names_plain_numbers_alone(dtype: str) -> None:
    READERS["worker"](json.dumps([[dtype, [1], 0]]).encode())


def test_a_tensor_without_its_numbers_is_refused() -> None:
    from headrace.errors import ModelError
    from headrace.network.onnx_file import network_from_onnx_bytes

    content = seeds("onnx")[2].replace(b"\x10\x07", b"\x10\x06")  # its elements are INT32 now
    with pytest.raises(ModelError, match="in int32_data"):
        network_from_onnx_bytes(content, Path("a.onnx"))
    READERS["onnx"](content)
