"""YAML loading by kubectl's rules. Errors name the line but never quote it, as it may hold a secret."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, ClassVar

import yaml

from windlass.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_DEPTH = 200  # far above any Kubernetes object, and below Python's recursion limit
MAX_NUMBER_LENGTH = 1_000  # characters; Python refuses to convert more than 4,300 digits
ALIAS_ALLOWANCE = 100_000  # values allowed beyond one per byte of text; stops alias bombs ("billion laughs")

_TOO_COMPLEX = "nested too deeply, or repeated too often by aliases"
_PLAIN_TAG = "plain"  # the tag of a scalar with neither quotes nor an explicit tag
_TAG_PREFIX = "tag:yaml.org,2002:"
_MERGE_KEY = "<<"
_Loader: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Composer(_Loader):  # type: ignore[valid-type,misc]
    """Parses text into YAML nodes; `_Constructor` turns them into values by kubectl's rules instead of PyYAML's."""

    yaml_implicit_resolvers: ClassVar[dict[None, list[tuple[str, re.Pattern[str]]]]] = {
        None: [(_PLAIN_TAG, re.compile(""))]
    }
    _depth = 0

    def descend_resolver(self, parent: yaml.Node | None, _index: object) -> None:
        """Limit the depth. PyYAML calls this for each node; without a limit the C composer overflows the stack."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem=_TOO_COMPLEX, problem_mark=parent.start_mark if parent else None)

    def ascend_resolver(self) -> None:
        self._depth -= 1


def load(content: bytes, where: str) -> object:
    """The single document in `content`, as JSON types; `None` if it is empty.

    `where` is the location for error messages. Raises `InvalidInput`.
    """
    try:
        root = _Composer(content).get_single_node()
    except yaml.MarkedYAMLError as error:
        raise _error_at(_syntax_problem(error, content), where, error.problem_mark) from None
    except (yaml.YAMLError, UnicodeError):
        raise InvalidInput("not a text file in UTF-8", where=where) from None
    return None if root is None else _Constructor(where, allowance=len(content) + ALIAS_ALLOWANCE).construct(root, 0)


def _syntax_problem(error: yaml.MarkedYAMLError, content: bytes) -> str:
    """The message of PyYAML without text of the file, and better ones for what happens most."""
    mark, problem = error.problem_mark, error.problem or "it cannot be parsed"
    if problem == "but found another document":
        return "a second document (---) begins here; this file must be one document"
    line = content.splitlines()[mark.line] if mark and mark.line < len(content.splitlines()) else b""
    if "cannot start any token" in problem and b"\t" in line[: len(line) - len(line.lstrip())]:
        return "this line is indented with a tab; YAML needs spaces"
    return "not valid YAML: " + re.sub(r"\s'[^']{3,}'", "", problem)  # some messages quote the text


class _Constructor:
    """Builds JSON values from YAML nodes."""

    def __init__(self, where: str, allowance: int) -> None:
        self._where = where
        self._allowance = allowance

    def construct(self, node: yaml.Node, depth: int) -> object:
        self._allowance -= 1
        if depth > MAX_DEPTH or self._allowance < 0:
            raise self._error(_TOO_COMPLEX, node)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if isinstance(node, yaml.MappingNode):
            self._require_tag(node, "map")
            return self._mapping(node, depth)
        self._require_tag(node, "seq")
        return [self.construct(item, depth + 1) for item in node.value]

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, object]:
        own: dict[str, object] = {}
        first_marks: dict[str, yaml.Mark] = {}
        merged: dict[str, object] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _PLAIN_TAG and key_node.value == _MERGE_KEY:
                for mapping in self._merge_sources(value_node, depth):
                    merged = mapping | merged  # in a list of mappings, the first one with a key wins
                continue
            key = self._key(key_node)
            if key in own:
                first = first_marks[key]
                raise self._error(f"this key is given twice (first at {first.line + 1}:{first.column + 1})", key_node)
            first_marks[key] = key_node.start_mark
            own[key] = self.construct(value_node, depth + 1)
        return merged | own if merged else own

    def _merge_sources(self, node: yaml.Node, depth: int) -> Iterator[dict[str, object]]:
        for source in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            mapping = self.construct(source, depth + 1)
            if not isinstance(mapping, dict):
                raise self._error("only mappings can be merged", source)
            yield mapping

    def _key(self, node: yaml.Node) -> str:
        value = self._scalar(node) if isinstance(node, yaml.ScalarNode) else None
        match value:
            case str():
                return value
            case bool():
                return str(value).lower()
            case int() | float():
                return f"{value:.17g}" if isinstance(value, float) and not value.is_integer() else str(int(value))
        raise self._error("a key must be a string, a number or a boolean", node)

    def _scalar(self, node: yaml.ScalarNode) -> object:
        if node.tag == _PLAIN_TAG:
            value = _plain_value(node.value)
        elif (parse := _TAG_PARSERS.get(node.tag)) is not None:
            value = parse(node.value)
            if value is _MISMATCH:
                raise self._error("a value that does not fit its tag", node)
        else:
            raise self._error("a tag that is not supported", node)
        if isinstance(value, float) and not math.isfinite(value):
            raise self._error("JSON has neither infinity nor NaN", node)
        return value

    def _require_tag(self, node: yaml.Node, kind: str) -> None:
        if node.tag != _TAG_PREFIX + kind:
            raise self._error("a tag that is not supported", node)

    def _error(self, what: str, node: yaml.Node) -> InvalidInput:
        return _error_at(what, self._where, node.start_mark)


def _error_at(what: str, where: str, mark: yaml.Mark | None) -> InvalidInput:
    return InvalidInput(what, where=f"{where}:{mark.line + 1}:{mark.column + 1}" if mark else where)


# The rest follows resolve() of sigs.k8s.io/yaml/goyaml.v2, without timestamps: kubectl turns those back into strings.

_MISMATCH = object()
_KEYWORDS: dict[str, object] = {
    **dict.fromkeys(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], True),
    **dict.fromkeys(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], False),
    **dict.fromkeys(["", "~", "null", "Null", "NULL"], None),
    **dict.fromkeys([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"], math.inf),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], math.nan),
}
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_DIGIT_SEPARATOR = re.compile("(?<=[0-9])_(?=[0-9])")
_INTEGERS: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile(r"([-+]?)0[xX]([0-9a-fA-F]+)"), 16),
    (re.compile(r"([-+]?)0[bB]([01]+)"), 2),
    (re.compile(r"([-+]?)0[oO]?([0-7]+)"), 8),
    (re.compile(r"([-+]?)(0|[1-9][0-9]*)"), 10),
)


def _plain_value(text: str) -> object:
    if text in _KEYWORDS:
        return _KEYWORDS[text]
    return _number(text) if text[0] in "+-.0123456789" else text


def _number(text: str) -> int | float | str:
    digits = _DIGIT_SEPARATOR.sub("", text) if text[0] == "." else text.replace("_", "")
    if len(digits) > MAX_NUMBER_LENGTH:
        return text
    for pattern, base in _INTEGERS:
        if (found := pattern.fullmatch(digits)) and -(2**63) <= (integer := int(found[1] + found[2], base)) < 2**63:
            return integer
    if _FLOAT.fullmatch(digits) and math.isfinite(number := float(digits)):
        return number
    return text


def _parser_for(*kinds: type) -> Callable[[str], object]:
    def parse(text: str) -> object:
        value = _plain_value(text)
        return value if type(value) in kinds else _MISMATCH

    return parse


_TAG_PARSERS: dict[str, Callable[[str], object]] = {
    _TAG_PREFIX + "str": str,
    _TAG_PREFIX + "int": _parser_for(int),
    _TAG_PREFIX + "float": _parser_for(int, float),
    _TAG_PREFIX + "bool": _parser_for(bool),
    _TAG_PREFIX + "null": _parser_for(type(None)),
    "!": str,
}
