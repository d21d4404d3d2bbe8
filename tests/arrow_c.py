"""Arrow columns made and read with ctypes alone: a producer that counts its releases, also one that
lies, and a consumer.

Written from the specification of the C data interface, so that the column path is tested without
any Arrow package."""

from __future__ import annotations

import ctypes
import dataclasses
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_void_p
from typing import Any

FORMATS = ["u", "U", "vu"]
SHORT = 12  # bytes that fit into a view


class Schema(Structure):
    pass


class Array(Structure):
    pass


class Stream(Structure):
    pass


RELEASE = ctypes.CFUNCTYPE(None, c_void_p)
GET = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)
LAST_ERROR = ctypes.CFUNCTYPE(c_void_p, c_void_p)

Schema._fields_ = [
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_char_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", c_void_p),
    ("dictionary", c_void_p),
    ("release", RELEASE),
    ("private_data", c_void_p),
]
Array._fields_ = [
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)),
    ("children", c_void_p),
    ("dictionary", c_void_p),
    ("release", RELEASE),
    ("private_data", c_void_p),
]
Stream._fields_ = [
    ("get_schema", GET),
    ("get_next", GET),
    ("get_last_error", LAST_ERROR),
    ("release", RELEASE),
    ("private_data", c_void_p),
]
CAPSULES = {Schema: b"arrow_schema", Array: b"arrow_array", Stream: b"arrow_array_stream"}

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [c_void_p, c_char_p, c_void_p]
get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype, get_pointer.argtypes = c_void_p, [ctypes.py_object, c_char_p]


@dataclasses.dataclass
class Piece:
    """One array as it is told to the consumer, true or not."""

    length: int
    buffers: list[bytes | None]
    offset: int = 0
    null_count: int = 0
    n_buffers: int | None = None
    n_children: int = 0
    dictionary: bool = False
    no_buffers: bool = False


def piece(
    rows: Sequence[str | bytes | None], kind: str, *, before: int = 0, tell_nulls: bool = True
) -> Piece:
    """The rows laid out, behind `before` other rows that a slice has cut off."""
    hidden: list[str | bytes | None] = [
        None if at % 3 == 1 else f"hidden {at}" * 3 for at in range(before)
    ]
    every = [*hidden, *rows, "behind the end"]
    texts = [row if isinstance(row, bytes) else (row or "").encode() for row in every]
    bits = bytearray(len(every) // 8 + 1)
    for at, row in enumerate(every):
        bits[at // 8] |= (row is not None) << at % 8
    nulls = sum(row is None for row in rows)
    valid = bytes(bits) if None in rows or before else None
    buffers: list[bytes | None]
    if kind == "vu":
        # Two data buffers, so that the index of the buffer matters.
        data = [bytearray(), bytearray()]
        views = bytearray()
        for at, text in enumerate(texts):
            if len(text) <= SHORT:
                views += struct.pack("=i12s", len(text), text)
            else:
                views += struct.pack("=i4sii", len(text), text[:4], at % 2, len(data[at % 2]))
                data[at % 2] += text
        lengths = struct.pack("=2q", *map(len, data))
        buffers = [valid, bytes(views), *map(bytes, data), lengths]
    else:
        ends = [0]
        for text in texts:
            ends.append(ends[-1] + len(text))
        buffers = [
            valid,
            struct.pack(f"={len(ends)}{'i' if kind == 'u' else 'q'}", *ends),
            b"".join(texts),
        ]
    return Piece(len(rows), buffers, before, nulls if tell_nulls else -1)


class Producer:
    """What hands out structures: each call makes new ones. It keeps their memory until they are
    released, and counts.

    The memory is overwritten when it is released, so that a consumer that reads it afterwards is
    found out."""

    def __init__(self, pieces: Iterable[Piece], kind: str) -> None:
        self.pieces = list(pieces)
        self.format = kind
        self.dictionary = False
        self.made = 0
        self.releases: Counter[int] = Counter()
        self.fail: dict[str, tuple[int, bytes | None]] = {}
        self._alive: dict[int, list[Any]] = {}
        self._callbacks: list[
            Any
        ] = []  # for ever: a release callback is running when its structure goes

    @property
    def all_released_once(self) -> bool:
        return (
            not self._alive
            and set(self.releases.values()) <= {1}
            and len(self.releases) == self.made
        )

    def _fill(self, structure: Any, memory: list[Any]) -> None:
        number, kind = self.made, type(structure)
        self.made += 1

        def release(address: int) -> None:
            self.releases[number] += 1
            for block in self._alive.pop(number, []):
                if isinstance(block, ctypes.Array):
                    ctypes.memset(block, 0xA5, ctypes.sizeof(block))
            kind.from_address(address).release = RELEASE()

        structure.release = RELEASE(release)
        self._callbacks.append(structure.release)
        self._alive[number] = memory

    def fill_schema(self, schema: Schema) -> None:
        schema.format, schema.name, schema.metadata = self.format.encode(), b"", None
        schema.flags, schema.n_children = 2, 0
        other = Schema()
        schema.dictionary = ctypes.addressof(other) if self.dictionary else None
        self._fill(schema, [schema.format, other])

    def fill_array(self, array: Array, told: Piece) -> None:
        blocks = [
            None if block is None else ctypes.create_string_buffer(block, len(block))
            for block in told.buffers
        ]
        pointers = (c_void_p * max(len(blocks), 1))(
            *(None if block is None else ctypes.addressof(block) for block in blocks)
        )
        array.length, array.null_count, array.offset = told.length, told.null_count, told.offset
        array.n_buffers = len(blocks) if told.n_buffers is None else told.n_buffers
        array.n_children = told.n_children
        array.buffers = (
            POINTER(c_void_p)() if told.no_buffers else ctypes.cast(pointers, POINTER(c_void_p))
        )
        other = Array()
        array.dictionary = ctypes.addressof(other) if told.dictionary else None
        self._fill(array, [*blocks, pointers, other])

    def capsule(self, structure: Any) -> Any:
        self._callbacks.append(structure)  # the capsule only points to it
        return new_capsule(ctypes.addressof(structure), CAPSULES[type(structure)], None)


class ArrayColumn(Producer):
    """One array."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        schema, array = Schema(), Array()
        self.fill_schema(schema)
        self.fill_array(array, self.pieces[0])
        return self.capsule(schema), self.capsule(array)


class StreamColumn(Producer):
    """Any number of arrays.

    `fail` makes a callback fail: its name, or `get_next` after the last array.
    """

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        stream, rest = Stream(), iter(self.pieces)
        told: list[bytes | None] = []

        def get_schema(_: int, out: int) -> int:
            if "get_schema" in self.fail:
                return failed("get_schema")
            if "released schema" not in self.fail:
                self.fill_schema(Schema.from_address(out))
            return 0

        def get_next(_: int, out: int) -> int:
            told = next(rest, None)
            if told is not None:
                self.fill_array(Array.from_address(out), told)
            elif "get_next" in self.fail:
                return failed("get_next")
            else:
                Array.from_address(out).release = RELEASE()
            return 0

        def failed(name: str) -> int:
            code, message = self.fail[name]
            told.append(message)
            return code

        def last_error(_: int) -> int | None:
            return ctypes.cast(c_char_p(told[-1]), c_void_p).value

        stream.get_schema, stream.get_next = GET(get_schema), GET(get_next)
        stream.get_last_error = LAST_ERROR(last_error)
        for name in self.fail.keys() & {"no get_schema", "no get_next", "no get_last_error"}:
            setattr(
                stream, name.removeprefix("no "), LAST_ERROR() if name.endswith("error") else GET()
            )
        self._callbacks += [stream.get_schema, stream.get_next, stream.get_last_error]
        self._fill(stream, [])
        return self.capsule(stream)


class Taken:
    """The array of an exporter, moved out of its capsule."""

    def __init__(self, column: Any, requested_schema: Any = None) -> None:
        schema_capsule, array_capsule = column.__arrow_c_array__(requested_schema)
        self.schema, self.array = move(schema_capsule, Schema), move(array_capsule, Array)
        self.format = self.schema.format.decode()

    def read(self) -> list[str | None]:
        """The rows, of format `u` or `U`."""
        array = self.array
        assert (array.n_buffers, array.n_children, array.offset) == (3, 0, 0)
        valid, ends, data = (array.buffers[at] for at in range(3))
        offset = {"u": ctypes.c_int32, "U": c_int64}[self.format]
        offsets = (offset * (array.length + 1)).from_address(ends)
        assert offsets[0] == 0
        bits = None if valid is None else ctypes.string_at(valid, (array.length + 7) // 8)
        rows = [
            None
            if bits is not None and not bits[at // 8] >> at % 8 & 1
            else ctypes.string_at(data + offsets[at], offsets[at + 1] - offsets[at]).decode()
            for at in range(array.length)
        ]
        assert array.null_count == rows.count(None)
        return rows

    def release(self) -> None:
        for structure in (self.schema, self.array):
            structure.release(ctypes.addressof(structure))
            assert not structure.release


def move(capsule: Any, kind: type[Any]) -> Any:
    source = kind.from_address(get_pointer(capsule, CAPSULES[kind]))
    assert source.release
    target = kind()
    ctypes.memmove(ctypes.addressof(target), ctypes.addressof(source), ctypes.sizeof(kind))
    source.release = RELEASE()
    return target


def rows_of(column: Any) -> list[str | None]:
    """What an exporter holds."""
    taken = Taken(column)
    rows = taken.read()
    taken.release()
    return rows
