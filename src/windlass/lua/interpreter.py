"""Sandboxed Lua interpreter, and the request loop of the worker process that runs it.

This file is also the program of that process: it must import nothing but lupa and the standard library, in particular
no other module of Windlass. Requests and responses are JSON, each preceded by its length in four bytes.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from typing import TYPE_CHECKING, Any

from lupa import lua52  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from typing import BinaryIO

MEMORY = 64 << 20  # bytes a script may use in addition to its input object
ORPHANED_AFTER = 10  # seconds; a script that never ends must not outlive the parent process that would have killed it
HEADER = 4  # bytes of the length prefix
_PLACE = re.compile(r"^check:(\d+): ")
_PRELUDE = """
local load, next, pcall, rawget, sort, tostring, type = load, next, pcall, rawget, table.sort, tostring, type

local function listed(names)
  local found = {}
  for name in names:gmatch("%S+") do found[name] = true end
  return found
end

local function keep(holder, names)
  local allowed = listed(names)
  local gone = {}
  for name in next, holder do
    if not allowed[name] then gone[#gone + 1] = name end
  end
  for _, name in next, gone do holder[name] = nil end
end

keep(string, "byte char find format gmatch gsub len lower match rep reverse sub upper")
keep(table, "concat insert pack remove sort unpack")
keep(math, "abs ceil cos deg exp floor fmod huge log max min modf pi pow rad sin sqrt tan")
keep(os, "time")
keep(_G, [[_G _VERSION assert error getmetatable ipairs math next os pairs pcall rawequal rawget rawlen rawset select
  setmetatable string table tonumber tostring type xpcall]])

function table.getn(holder) return #holder end
unpack = table.unpack
function print() end  -- what a check says belongs in its message

local function before(a, b)
  if type(a) ~= type(b) then return type(a) < type(b) end
  if type(a) == "number" or type(a) == "string" then return a < b end
  return tostring(a) < tostring(b)
end

-- Two runs on the same object must give the same words.
function pairs(holder)
  local keys, place = {}, 0
  for key in next, holder do keys[#keys + 1] = key end
  sort(keys, before)
  return function()
    repeat place = place + 1 until keys[place] == nil or rawget(holder, keys[place]) ~= nil
    return keys[place], rawget(holder, keys[place])
  end
end

local function compiled(text)
  return load(text, "=check", "t", _G)  -- text only: what pretends to be compiled can reach anything
end

local function run(text, object)
  local check, wrong = compiled(text)
  if not check then return false, wrong end
  obj = object
  local ended, answer = pcall(check)
  if not ended then return false, type(answer) == "string" and answer or "it raised a " .. type(answer) end
  if type(answer) ~= "table" then return true, nil, nil end
  return true, rawget(answer, "status"), rawget(answer, "message")
end

return compiled, run
"""


def mistake_in(text: str) -> tuple[int, str] | None:
    """The line and message of the syntax error in a script, or `None`. The script is compiled, not run."""
    compiled, _ = _machine().execute(_PRELUDE)
    found = compiled(text.encode())
    if not isinstance(found, tuple):
        return None
    said = found[1].decode(errors="replace")
    place = _PLACE.match(said)
    return (int(place[1]), said[place.end() :]) if place else (1, said)


def answered(text: str, item: Any) -> dict[str, str]:
    """Run a health check on an object, in a new Lua runtime.

    Returns `status` and `message`, as far as the script returned them, or `error`.
    """
    machine = _machine()
    _, run = machine.execute(_PRELUDE)
    given = _table(machine, item)
    # Not earlier: lupa crashes if the memory limit is reached outside a script.
    machine.set_max_memory(machine.get_memory_used() + MEMORY)
    try:
        ended, *said = run(text.encode(), given)
    except lua52.LuaError as error:  # the runtime itself failed, for example without memory left for an error message
        return {"error": str(error) or type(error).__name__}
    if not ended:
        return {"error": _words(said[0].decode(errors="replace"))}
    names = ("status", "message")
    return {name: _text(value) for name, value in zip(names, said, strict=True) if value is not None}


def _machine() -> Any:
    return lua52.LuaRuntime(  # strings as bytes: a script may cut a string within a UTF-8 character
        encoding=None, unpack_returned_tuples=True, register_eval=False, register_builtins=False, max_memory=0
    )


def _words(said: str) -> str:
    return _PLACE.sub(r"line \1: ", said)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return f"{value:g}" if isinstance(value, int | float) else f"a {lua52.lua_type(value) or type(value).__name__}"


def _table(machine: Any, value: Any) -> Any:
    """Convert to native Lua values: a script must never get a handle on a Python object.

    Null values are omitted, also from lists.
    """
    if isinstance(value, str):
        return value.encode(errors="replace")
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) < 1 << 53 else float(value)  # Lua 5.2 numbers are doubles
    if isinstance(value, list):
        return machine.table_from([_table(machine, each) for each in value if each is not None])
    if isinstance(value, dict):
        return machine.table_from(
            {key.encode(errors="replace"): _table(machine, each) for key, each in value.items() if each is not None}
        )
    return value


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Send an empty response to signal readiness, then handle requests until end of file."""
    _send(answers, {})
    while header := requests.read(HEADER):
        request = json.loads(requests.read(int.from_bytes(header)))
        signal.alarm(ORPHANED_AFTER)
        answer = answered(request["script"], request["object"])
        signal.alarm(0)
        _send(answers, answer)


def _send(answers: BinaryIO, answer: dict[str, str]) -> None:
    content = json.dumps(answer).encode()
    answers.write(len(content).to_bytes(HEADER) + content)
    answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
