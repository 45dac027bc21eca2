from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ConfigError
from headrace.pipeline.analytics import (
    AnalyticsRules,
    CrossingMode,
    Crowd,
    Heading,
    Line,
    Region,
    SourceRules,
    load_rules,
)

FILE = """\
# everything that the original reads
[property]
enable=1
config-width=1920
config-height=1080
osd-mode=1
display-font-size=14
display-obj-cnt=1
obj-cnt-win-in-ms=500

[roi-filtering-stream-0]
enable=1
roi-DOOR=295;643;579;634;642;913;
inverse-roi=1
class-id=2;3

[overcrowding-stream-1]
enable=1
roi-HALL=0;0;10;0;10;10;0;10
object-threshold=3

[line-crossing-stream-0]
enable=1
line-crossing-In=789;672;1084;900;851;773;1203;732
line-crossing-Out=1084;900;789;672;851;773;1203;732
class-id=0
extended=1
mode=strict

[line-crossing-stream-1]
enable=0
line-crossing-Off=789;672;1084;900;851;773;1203;732

[direction-detection-stream-0]
enable=1
direction-South=284;840;360;662
class-id=-1
"""


def write(folder: Path, text: str, name: str = "rules.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_everything_is_read(tmp_path):
    rules = load_rules(write(tmp_path, FILE))
    across = {"start": (851, 773), "end": (1203, 732), "extended": True, "classes": (0,)}
    arrow = (789, 672), (1084, 900)
    first = SourceRules(
        regions=(
            Region(
                name="DOOR", points=((295, 643), (579, 634), (642, 913)), inverse=True,
                classes=(2, 3),
            ),
        ),
        lines=(
            Line(name="In", toward=arrow, mode=CrossingMode.STRICT, **across),
            Line(name="Out", toward=arrow[::-1], mode=CrossingMode.STRICT, **across),
        ),
        headings=(Heading(name="South", start=(284, 840), end=(360, 662), classes=(-1,)),),
    )  # fmt: skip
    square = ((0, 0), (10, 0), (10, 10), (0, 10))
    second = SourceRules(crowds=(Crowd(name="HALL", points=square, threshold=3),))
    assert rules == AnalyticsRules(
        sources={0: first, 1: second},
        size=(1920, 1080),
        drawn="shapes",
        text_size=14,
        draw_classes=True,
        window_ms=500,
        where=str(tmp_path / "rules.txt"),
    )
    assert rules.notices == ()


def test_the_yaml_form_means_the_same(tmp_path):
    lines = []
    for line in FILE.splitlines():
        if line.startswith("["):
            lines.append(f"{line[1:-1]}:")
        elif "=" in line:
            key, _, value = line.partition("=")
            lines.append(f"  {key}: {value}")
    found = load_rules(write(tmp_path, "\n".join(lines), "rules.yml"))
    wanted = load_rules(write(tmp_path, FILE))
    assert found.sources == wanted.sources
    assert found.size == wanted.size


HEAD = "[property]\nenable=1\nconfig-width=100\nconfig-height=100\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no group [property]"),
        ("[property]\nenable=1\n", "no config-width and config-height"),
        (HEAD + "[roi-filtering-stream-0]\nenable=1\nroi-A=1;2;3;4", ":7"),
        (HEAD + "[roi-filtering-stream-0]\nenable=1\nroi-A=1;2;3;4;5", "has 5 numbers"),
        (HEAD + "[roi-filtering-stream-0]\nenable=1\nroi-A=1;2;-3;4;5;6", "is not in range"),
        (HEAD + "[line-crossing-stream-0]\nenable=1\nline-crossing-A=0;5;9;5;0;5;9;5", "along the"),
        (HEAD + "[line-crossing-stream-0]\nenable=1\nline-crossing-A=5;0;5;9;3;3;3;3", "one place"),
        (HEAD + "[line-crossing-stream-0]\nenable=1\nmode=fast", "strict, balanced, loose"),
        (HEAD.replace("=100", "=wide", 1), "config-width"),
        (HEAD + "osd-mode=3", "from 0 to 2"),
    ],
)
def test_what_cannot_work_is_refused(text, words, tmp_path):
    with pytest.raises(ConfigError) as caught:
        load_rules(write(tmp_path, text))
    assert words in str(caught.value)
    assert "rules.txt" in str(caught.value)


def test_what_has_no_effect_is_said(tmp_path):
    text = HEAD + "osd-mod=1\n[overcrowding-stream-0]\nenable=1\nroi-A=0;0;9;0;9;9\n"
    text += "time-threshold=2000\n[roi-filtering]\nroi-B=0;0;9;0;9;9\n"
    said = [str(n) for n in load_rules(write(tmp_path, text)).notices]
    assert len(said) == 3
    assert "did you mean osd-mode?" in said[0]
    assert any("time-threshold" in s and "like the original" in s for s in said)
    assert any("[roi-filtering] is not a group" in s for s in said)


def test_a_file_can_be_switched_off(tmp_path):
    rules = load_rules(write(tmp_path, FILE.replace("enable=1", "enable=0", 1)))
    assert not rules.sources
    assert "nothing is counted" in str(rules.notices)


def test_rules_for_every_source(tmp_path):
    text = HEAD + "[roi-filtering-stream-all]\nenable=1\nroi-A=0;0;50;0;50;100\n"
    rules = load_rules(write(tmp_path, text))
    assert rules.of(7, 200, 50).regions[0].points == ((0, 0), (100, 0), (100, 50))


def test_there_is_no_such_file(tmp_path):
    with pytest.raises(ConfigError, match="nowhere"):
        load_rules(tmp_path / "nowhere.txt")


@given(place=st.integers(0, len(FILE)), cut=st.integers(0, 30), new=st.binary(max_size=8))
def test_a_damaged_file_is_read_or_refused(place, cut, new, tmp_path_factory):
    path = tmp_path_factory.mktemp("damaged") / "rules.txt"
    path.write_bytes(FILE[:place].encode() + new + FILE[place + cut :].encode())
    with suppress(ConfigError):
        rules = load_rules(path)
        assert rules.size is not None or rules.notices
