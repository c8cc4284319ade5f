"""Random damage to bytes."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable

# What sizes, counts and offsets should never be.
_INTEGERS = (0, 1, 2, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1)
_TOKENS = (
    *(b"", b"0", b"-1", b"1.5", b"nan", b"-inf", b"1e300", b"1e99999999999", b"0e99999999999"),
    *(b"9007199254740993", b"9223372036854775808", b"99999999999999999999", b"1_0", b"0x10"),
    *(b"1,2", b"a", b"\xff\xfe", b"\x00", b'"', b"1:1", b":", b"#", b"(" * 300, b"9" * 5000),
)
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?")


def _flip(data: bytearray, rng: random.Random) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set(data: bytearray, rng: random.Random) -> None:
    data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _integer(data: bytearray, rng: random.Random) -> None:
    code = rng.choice("BHIQ")
    size = struct.calcsize(code)
    if len(data) < size:
        return
    place = rng.randrange(len(data) - size + 1)
    value = rng.choice(_INTEGERS) % 2 ** (8 * size)
    struct.pack_into(rng.choice("<>") + code, data, place, value)


def _delete(data: bytearray, rng: random.Random) -> None:
    place = rng.randrange(len(data))
    del data[place : place + rng.randint(1, 16)]


def _insert(data: bytearray, rng: random.Random) -> None:
    place = rng.randrange(len(data) + 1)
    data[place:place] = rng.randbytes(rng.randint(1, 16))


def _repeat(data: bytearray, rng: random.Random) -> None:
    place = rng.randrange(len(data))
    data[place:place] = data[place : place + rng.randint(1, 64)]


def _cut(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


def _token(data: bytearray, rng: random.Random) -> None:
    """Put something else in the place of a number written as text."""
    numbers = list(_NUMBER.finditer(bytes(data)))
    if numbers:
        number = rng.choice(numbers)
        data[number.start() : number.end()] = rng.choice(_TOKENS)


_ALL: tuple[Callable[[bytearray, random.Random], None], ...] = (
    *(_flip, _set, _integer, _integer, _delete, _insert, _repeat, _cut, _token, _token),
)


def mutate(content: bytes, rng: random.Random) -> bytes:
    """Return content with one to three pieces of damage."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if data:
            rng.choice(_ALL)(data, rng)
    return bytes(data)
