"""What a Lua program can reach, what it is given, and what it may answer: tables."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from windlass.lua.interpreter import HEADER_SIZE, run_script, serve, syntax_error

OUT_OF_REACH = [
    *("package", "require", "load", "loadstring", "loadfile", "dofile", "debug", "io", "python", "collectgarbage"),
    *("coroutine", "bit32", "module", "string.dump", "math.random", "math.randomseed", "_G.load", "_G.python"),
    *("os.execute", "os.getenv", "os.exit", "os.remove", "os.rename", "os.tmpname", "os.setlocale", "os.clock"),
    *("getmetatable('').__index.dump", "_ENV.require", "_ENV.io"),
]


@pytest.mark.parametrize("name", OUT_OF_REACH)
def test_what_is_out_of_reach(name: str) -> None:
    assert run_script(f"return {{status = type({name})}}", {}) == {"status": "nil"}


def test_nothing_else_is_in_reach() -> None:
    found = run_script("local s = '' for k in pairs(_G) do s = s .. k .. ' ' end return {message = s}", {})
    assert found["message"] == (
        "_G _VERSION assert error getmetatable ipairs math next obj os pairs pcall print rawequal rawget rawlen rawset "
        "select setmetatable string table tonumber tostring type unpack xpcall "
    )
    assert run_script("return {status = next(os), message = tostring(next(os, 'time'))}", {}) == {
        "status": "time",
        "message": "nil",
    }


def test_what_one_program_leaves_behind_the_next_does_not_find() -> None:
    run_script("left = 1; string.find = nil; return nil", {})
    assert run_script("return {status = type(left) .. type(string.find)}", {}) == {"status": "nilfunction"}


@pytest.mark.parametrize(
    ("item", "words", "expected"),
    [
        ({"a": {"b": "ü"}}, "obj.a.b", "ü"),
        ({"a": 3}, "tostring(obj.a)", "3"),
        ({"a": 3}, "obj.a .. ''", "3"),
        ({"a": 12345678901234}, "tostring(obj.a)", "12345678901234"),
        ({"a": 1 << 70}, "tostring(obj.a == 2^70)", "true"),
        ({"a": 1.5}, "tostring(obj.a)", "1.5"),
        ({"a": True}, "type(obj.a)", "boolean"),
        ({"a": False}, "tostring(obj.a)", "false"),
        ({"a": None}, "type(obj.a)", "nil"),
        ({"a": []}, "type(obj.a) .. #obj.a", "table0"),
        ({"a": {}}, "type(obj.a) .. tostring(next(obj.a))", "tablenil"),
        ({"a": [5, 6, 7]}, "obj.a[1] .. obj.a[3] .. #obj.a", "573"),
        ({"a": [5, None, 7]}, "obj.a[2] .. #obj.a", "72"),
        ({"a": [1, 2]}, "tostring(table.getn(obj.a))", "2"),
        ({"a": [1, 2]}, "tostring(select('#', unpack(obj.a)))", "2"),
        ({"a": "\ud800"}, "obj.a", "?"),
        ({}, "type(os.time())", "number"),
        ({}, "('abc'):upper()", "ABC"),
        ({}, "type(print) .. #{print('x')}", "function0"),
        ({}, "'\\xff'", "\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_objects_are_plain_tables(item: Any, words: str, expected: str) -> None:
    assert run_script(f"return {{status = 'x', message = {words}}}", item) == {"status": "x", "message": expected}


def test_pairs_go_in_order_and_past_what_is_gone() -> None:
    item = {name: number for number, name in enumerate("qwertyuiopasdfghjklzxcvbnm")}
    walk = "local s = '' for k, v in pairs(obj) do s = s .. k; obj.c = nil end return {message = s}"
    assert run_script(walk, item) == {"message": "abdefghijklmnopqrstuvwxyz"}
    mixed = "local s = '' for k in pairs({[2] = 1, b = 1, [1] = 1, a = 1, [true] = 1}) do s = s .. tostring(k) end "
    assert run_script(mixed + "return {message = s}", {}) == {"message": "true12ab"}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("return {status = 'Healthy', message = 'well'}", {"status": "Healthy", "message": "well"}),
        ("hs = {}; hs.status = 'Healthy'; return hs", {"status": "Healthy"}),
        ("goto done; ::done:: return {status = 'a'}", {"status": "a"}),
        ("return nil", {}),
        ("return {}", {}),
        ("", {}),
        ("return 'Healthy'", {}),
        ("return {status = 3, message = {}}", {"status": "3", "message": "a table"}),
        ("return {status = print}", {"status": "a function"}),
        ("return setmetatable({}, {__index = {status = 'Healthy'}})", {}),
        ("\n\nerror('so it is')", {"error": "line 3: so it is"}),
        ("error({})", {"error": "it raised a table"}),
        ("return obj.status.phase", {"error": "line 1: attempt to index field 'status' (a nil value)"}),
        ("return =", {"error": "line 1: unexpected symbol near '='"}),
        ("\x1bLua", {"error": "attempt to load a binary chunk (mode is 't')"}),
        ("return {status = ('x'):rep(1e9)}", {"error": "not enough memory"}),
        ("local t = {} for i = 1, 1e9 do t[i] = i end", {"error": "not enough memory"}),
        ("local function f() return 1 + f() end return f()", {"error": "not enough memory"}),
    ],
)
def test_answers(script: str, expected: dict[str, str]) -> None:
    found = run_script(script, {})
    assert found.keys() == expected.keys()
    for name, words in expected.items():
        assert words in found[name]


def test_a_large_object_leaves_a_program_its_memory() -> None:
    item = {"a": [f"{number:0100}" for number in range(500_000)]}
    assert run_script("return {message = obj.a[500000] .. #('x'):rep(1e6)}", item) == {
        "message": f"{499_999:0100}1000000"
    }
    assert run_script("return {message = ('x'):rep(1e8)}", item) == {"error": "not enough memory"}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("return 1", None),
        ("while true do end", None),
        ("x = = 1", (1, "unexpected symbol near '='")),
        ("\n\nif x", (3, "'then' expected near <eof>")),
        ("\x1bLua", (1, "attempt to load a binary chunk (mode is 't')")),
    ],
)
def test_grammar(script: str, expected: tuple[int, str] | None) -> None:
    assert syntax_error(script) == expected


def test_requests_and_answers_have_their_lengths() -> None:
    asked = [json.dumps({"script": f"return {{message = obj.{name}}}", "object": {name: name}}) for name in "ab"]
    requests = b"".join(len(each).to_bytes(HEADER_SIZE) + each.encode() for each in asked)
    answers = io.BytesIO()
    serve(io.BytesIO(requests), answers)
    expected = [b"{}", b'{"message": "a"}', b'{"message": "b"}']
    assert answers.getvalue() == b"".join(len(each).to_bytes(HEADER_SIZE) + each for each in expected)
