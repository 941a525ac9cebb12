"""Plain technical English: words that no document, and no string, docstring or comment of the source, may contain.

To extend: add a word to BANNED, or a group of files to TEXTS. A word is banned only if it has no legitimate use here.
"""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BANNED = {
    r"somebody|someone|nobody|no one|whoever|everybody|whom": "name the actor: user, another client, a controller",
    r"mend(s|ed|ing)?": "fix, repair",
    r"amiss|sick": "degraded, not healthy",
    r"meanwhile|of before|of then|thereof|whereof": "before, after, since, during",
    r"is so|are so": "repeat the statement",
    r"shall|ought": "must, may, cannot",
    r"wish(es|ed)?|tidings": "request, message",
    r"the story of|plays? a part": "run, simulate",
    r"lowers? (it|the platform)|rais(e|es|ed|ing) (it|the platform|a platform)": "remove, deploy",
    r"by heart|a word on|has the last word|held to": "say what happens",
    r"severed|it is there|(is|are) to go|holds? (it |them )?back|held back": "lost, exists, is removed, blocks",
    r"whether it lives|last sign|does not get its turn": "runs, status, is not started",
    r"no mistakes|a list of mistakes": "errors, problems",
}
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
TEXTS = {
    path.relative_to(ROOT).as_posix(): path
    for path in (
        *(ROOT / name for name in (*PAGES, "Makefile", "pyproject.toml")),
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "docs/schemas").glob("*.json")),
    )
}

SOURCES = {path.relative_to(ROOT).as_posix(): path for path in sorted((ROOT / "src").rglob("*.py"))}
_PROSE_TOKENS = {tokenize.STRING, tokenize.COMMENT}


def prose(source: str) -> str:
    """The strings, docstrings and comments of a module, each on the lines where it is; names are not prose."""
    lines = [""] * (source.count("\n") + 2)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in _PROSE_TOKENS:
            for number, line in enumerate(token.string.split("\n"), token.start[0]):
                lines[number - 1] += f" {line}"
    return "\n".join(lines)


def found_words(text: str) -> list[str]:
    """Each banned word with its line and its replacement. Links and names of tests in code style are not text."""
    prose = re.sub(r"`test_\w+`|\]\([^)]*\)", "", text)
    return [
        f"line {number}: {match[0]!r}: {replacement}"
        for number, line in enumerate(prose.splitlines(), 1)
        for words, replacement in BANNED.items()
        for match in re.finditer(rf"\b({words})\b", line, re.IGNORECASE)
    ]


@pytest.mark.parametrize("name", TEXTS)
def test_no_document_contains_a_banned_word(name: str) -> None:
    assert not found_words(TEXTS[name].read_text())


@pytest.mark.parametrize("name", SOURCES)
def test_no_source_contains_a_banned_word_in_its_prose(name: str) -> None:
    assert not found_words(prose(SOURCES[name].read_text()))


def test_prose_of_a_module_is_its_strings_and_comments() -> None:
    assert (
        found_words(prose('nobody = 1\nx = "nobody"  # nobody\n'))
        == ["line 2: 'nobody': name the actor: user, another client, a controller"] * 2
    )


def test_a_banned_word_is_found_with_its_line() -> None:
    assert found_words("fine\nNobody mends it: `test_nobody_does`") == [
        "line 2: 'Nobody': name the actor: user, another client, a controller",
        "line 2: 'mends': fix, repair",
    ]
