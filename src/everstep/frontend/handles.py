"""Handles: the numbers by which the program's client names arrays, programs and futures."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from everstep.wire.errors import Failure, invalid

T = TypeVar("T")

_FIRST_MINTED_HERE = 1 << 40  # the client mints below

# Futures that are over before anybody can ask share two handles, which are good for any number of questions.
DELETED = _FIRST_MINTED_HERE  # of a deletion
COMPILED = _FIRST_MINTED_HERE + 1  # of a program: a response that names one comes after its compilation


def fresh_handles() -> Iterator[int]:
    """Handles minted by the server, for all tables of one session."""
    return itertools.count(_FIRST_MINTED_HERE + 16)


class HandleTable(Generic[T]):
    """What the handles of one kind stand for: an object, or the failure of the request that should have made it.

    The client mints handles before it knows whether the request succeeds, and goes on to use them: that is how an error travels
    through a chain of operations that nobody waited for.
    """

    def __init__(self, what: str, fresh: Iterator[int]) -> None:
        self._what = what
        self._fresh = fresh
        self._held: dict[int, T | Failure] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, handle: int) -> bool:
        return handle in self._held

    def reserve(self, minted: Sequence[int], count: int) -> list[int]:
        """Handles for `count` results: those the client minted, or new ones if it minted none (no handles, or a lone 0).

        Raises Failure (INVALID_ARGUMENT) if they are too few or many, or in use.
        """
        if not minted or (count == 1 and minted[0] == 0):
            return [next(self._fresh) for _ in range(count)]
        if len(minted) != count:
            raise invalid(f"{len(minted)} handles for {count} results")
        if len(set(minted)) != count or 0 in minted or any(handle in self._held for handle in minted):
            raise invalid(f"{self._what} handles must be new and different: {list(minted)}")
        return list(minted)

    def put(self, handles: Iterable[int], objects: Iterable[T]) -> None:
        """The objects behind reserved handles."""
        self._held.update(zip(handles, objects, strict=True))

    def add(self, thing: T) -> int:
        """A new handle for an object."""
        handle = next(self._fresh)
        self._held[handle] = thing
        return handle

    def fail(self, handles: Iterable[int], failure: Failure) -> None:
        """These handles hold an error, unless they were in use before."""
        for handle in handles:
            if handle:
                self._held.setdefault(handle, failure)

    def get(self, handle: int) -> T:
        """The object. Raises the Failure that the handle holds, or INVALID_ARGUMENT if there is no such handle."""
        held = self.look(handle)
        if isinstance(held, Failure):
            raise held
        return held

    def get_all(self, handles: Iterable[int]) -> list[T]:
        """The objects behind several handles. Raises as `get` does."""
        return [self.get(handle) for handle in handles]

    def look(self, handle: int) -> T | Failure:
        """The object or the failure. Raises Failure (INVALID_ARGUMENT) if there is no such handle."""
        try:
            return self._held[handle]
        except KeyError:
            raise self._unknown(handle) from None

    def pop(self, handle: int) -> T | Failure:
        """The same, and the handle is gone."""
        try:
            return self._held.pop(handle)
        except KeyError:
            raise self._unknown(handle) from None

    def _unknown(self, handle: int) -> Failure:
        return invalid(f"there is no {self._what} with handle {handle}")
