"""YAML as kubectl reads it."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windlass.errors import InvalidInput
from windlass.kube import yaml_documents

SCALARS: list[tuple[str, object]] = [
    *[(word, True) for word in ["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"]],
    *[(word, False) for word in ["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"]],
    *[(word, None) for word in ("~", "null", "Null", "NULL")],
    *[
        (word, word)
        for word in ("tRue", "yES", "nULL", "oN", "none", "t", "f", "<<", "=", ".", "+", "1:30", "_1", "a_1")
    ],
    *[
        (word, word)
        for word in ("12:30:45", "2020-01-01", "2001-12-14t21:59:43.10-05:00", "1.2.3", "0x", "0b", "0o", "1e")
    ],
    ("'yes'", "yes"),
    ('"017"', "017"),
    ("''", ""),
    ("0", 0),
    ("-0", 0),
    ("+1", 1),
    ("017", 15),
    ("-017", -15),
    ("0o17", 15),
    ("0O17", 15),
    ("+0o17", 15),
    ("0o8", "0o8"),
    ("08", 8.0),
    ("00", 0),
    ("0_7", 7),
    ("0x1F", 31),
    ("0X1f", 31),
    ("-0x1F", -31),
    ("0x_1", 1),
    ("0b11", 3),
    ("-0b11", -3),
    ("0b1_0", 2),
    ("1_000", 1000),
    ("1__0", 10),
    ("1_", 1),
    ("1e3", 1000.0),
    ("1E3", 1000.0),
    ("1e+3", 1000.0),
    ("1.5e3", 1500.0),
    ("1.e3", 1000.0),
    ("1e3_0", 1e30),
    ("1e-7", 1e-7),
    ("1e400", "1e400"),
    ("1.", 1.0),
    (".5", 0.5),
    ("-.5", -0.5),
    ("+.5", 0.5),
    (".5_0", 0.5),
    ("._5", "._5"),
    (".5_", ".5_"),
    ("0_x1", 1),
    ("1.5_0", 1.5),
    ("017.5", 17.5),
    ("9007199254740993", 9007199254740993),
    ("9223372036854775807", 9223372036854775807),
    ("9223372036854775808", 9223372036854775808.0),
    ("0777777777777777777777777", 7.77777777777777777777777e23),
    ("!!str 17", "17"),
    ('!!int "17"', 17),
    ("!!float 3", 3),
    ("!!bool yes", True),
    ("!!null ~", None),
]


@pytest.mark.parametrize(("text", "value"), SCALARS, ids=[text for text, _ in SCALARS])
def test_a_scalar_is_what_kubectl_makes_of_it(text: str, value: object) -> None:
    read = yaml_documents.load(f"a: {text}\n".encode(), "f")
    assert read == {"a": value}
    assert type(read["a"]) is type(value)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_agrees_with_the_table() -> None:
    lines = "".join(f"  k{number}: {text}\n" for number, (text, _) in enumerate(SCALARS))
    document = f"apiVersion: x.io/v1\nkind: X\nmetadata: {{name: x}}\nspec:\n{lines}"
    command = ["kubectl", "label", "--local", "-f", "-", "-o", "json", "a=b"]
    said = subprocess.run(command, input=document, capture_output=True, text=True, check=True, timeout=30).stdout
    spec = json.loads(said)["spec"]
    expected = {f"k{number}": value for number, (_, value) in enumerate(SCALARS)}
    for key, value in expected.items():
        assert (float(spec[key]) if isinstance(value, float) else spec[key]) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("# nothing\n", None),
        ("---\n", None),
        ("a:\n", {"a": None}),
        ("{1: a, on: b, 1.5: c, 1e3: d, 017: e}", {"1": "a", "true": "b", "1.5": "c", "1000": "d", "15": "e"}),
        ('{\n\t"a": [1, {"b": null}]\n}\n', {"a": [1, {"b": None}]}),
        ("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
        ("<<: [{a: 1}, {a: 2, b: 2}]\nc: 3", {"a": 1, "b": 2, "c": 3}),
        ("\ufeffa: ü", {"a": "ü"}),
        ("a: |\n  yes\n", {"a": "yes\n"}),
    ],
)
def test_a_document_becomes_json_types(text: str, value: object) -> None:
    assert yaml_documents.load(text.encode(), "f") == value


def test_what_an_alias_repeats_is_not_shared() -> None:
    read: Any = yaml_documents.load(b"a: &x [1]\nb: *x\n", "f")
    read["a"].append(2)
    assert read["b"] == [1]


BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n + 1}: &a{n + 1} [*a{n}, *a{n}]\n" for n in range(30))


@pytest.mark.parametrize(
    ("content", "where", "what"),
    [
        (b"a: s3cret: b", "f:1:10", "not valid YAML: mapping values are not allowed in this context"),
        (b"token: *s3cret", "f:1:8", "not valid YAML: found undefined alias"),
        (b"a: 1\ntoken: @s3cret", "f:2:8", "not valid YAML: found character that cannot start any token"),
        (b"a: [s3cret", "f:2:1", "not valid YAML"),
        (b"a: 1\n---\ns3cret: 2", "f:2:1", "a second document (---) begins here; this file must be one document"),
        (b"s3cret: 1\nb: 1\ns3cret: 2\n", "f:3:1", "this key is given twice (first at 1:1)"),
        (b"yes: 1\ntrue: s3cret\n", "f:2:1", "this key is given twice (first at 1:1)"),
        (b"a: {b: 1, b: s3cret}", "f:1:11", "this key is given twice (first at 1:5)"),
        (b"a:\n\tb: s3cret", "f:2:1", "this line is indented with a tab; YAML needs spaces"),
        (b"? [s3cret]\n: 1", "f:1:3", "a key must be"),
        (b"~: s3cret", "f:1:1", "a key must be"),
        (b"a: !s3cret x", "f:1:4", "a tag that is not supported"),
        (b"a: !s3cret [x]", "f:1:4", "a tag that is not supported"),
        (b"a: !!set {s3cret}", "f:1:4", "a tag that is not supported"),
        (b"a: !!binary czNjcmV0", "f:1:4", "a tag that is not supported"),
        (b"a: !!int s3cret", "f:1:4", "a value that does not fit its tag"),
        (b"a: .inf", "f:1:4", "JSON has neither infinity nor NaN"),
        (b"a: .nan", "f:1:4", "JSON has neither infinity nor NaN"),
        (b"<<: s3cret", "f:1:5", "only mappings can be merged"),
        (b"a: &a [*a]", "f:1:4", "nested too deeply"),
        (BOMB.encode(), "f:1:", "nested too deeply"),
        (b"[" * 100_000 + b"]" * 100_000, "f:1:200", "not valid YAML: nested too deeply"),
        (b"\x00\x01\x02s3cret", "f", "not a text file in UTF-8"),
        (b"a: s3cret\xff", "f", "not a text file in UTF-8"),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_a_mistake_is_named_with_its_place_and_never_shown(content: bytes, where: str, what: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        yaml_documents.load(content, "f")
    assert caught.value.where.startswith(where)
    assert what in caught.value.what
    assert "s3cret" not in f"{caught.value} {caught.value!r} {caught.value.__cause__!r}"


@pytest.mark.parametrize("digits", [25, 1_001, 4_301, 1_000_000])
@pytest.mark.parametrize("form", ["{}", "-{}", "0x{}", "0{}", "{}.0", "1e{}", "{}_0", "!!str {}"])
def test_a_number_of_any_length_is_read(form: str, digits: int) -> None:
    text = form.format("7" * digits)
    value = yaml_documents.load(f"a: {text}".encode(), "f")
    assert isinstance(value, dict)
    assert isinstance(value["a"], float | str)


def test_a_long_number_does_not_fit_an_integer_tag() -> None:
    with pytest.raises(InvalidInput, match="does not fit its tag"):
        yaml_documents.load(b"a: !!int " + b"7" * 5_000, "f")


@given(st.binary())
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        yaml_documents.load(content, "f")
    except InvalidInput as refused:
        where = refused.where
    else:
        where = "f"
    assert where.startswith("f")


SCALAR = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text("abc: #\n\"'-é", max_size=9)


@settings(max_examples=50)
@given(st.lists(SCALAR | st.lists(SCALAR, max_size=3), max_size=5))
def test_json_is_read_as_what_it_is(value: Any) -> None:
    assert yaml_documents.load(json.dumps({"a": value}).encode(), "f") == {"a": value}
