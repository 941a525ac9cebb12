"""Plain technical English: words that no document may contain.

To extend: add a word to BANNED, or a group of files to TEXTS. A word is banned only if it has no legitimate use here.
"""

from __future__ import annotations

import re
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


def test_a_banned_word_is_found_with_its_line() -> None:
    assert found_words("fine\nNobody mends it: `test_nobody_does`") == [
        "line 2: 'Nobody': name the actor: user, another client, a controller",
        "line 2: 'mends': fix, repair",
    ]
