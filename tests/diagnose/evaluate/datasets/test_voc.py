"""Pascal VOC: corners counted from 1, difficult objects, and files that are no such thing."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.diagnose.evaluate.datasets.voc import load_voc
from headrace.errors import MediaError
from tests.diagnose.evaluate.datasets.images import image
from tests.profiles import examples

OBJECT = """<object><name>{name}</name><difficult>{difficult}</difficult><bndbox>
<xmin>{xmin}</xmin><ymin>3</ymin><xmax>11</xmax><ymax>12</ymax></bndbox></object>"""
HEAD = "<filename>elsewhere.jpg</filename><size><width>40</width><height>20</height></size>"


def item(name="dog", difficult=0, xmin=2):
    return OBJECT.format(name=name, difficult=difficult, xmin=xmin)


def write(folder, text, name="a"):
    (folder / "Annotations").mkdir(parents=True, exist_ok=True)
    (folder / "Annotations" / f"{name}.xml").write_text(text)
    image(folder / "JPEGImages" / f"{name}.jpg")
    return folder


def test_boxes_classes_and_difficult_objects(tmp_path):
    objects = item() + item("cat", difficult=1)
    write(tmp_path, f"<annotation>{HEAD}{objects}</annotation>")
    write(tmp_path, "<annotation><filename>b.jpg</filename></annotation>", "b")
    found = load_voc(tmp_path)
    assert found.classes == ("cat", "dog")
    one, other = found.images
    assert one.path == tmp_path / "JPEGImages" / "a.jpg"  # by the name of the XML file
    assert one.size == other.size == (40, 20)
    assert one.truth.boxes.tolist() == [[1, 2, 10, 10]] * 2
    assert one.truth.class_ids.tolist() == [1, 0]
    assert one.truth.ignored.tolist() == [False, True]
    assert len(other.truth.boxes) == 0


def test_a_split_and_images_elsewhere(tmp_path):
    for name in ("a", "b"):
        write(tmp_path, f"<annotation>{HEAD}{item()}</annotation>", name)
    lists = tmp_path / "ImageSets" / "Main"
    lists.mkdir(parents=True)
    (lists / "val.txt").write_text("b\n\n")
    assert [p.path.stem for p in load_voc(tmp_path, split="val").images] == ["b"]
    (tmp_path / "JPEGImages").rename(tmp_path / "moved")
    assert len(load_voc(tmp_path, [tmp_path / "moved"]).images) == 2
    with pytest.raises(MediaError, match="none of the 2 images"):
        load_voc(tmp_path)
    (lists / "val.txt").write_text("a\nc\n")
    with pytest.raises(MediaError, match=r"val.txt:2: c has no annotation"):
        load_voc(tmp_path, split="val")
    with pytest.raises(MediaError, match="cannot be read"):
        load_voc(tmp_path, split="gone")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a.xml:1: is not XML: no element found"),
        ("<annotation>\n<object></annotation>", "a.xml:2: is not XML: mismatched tag"),
        ("<other/>", "its root is <other>"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><annotation>&a;</annotation>", "has a document type"),
        (f"<annotation>{item('')}</annotation>", "an object has no name"),
        (f"<annotation>{item(xmin='x')}</annotation>", "object dog has the corners x, 3, 11, 12"),
        (f"<annotation>{item(xmin=50)}</annotation>", "object dog has the corners"),
        (f"<annotation>{item(xmin='nan')}</annotation>", "object dog has the corners"),
    ],
)
def test_refused_with_file_and_line(tmp_path, text, words):
    with pytest.raises(MediaError, match=words):
        load_voc(write(tmp_path, text))


def test_a_folder_without_annotations_is_refused(tmp_path):
    with pytest.raises(MediaError, match="has no XML files"):
        load_voc(tmp_path)


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.sampled_from([item(), "<object>", "</object>", "<name>", "&lt;", "&a;", "x",
                                 "<bndbox/>", "<![CDATA[", "]]>", "<!--", "-->", "\0"]),
                max_size=6))  # fmt: skip
def test_whatever_stands_in_it_is_read_or_refused(tmp_path_factory, parts):
    folder = tmp_path_factory.mktemp("fuzz")
    with suppress(MediaError):
        found = load_voc(write(folder, f"<annotation>{''.join(parts)}</annotation>"))
        assert all(np.isfinite(p.truth.boxes).all() for p in found.images)
