"""Text of other programs cannot control a terminal, add a line, or give a command to a CI system."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.printable_text import one_line, printable, printed_line, printed_text, shortened

ANY_TEXT = st.text(st.characters())  # lone surrogates too
COMMANDS = ("##vso[", "##[", "##teamcity[")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("täglich 100 % … \U0001f600", "täglich 100 % … \U0001f600"),
        ("\x1b[1;31mred\x1b[0m, \x9b31mred", "red, red"),
        ("\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x07, \x9d0;title\x9ctext", "link, text"),
        ("\x1b]0;never ended", " ]0;never ended"),
        ("\x1bMup \x1b_app\x1b\\", "up app"),
        ("a\x00b\x7fc\x85d\x9ee", "a b c d e"),
        ("a\u202eb\u2066c\u200bd\ufeffe\u00adf", "a b c d e f"),
        ("a\u2028b\u2029c\r\nd", "a b c  d"),
        ("a\ud800b", "a b"),
    ],
)
def test_a_text_is_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(ANY_TEXT)
def test_any_text_is_printable_and_stays_so(text: str) -> None:
    assert printable(text).isprintable()
    assert printable(printable(text)) == printable(text)
    assert one_line(text) == " ".join(one_line(text).split())


@pytest.mark.parametrize(
    ("text", "start", "end", "short"),
    [
        ("abcdef", 6, 0, "abcdef"),
        ("abcdef", 3, 3, "abcdef"),
        ("abcdefg", 3, 3, "abc … efg"),
        ("abcdefg", 3, 0, "abc…"),
        ("abcdefg", 0, 3, "…efg"),
    ],
)
def test_a_long_text_shows_its_start_and_its_end(text: str, start: int, end: int, short: str) -> None:
    assert shortened(text, start, end) == short


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("::error::no", ": :error::no"),
        (" \t::add-mask::x", "  : :add-mask::x"),
        ("ns::name is fine", "ns::name is fine"),
        ("a ##[group]b", "a ## [group]b"),
        ("##vso[task.setvariable]x ##VSO[y]", "## vso[task.setvariable]x ## VSO[y]"),
        ("x ##teamcity[message]", "x ## teamcity[message]"),
        ("section_start:1:x", "section_start :1:x"),
        (" section_end:1:x", " section_end :1:x"),
        ("## heading", "## heading"),
        ("\x1b[0Ksection_start:1:x\r\x1b[0K", "section_start :1:x "),
        ("\x00::stop-commands::x", " : :stop-commands::x"),
    ],
)
def test_a_line_is_no_command_to_a_ci_system(line: str, written: str) -> None:
    assert printed_line(line) == written


@given(st.lists(st.sampled_from([":", "::", "#", "[", "vso", "\n", " ", "\x1b", "[0m", "\u200b", *COMMANDS])))
def test_no_text_starts_a_command(parts: list[str]) -> None:
    for line in printed_text("".join(parts)).split("\n"):
        assert line.isprintable()
        assert not line.strip().startswith("::")
        assert not any(command in line for command in COMMANDS)
