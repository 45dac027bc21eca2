"""The INI reader against measured rules, a small oracle of our own, and GLib itself."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.config.document import Document
from headrace.config.ini_groups import read_keyfile
from headrace.config.values import BadValueError, Kind, parse_ini
from tests.config import glib_oracle
from tests.profiles import examples

PATH = Path("model.txt")
needs_glib = pytest.mark.skipif(not glib_oracle.available(), reason="libglib-2.0 is not installed")


def read(text: str | bytes) -> Document:
    return read_keyfile(text if isinstance(text, bytes) else text.encode(), PATH)


def entries(document: Document) -> dict[str, dict[str, str]]:
    return {
        name: {key: entry.text for key, entry in group.last().items()}
        for name, group in document.groups.items()
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n  # note\n## more\n\t#x\n[g]\nk=1", {"g": {"k": "1"}}),
        ("[g]\n;key=1", {"g": {";key": "1"}}),
        ("[g]\n \tk \t= \t1", {"g": {"k": "1"}}),
        ("  [g]\t \nk=1", {"g": {"k": "1"}}),
        ("[ g ]\nk=1", {" g ": {"k": "1"}}),
        ("[G]\nK=1\nk=2", {"G": {"K": "1", "k": "2"}}),
        ("[g]\na=1\n[h]\n[g]\nb=2", {"g": {"a": "1", "b": "2"}, "h": {}}),
        ("[g]\nk=1\nk=2", {"g": {"k": "2"}}),
        ("[g]\na=b=c", {"g": {"a": "b=c"}}),
        ("[g]\r\nk=1\r\n", {"g": {"k": "1"}}),
        ("[g]\nk=1\r", {"g": {"k": "1\r"}}),
        ("[g]\nk=1  ", {"g": {"k": "1  "}}),
        ("[g]\nk=", {"g": {"k": ""}}),
        ("[g]\nk[de]=1\nj=2", {"g": {"j": "2"}}),
        ("[g]\na_b=1\nc.d=2\ne f=3", {"g": {"a_b": "1", "c.d": "2", "e f": "3"}}),
        ("", {}),
        ('[g]\nk="x"', {"g": {"k": '"x"'}}),
        ("[g]\nk=$HOME ~", {"g": {"k": "$HOME ~"}}),
        ("[g]\nk=%(x)s", {"g": {"k": "%(x)s"}}),
    ],
)
def test_accepted_lines(text: str, expected: dict[str, dict[str, str]]) -> None:
    document = read(text)
    assert not document.problems
    assert entries(document) == expected


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[g]\n; text", 2, "comments start with #"),
        ("[g]\n// text", 2, "comments start with #"),
        ("[g]\nkey: value", 2, "colon"),
        ("[g]\n\nkey", 3, "not key=value"),
        ("[g]\n=value", 2, "name of the key is missing"),
        ("#x\nk=1\n[g]", 2, "before the first group"),
        ("[g] # note\nk=1", 1, "a comment needs its own line"),
        ("[g\nk=1", 1, "not a group line"),
        ("[g]\nk=a\\\n  b", 3, "cannot continue"),
        (b"\xef\xbb\xbf[g]\nk=1", 1, "byte order mark"),
        (b"[g]\nk=\0", 2, "NUL"),
        ("[g]\nk[de=1", 2, "not a key name"),
        ("[]\n", 1, "not a group line"),
    ],
)
def test_refused_lines(text: str | bytes, line: int, words: str) -> None:
    (problem,) = read(text).problems
    assert problem.where == f"model.txt:{line}"
    assert words in str(problem)


def test_reading_goes_on_behind_a_refused_line() -> None:
    document = read("[g] # note\na=1\nwhat\nb=2\n: x\n")
    assert [p.where for p in document.problems] == ["model.txt:1", "model.txt:3", "model.txt:5"]
    assert entries(document) == {"g": {"a": "1", "b": "2"}}


def test_line_numbers_and_repeated_keys() -> None:
    group = read("# x\n[g]\n\nk=1\n[h]\n[g]\nk=2\n").groups["g"]
    assert (group.line, [e.line for e in group.entries]) == (2, [4, 7])
    ((first, second),) = group.repeated()
    assert (first.text, second.text) == ("1", "2")


def test_yaml_under_another_name_is_recognised() -> None:
    problems = read("property:\n  gpu-id: 0\n  batch-size: 1\n").problems
    assert "Is this YAML?" in str(problems[0])


OK = {
    Kind.INT: {
        "0": 0,
        "2147483647": 2147483647,
        "-2147483648": -2147483648,
        "+5": 5,
        "010": 10,
        "1 # note": 1,
        "1 ": 1,
        "0" * 5000 + "7": 7,
    },
    Kind.FLAG: {"true": True, "false": False, "1": True, "0": False, "1 \t": True},
    Kind.INT_FLAG: {"0": False, "7": True, "-1": True},
    Kind.FLOAT: {
        "0.0039": 0.0039,
        "1e-3": 1e-3,
        ".5": 0.5,
        "5.": 5.0,
        "0x1p3": 8.0,
        "inf": math.inf,
        "-Infinity": -math.inf,
        "1e999": math.inf,
        "0x1p99999": math.inf,
    },
    Kind.STRING: {
        "a b ": "a b ",
        r"\sa\n\t\r\\": " a\n\t\r\\",
        '"q"': '"q"',
        "": "",
        "name # note": "name # note",
    },
    Kind.INTS: {
        "3;640;640": (3, 640, 640),
        "3;640;640;": (3, 640, 640),
        "3 ; 640; 640 # note": (3, 640, 640),
        "": (),
        "0 1 2": (0,),
    },
    Kind.FLOATS: {"0.5; 0.5": (0.5, 0.5), "1;": (1.0,), "": ()},
    Kind.STRINGS: {
        "a; b ;c": ("a", " b ", "c"),
        r"a\;b;c;": ("a;b", "c"),
        "a;;b": ("a", "", "b"),
        "": (),
        ";": ("",),
    },
}

REFUSED = {
    Kind.INT: [
        "",
        "1.0",
        "1e3",
        "0x10",
        "1#note",
        "1;",
        "true",
        "2147483648",
        "-2147483649",
        "9" * 5000,
        "١",
    ],
    Kind.FLAG: ["True", "TRUE", "yes", "on", "2", "01", "", "1 # note", "1;"],
    Kind.INT_FLAG: ["true", ""],
    Kind.FLOAT: ["", "0,5", "1/255", "1;", "0.5f", "1 ", "1 # note", "1e", "0x", "."],
    Kind.STRING: [r"C:\models", "a\\", r"a\;b", "\udcff"],
    Kind.INTS: ["0;;2", ";0", ";", "3;640;640;;", "0,1,2", "1.5", "1;2147483648"],
    Kind.FLOATS: [" 1 ; 2", "0;0;0 ", "0;;0", "0,5,1", "1;2 # note"],
    Kind.STRINGS: [r"a\q;b", "\udcff;"],
}


@pytest.mark.parametrize(
    ("kind", "text", "expected"), [(k, t, v) for k, table in OK.items() for t, v in table.items()]
)
def test_accepted_values(kind: Kind, text: str, expected: object) -> None:
    assert parse_ini(kind, text) == expected


@pytest.mark.parametrize(("kind", "text"), [(k, t) for k, texts in REFUSED.items() for t in texts])
def test_refused_values(kind: Kind, text: str) -> None:
    with pytest.raises(BadValueError):
        parse_ini(kind, text)


@pytest.mark.parametrize(
    ("kind", "text", "hint"),
    [
        (Kind.FLOAT, "1/255", "0.00392156862745098"),
        (Kind.FLOAT, "0,5", "0.5"),
        (Kind.FLOAT, "0.5 ", "remove the blank"),
        (Kind.FLAG, "1 # on", "own line"),
        (Kind.FLAG, "True", "write true or 1"),
        (Kind.INTS, "3,4,5", "3;4;5"),
        (Kind.INTS, "3;;5", "empty item"),
        (Kind.INT, "1.0", "without dot"),
    ],
)
def test_refusals_say_how_to_mend(kind: Kind, text: str, hint: str) -> None:
    with pytest.raises(BadValueError) as caught:
        parse_ini(kind, text)
    assert hint in (caught.value.fix or "")


LINE = st.one_of(
    st.sampled_from(["[g]", "[h] ", "[g] x", "#c", "", "k=1", " k = 2 ", "=1", "k", "k[de]=1"]),
    st.text(alphabet="[]=#; \tabK-_.\r\x0b\x0cé", max_size=12),
)
FILE = st.lists(LINE, max_size=8).map("\n".join)


@given(FILE)
def test_lines_against_a_slow_oracle(text: str) -> None:
    """A line is a comment, a group, a pair, or refused; told here character by character."""

    def kind_of(line: str) -> str:
        if not line or line[0] == "#":
            return "nothing"
        if line[0] == "[":
            name, closed, rest = line[1:].partition("]")
            fine = closed and name and "[" not in name and all(c >= " " for c in name)
            return "group" if fine and not rest.strip(" \t") else "refused"
        return "pair" if line.find("=") > 0 else "refused"

    lines = text.split("\n")
    stripped = [
        (raw[:-1] if raw[-1:] == "\r" and n < len(lines) - 1 else raw).lstrip(" \t\f\r")
        for n, raw in enumerate(lines)
    ]
    kinds = [kind_of(line) for line in stripped]
    document = read(text)
    refused = {p.where for p in document.problems}
    for number, kind in enumerate(kinds, 1):
        if kind == "refused":
            assert f"model.txt:{number}" in refused
        if kind in ("nothing", "group"):
            assert f"model.txt:{number}" not in refused
    seen = {e.line for g in document.groups.values() for e in g.entries}
    assert seen <= {n for n, kind in enumerate(kinds, 1) if kind == "pair"}


@needs_glib
@settings(max_examples=examples(400))
@given(FILE)
@example("[g]\nEncoding=x")
@example("[g]\nEncoding=utf-8\n[h]\nEncoding=x")
@example("[g=1]\na=1")
def test_same_groups_and_keys_as_glib(text: str) -> None:
    theirs = glib_oracle.load(text.encode())
    document = read(text)
    if theirs is None:
        assert document.problems
        return
    assert not document.problems
    ours = {
        name.encode(): {k.encode(): v.encode() for k, v in keys.items()}
        for name, keys in entries(document).items()
    }
    # GLib keeps a translation for the language it runs in; nobody asks for one here
    assert ours == {g: {k: v for k, v in keys if b"[" not in k} for g, keys in theirs}
    order = {g.encode(): [e.key.encode() for e in d.entries] for g, d in document.groups.items()}
    # the order in which keys first appear is the order in which they are visited
    assert {g: list(dict.fromkeys(keys)) for g, keys in order.items()} == {
        g: list(dict.fromkeys(k for k, _ in keys if b"[" not in k)) for g, keys in theirs
    }


GLIB_KINDS = {
    Kind.INT: "integer",
    Kind.FLAG: "boolean",
    Kind.FLOAT: "double",
    Kind.STRING: "string",
    Kind.INTS: "integer_list",
    Kind.FLOATS: "double_list",
    Kind.STRINGS: "string_list",
}
VALUE = st.one_of(
    st.text(alphabet="01259.;,-+ex \t\\snrtq#\x0b\x0cé", max_size=8),
    st.sampled_from([t for table in OK.values() for t in table if "٠" not in t]),
    st.from_regex(r"\A[+-]?(0x)?[0-9a-f]*\.?[0-9]*(e|p)?[+-]?[0-9]*;?\Z"),
    st.sampled_from(["inf", "-INF", "infinity", "infinit", "nan", "nan()", "nan(x_1)", "nan(-)"]),
)


@needs_glib
@settings(max_examples=examples(800))
@given(st.sampled_from(sorted(GLIB_KINDS, key=str)), VALUE)
def test_same_values_as_glib(kind: Kind, text: str) -> None:
    text = text.lstrip(" \t\f\r")
    try:
        theirs = glib_oracle.value(GLIB_KINDS[kind], text.encode())
    except ValueError:
        with pytest.raises(BadValueError):
            parse_ini(kind, text)
        return
    ours = parse_ini(kind, text)
    if kind is Kind.STRINGS:
        ours = [item.encode() for item in ours]
    elif kind is Kind.STRING:
        ours = ours.encode()
    elif isinstance(ours, tuple):
        ours = list(ours)
    if kind in (Kind.FLOAT, Kind.FLOATS):
        assert repr(ours).replace("-nan", "nan") == repr(theirs).replace("-nan", "nan")
    else:
        assert ours == theirs
