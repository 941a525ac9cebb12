"""Every text that the server sends is hostile: no line that a command prints controls a terminal or a CI system."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from tests.cli.test_canaries import COMMANDS, COMMIT, hostile_answers
from tests.kube.loopback_servers import serving
from tests.processes import windlass
from windlass.printable_text import MAX_MESSAGE_LENGTH

if TYPE_CHECKING:
    from pathlib import Path

CI_COMMANDS = ("::error::", "::add-mask::", "##vso[x]", "##[group]", "##teamcity[x]", "section_start:1:x")
HOSTILE = "".join(
    f"{start}{command}"
    for command in CI_COMMANDS
    for start in (
        "\n",
        "\r\n",
        "\n \t",
        "\u2028",
        "\x85",
        "\x1b[2K\r",
        "\x1b]0;title\x07\n",
        "\u202e\u200b\x9b31m\x00\x7f",
    )
)
LONGEST_LINE = 4 * MAX_MESSAGE_LENGTH  # a line may contain several messages


def assert_harmless(output: str) -> None:
    assert "Traceback" not in output
    for line in output.split("\n"):
        assert line.isprintable()
        assert len(line) <= LONGEST_LINE
        assert not line.lstrip().startswith(("::", "section_start:"))
        assert not any(command in line for command in CI_COMMANDS if command.startswith("##"))


@pytest.mark.parametrize("size", [1, 400_000], ids=["short", "400 kB"])
@pytest.mark.parametrize("is_broken", [False, True], ids=["answers", "errors"])
async def test_no_line_is_hostile(tmp_path: Path, is_broken: bool, size: int) -> None:
    text = f"at {COMMIT}: {HOSTILE * (1 + size // len(HOSTILE))}"
    outputs: dict[tuple[str, ...], tuple[str, str]] = {}
    async with serving(hostile_answers(text, is_broken=is_broken)) as server:
        kubeconfig = {
            "clusters": [{"name": "c", "cluster": {"server": server.url}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(kubeconfig))
        for number, command in enumerate(COMMANDS):
            environ = {"KUBECONFIG_PATH": str(path), "LOG_LEVEL": "debug", "LOG_FORMAT": ("text", "json")[number % 2]}
            ended = await asyncio.to_thread(windlass, *command, environ=environ)
            outputs[command] = ended.stdout, ended.stderr
    assert any(COMMIT in text for pair in outputs.values() for text in pair)
    for output in (text for pair in outputs.values() for text in pair):
        assert_harmless(output)
    for form, parse in (("json", json.loads), ("junit", ET.fromstring)):
        report = outputs["validate", "--all", "--format", form][0]
        assert is_broken or parse(report) is not None


@pytest.mark.parametrize(
    "arguments", [("wait", "a", HOSTILE), (HOSTILE,), ("wait", f"--{HOSTILE}"), ("plan", "--action", HOSTILE)]
)
def test_no_usage_error_is_hostile(arguments: tuple[str, ...]) -> None:
    ended = windlass(*(each.replace("\0", "") for each in arguments))
    assert ended.code == 3
    assert "Usage:" in ended.stderr
    assert_harmless(ended.output)
