"""Counts the steps that a backtracking engine takes for a pattern: an assertion about cost that needs no clock.

Only what our patterns use is implemented. Python's engine takes the same steps or fewer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_PARSER: Any = re._parser  # type: ignore[attr-defined]
_SINGLE = {"LITERAL", "NOT_LITERAL", "ANY", "IN"}
_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_NOT_SPACE": lambda character: not character.isspace(),
    "CATEGORY_DIGIT": str.isdigit,
    "CATEGORY_WORD": lambda character: character.isalnum() or character == "_",
}

Item = tuple[Any, Any]


def count_steps(pattern: re.Pattern[str], text: str) -> int:
    """The steps to find all matches of the pattern in the text."""
    counter = _Counter(text, ignore_case=bool(pattern.flags & re.IGNORECASE))
    tree, position = _PARSER.parse(pattern.pattern, pattern.flags), 0
    while position <= len(text):
        end = next(counter.ends(tree, 0, position), None)
        position = position + 1 if end is None or end == position else end
    return counter.steps


def own_adversaries(pattern: re.Pattern[str]) -> list[str]:
    """The beginnings of texts that the pattern matches: repeated, they let it begin often and fail late."""
    tree = _PARSER.parse(pattern.pattern, pattern.flags)
    alphabet = "".join(dict.fromkeys(["a", "0", " ", *_literals(tree)]))
    return sorted({text[:end] for text in _samples(tree, alphabet) for end in range(1, len(text) + 1)})


def backtracking_parts(pattern: re.Pattern[str]) -> list[str]:
    """The unlimited repetitions of the pattern that give back what they took when what follows does not match."""
    return list(_backtracking(_PARSER.parse(pattern.pattern, pattern.flags), has_more=False))


def _backtracking(items: Sequence[Item], *, has_more: bool) -> Iterator[str]:
    for number, (operation, argument) in enumerate(items):
        is_followed = has_more or number + 1 < len(items)
        match str(operation):
            case "SUBPATTERN":
                yield from _backtracking(argument[3], has_more=is_followed)
            case "BRANCH":
                for branch in argument[1]:
                    yield from _backtracking(branch, has_more=is_followed)
            case "ASSERT" | "ASSERT_NOT":
                yield from _backtracking(argument[1], has_more=False)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT" as name:
                least, most, body = argument
                if name == "MAX_REPEAT" and int(most) > max(int(least), 2) and is_followed:
                    yield str(argument)
                yield from _backtracking(body, has_more=is_followed or int(most) > 1)


def _literals(items: Any) -> Iterator[str]:
    """Every character that the pattern names."""
    if isinstance(items, tuple) and len(items) == 2 and str(items[0]) in {"LITERAL", "NOT_LITERAL"}:
        yield chr(items[1])
    elif isinstance(items, list | tuple | _PARSER.SubPattern):
        for item in items:
            yield from _literals(item)


def _samples(items: Sequence[Item], alphabet: str) -> list[str]:
    """Texts that match: the first choice of every item, and each other choice of one item."""
    choices = [_choices(*item, alphabet) for item in items]
    first = [options[0] for options in choices]
    return [
        "".join([*first[:number], option, *first[number + 1 :]])
        for number, options in enumerate(choices)
        for option in options[number > 0 :]
    ] or [""]


def _choices(operation: Any, argument: Any, alphabet: str) -> list[str]:
    match str(operation):
        case "LITERAL":
            return [chr(argument)]
        case name if name in _SINGLE:
            fitting = [character for character in alphabet if _is_in(name, argument, character)]
            return fitting or [next(chr(code) for code in range(0x110000) if _is_in(name, argument, chr(code)))]
        case "SUBPATTERN":
            return _samples(argument[3], alphabet)
        case "BRANCH":
            return [text for branch in argument[1] for text in _samples(branch, alphabet)]
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, most, items = argument
            return [text * min(int(most), max(int(least), 2)) for text in _samples(items, alphabet)]
    return [""]  # a place, or what stands beside it


class _Counter:
    def __init__(self, text: str, *, ignore_case: bool) -> None:
        self._text = text
        self._ignore_case = ignore_case
        self.steps = 0

    def ends(self, items: Sequence[Item], index: int, position: int) -> Iterator[int]:
        """Where a match of the items from `index` on may end, in the order of a backtracking engine."""
        if index == len(items):
            yield position
            return
        for end in self._item_ends(*items[index], position):
            yield from self.ends(items, index + 1, end)

    def _item_ends(self, operation: Any, argument: Any, position: int) -> Iterator[int]:
        self.steps += 1
        match str(operation):
            case name if name in _SINGLE:
                yield from (position + 1,) if self._fits(name, argument, position) else ()
            case "AT":
                yield from (position,) if self._is_at(str(argument), position) else ()
            case "SUBPATTERN":
                yield from self.ends(argument[3], 0, position)
            case "BRANCH":
                for branch in argument[1]:
                    yield from self.ends(branch, 0, position)
            case "ASSERT" | "ASSERT_NOT" as name:
                yield from (
                    (position,) if self._is_beside(argument[0], argument[1], position) == (name == "ASSERT") else ()
                )
            case "MAX_REPEAT" | "MIN_REPEAT" as name:
                least, most, items = argument
                ends = self._repeat_ends(int(least), int(most), items, position)
                yield from ends if name == "MIN_REPEAT" else reversed(list(ends))
            case "POSSESSIVE_REPEAT":
                least, most, items = argument
                yield from list(self._repeat_ends(int(least), int(most), items, position))[-1:]
            case other:
                raise NotImplementedError(other)

    def _repeat_ends(self, least: int, most: int, items: Sequence[Item], position: int) -> Iterator[int]:
        """Shortest first; each repetition takes the first way that fits, which is exact for our patterns."""
        for number in range(most + 1):
            if number >= least:
                yield position
            end = next(self.ends(items, 0, position), None)
            if end is None:
                return
            position = end

    def _is_at(self, kind: str, position: int) -> bool:
        if kind in {"AT_END_STRING", "AT_END"}:
            return position == len(self._text)
        if kind in {"AT_BEGINNING", "AT_BEGINNING_STRING"}:
            return position == 0
        assert kind == "AT_BOUNDARY"
        around = [self._text[max(0, position - 1) : position], self._text[position : position + 1]]
        before, after = (bool(each) and _CATEGORIES["CATEGORY_WORD"](each) for each in around)
        return before != after

    def _is_beside(self, direction: int, items: Sequence[Item], position: int) -> bool:
        """Whether the items match after the position, or before it if the direction is -1; then they are one long."""
        start = position - (direction < 0)
        return start >= 0 and next(self.ends(items, 0, start), None) is not None

    def _fits(self, name: str, argument: Any, position: int) -> bool:
        character = self._text[position : position + 1]
        if not character:
            return False
        variants = {character, character.lower(), character.upper()} if self._ignore_case else {character}
        return any(_is_in(name, argument, variant) for variant in variants)


def _is_in(name: str, argument: Any, character: str) -> bool:
    match name:
        case "ANY":
            return True
        case "LITERAL":
            return bool(ord(character) == argument)
        case "NOT_LITERAL":
            return bool(ord(character) != argument)
        case "RANGE":
            return bool(argument[0] <= ord(character) <= argument[1])
        case "CATEGORY":
            return _CATEGORIES[str(argument)](character)
    is_negated = str(argument[0][0]) == "NEGATE"
    return any(_is_in(str(kind), value, character) for kind, value in argument[is_negated:]) != is_negated
