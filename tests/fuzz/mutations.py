"""Random changes to known inputs: bytes, slices, and tokens that decoders stumble over."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random  # noqa: TID251 - the caller seeds it

MAX_INPUT_BYTES = 1 << 16
TOKENS = (
    *(b"null", b"true", b"-0", b"1e999", b"-1e-999", b".inf", b"0x", b"0b1", b"1_0", b"9" * 25, b"9" * 5000),
    *(b"{", b"}", b"[", b"]", b'"', b"'", b",", b":", b": ", b"- ", b"\n", b"\r\n", b"  ", b"\t", b"#", b"|", b">"),
    *(b"&a ", b"*a", b"<<: *a", b"? ", b"!!int ", b"!!binary ", b"!x ", b"---\n", b"...\n", b"%YAML 9.9\n", b"~"),
    *(b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xfe\xff", b"\\ud800", b"\\u0000", b"\xf0\x9f\x92\xa9", b"\xed\xa0\x80"),
    *(b"[" * 300, b'{"a":' * 300, b"{a: " * 300, b"- " * 300, b"&a [*a]", b'"":', b"{}", b"[]", b"[null]", b'""'),
    *(b"2026-02-30T25:61:61Z", b"9999-12-31T23:59:59Z", b"0000-00-00T00:00:00Z", b"2026-01-01T00:00:00+99:99"),
)


def mutate(base: bytes, corpus: Sequence[bytes], random: Random) -> bytes:
    """A changed copy of `base`; parts of other inputs of the corpus may be put into it."""
    content = bytearray(base)
    for _ in range(random.randint(1, 6)):
        start = random.randint(0, len(content))
        end = min(len(content), start + random.choice((1, 1, 2, 4, 16, 64)))
        match random.randint(0, 6):
            case 0:
                content[start:end] = random.randbytes(end - start)
            case 1:
                del content[start:end]
            case 2:
                content[start:start] = content[start:end] * random.choice((1, 2, 50))
            case 3 | 4:
                content[start:start] = random.choice(TOKENS)
            case 5:
                content[start:end] = random.choice(TOKENS)
            case _:
                other = random.choice(corpus)
                cut = random.randint(0, len(other))
                content[start:end] = other[cut : cut + random.randint(1, 200)]
    return bytes(content[:MAX_INPUT_BYTES])
