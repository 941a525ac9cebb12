"""Sandboxed Lua interpreter, and the request loop of the worker process that runs it.

This file is also the program of that process: it must import nothing but lupa and the standard library, in particular
no other module of Windlass. Requests and responses are JSON, each preceded by its length in four bytes.
"""

from __future__ import annotations

import json
import re
import resource
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lupa import lua52  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

MAX_MEMORY = 64 << 20  # bytes a script may use in addition to its input object
MAX_ADDRESS_SPACE = 1 << 30  # bytes of the whole process: interpreter, input object and script
MAX_FILES = 16  # the pipes to the parent process, and what Python has open
MAX_TEXT_LENGTH = 16_384  # characters of a status or message
ORPHAN_TIMEOUT = 10  # seconds; a script that never ends must not outlive the parent process that would have killed it
HEADER_SIZE = 4  # bytes of the length prefix
_LINE_PREFIX = re.compile(r"^check:(\d+): ")
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


def syntax_error(text: str) -> tuple[int, str] | None:
    """The line and message of the syntax error in a script, or `None`. The script is compiled, not run."""
    compile_script, _ = _new_runtime().execute(_PRELUDE)
    result = compile_script(text.encode())
    if not isinstance(result, tuple):
        return None
    message = result[1].decode(errors="replace")
    prefix = _LINE_PREFIX.match(message)
    return (int(prefix[1]), message[prefix.end() :]) if prefix else (1, message)


def run_script(text: str, item: Any) -> dict[str, str]:
    """Run a health check on an object, in a new Lua runtime.

    Returns `status` and `message`, as far as the script returned them, or `error`; each is cut to `MAX_TEXT_LENGTH`.
    """
    return {name: value[:MAX_TEXT_LENGTH] for name, value in _script_answer(text, item).items()}


def _script_answer(text: str, item: Any) -> dict[str, str]:
    runtime = _new_runtime()
    _, run = runtime.execute(_PRELUDE)
    table = _lua_value(runtime, item)
    # Not earlier: lupa crashes if the memory limit is reached outside a script.
    runtime.set_max_memory(runtime.get_memory_used() + MAX_MEMORY)
    try:
        succeeded, *results = run(text.encode(), table)
    except lua52.LuaError as error:  # the runtime itself failed, for example without memory left for an error message
        return {"error": str(error) or type(error).__name__}
    if not succeeded:
        return {"error": _error_message(results[0].decode(errors="replace"))}
    names = ("status", "message")
    return {name: _value_text(value) for name, value in zip(names, results, strict=True) if value is not None}


def _new_runtime() -> Any:
    return lua52.LuaRuntime(  # strings as bytes: a script may cut a string within a UTF-8 character
        encoding=None, unpack_returned_tuples=True, register_eval=False, register_builtins=False, max_memory=0
    )


def _error_message(message: str) -> str:
    return _LINE_PREFIX.sub(r"line \1: ", message)


def _value_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return f"{value:g}" if isinstance(value, int | float) else f"a {lua52.lua_type(value) or type(value).__name__}"


def _lua_value(runtime: Any, value: Any) -> Any:
    """Convert to native Lua values: a script must never get a handle on a Python object.

    Null values are omitted, also from lists.
    """
    if isinstance(value, str):
        return value.encode(errors="replace")
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) < 1 << 53 else float(value)  # Lua 5.2 numbers are doubles
    if isinstance(value, list):
        return runtime.table_from([_lua_value(runtime, each) for each in value if each is not None])
    if isinstance(value, dict):
        return runtime.table_from(
            {key.encode(errors="replace"): _lua_value(runtime, each) for key, each in value.items() if each is not None}
        )
    return value


def limit_process() -> None:
    """Limit what this process could do if a script escaped from Lua: no memory hoard, no file, no other process."""
    for limit, value in (
        (resource.RLIMIT_AS, MAX_ADDRESS_SPACE),
        (resource.RLIMIT_NOFILE, MAX_FILES),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(limit)
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (allowed, allowed))


@contextmanager
def limited_time() -> Iterator[None]:
    """Let the kernel end the process if the body takes more than `ORPHAN_TIMEOUT` seconds, by any clock."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    seconds = int(usage.ru_utime + usage.ru_stime) + 1 + ORPHAN_TIMEOUT
    resource.setrlimit(resource.RLIMIT_CPU, (seconds if hard == resource.RLIM_INFINITY else min(seconds, hard), hard))
    signal.alarm(ORPHAN_TIMEOUT)
    yield
    signal.alarm(0)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def serve(requests: BinaryIO, responses: BinaryIO) -> None:
    """Send an empty response to signal readiness, then handle requests until end of file."""
    _send(responses, {})
    while header := requests.read(HEADER_SIZE):
        request = json.loads(requests.read(int.from_bytes(header)))
        with limited_time():
            response = run_script(request["script"], request["object"])
        _send(responses, response)


def _send(responses: BinaryIO, response: dict[str, str]) -> None:
    content = json.dumps(response).encode()
    responses.write(len(content).to_bytes(HEADER_SIZE) + content)
    responses.flush()


if __name__ == "__main__":
    limit_process()
    serve(sys.stdin.buffer, sys.stdout.buffer)
