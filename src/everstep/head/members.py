"""Who is there: one slot per worker of the run, and the process that fills it."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator

from everstep.head.channel import Link
from everstep.observe.events import clock
from everstep.wire import channel_pb2 as wire
from everstep.wire.errors import Code, Failure, invalid


@dataclasses.dataclass(frozen=True, slots=True)
class Slot:
    """A place for a worker. Its device ids stay the same whoever fills it."""

    name: str  # "s<slice>w<worker>"
    slice: int
    worker: int
    devices: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Notice:
    """A worker has been told to go. at: seconds since 1970."""

    at: float
    reason: str


@dataclasses.dataclass(slots=True, eq=False)
class Member:
    """A worker process that has joined."""

    slot: Slot
    incarnation: int
    pid: int
    host: str
    bulk_address: str
    shares_directory: bool
    link: Link
    last_seen: float  # loop time, seconds
    is_up: bool = False  # a world includes it: programs can use it
    is_suspected: bool = False  # it has been silent for long
    verdict: str = ""  # why it is being killed, if it is
    notice: Notice | None = None  # it has been told to go
    progressed_at: float = 0.0  # loop time of the end of its last program
    started: int = 0  # highest number of an operation whose program it has started, as of its last heartbeat
    platform_version: str = ""
    jaxlib: str = ""
    arrays: int = 0
    bytes: int = 0
    programs: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Device:
    """A device as the program sees it. The id of its memory of kind `memory_kinds[i]` is `id * MEMORIES + i`."""

    id: int
    slice_index: int
    worker: str
    local_index: int
    platform: str
    kind: str
    memory_kinds: tuple[str, ...]
    default_memory_kind: str


MEMORIES = 8  # at most so many kinds of memory to a device


class Members:
    """The slots of a run, in rank order: slice by slice, worker by worker."""

    def __init__(self, slices: int, workers_per_slice: int, devices_per_worker: int) -> None:
        self.slots: dict[str, Slot] = {}
        for index in range(slices * workers_per_slice):
            slice_index, worker = divmod(index, workers_per_slice)
            first = index * devices_per_worker
            slot = Slot(f"s{slice_index}w{worker}", slice_index, worker, tuple(range(first, first + devices_per_worker)))
            self.slots[slot.name] = slot
        self.slot_of_device = {device: slot.name for slot in self.slots.values() for device in slot.devices}
        self.devices: list[Device] = []
        self._living: dict[str, Member] = {}
        self._incarnations: dict[str, int] = {}
        self._shares: dict[str, bool] = {}
        self._losses: dict[str, Failure] = {}

    def __iter__(self) -> Iterator[Member]:
        """Living members in rank order."""
        return (self._living[name] for name in self.slots if name in self._living)

    def __len__(self) -> int:
        return len(self._living)

    @property
    def complete(self) -> bool:
        return len(self._living) == len(self.slots)

    def get(self, slot: str) -> Member | None:
        """The living member in a slot."""
        return self._living.get(slot)

    def up(self, slot: str) -> Member | None:
        """The living member in a slot, if programs can use it."""
        member = self._living.get(slot)
        return member if member is not None and member.is_up else None

    def away(self, slot: str) -> Failure:
        """The error of what is asked of a slot where nobody is up."""
        loss = self._losses.get(slot)
        if loss is None:
            return Failure(Code.DATA_LOSS, f"worker {slot} (slice {self.slots[slot].slice}) is not there yet")
        return Failure(loss.code, f"{loss.message}; its successor is not up yet")

    def shares_directory(self, slot: str) -> bool:
        """Whether the process in a slot, present or last, sees the directory that the head shares."""
        return self._shares.get(slot, False)

    def incarnation(self, slot: str) -> int:
        """Of the newest process that has joined there; 0 if none has."""
        return self._incarnations.get(slot, 0)

    def vacancy(self, wish: str) -> Slot | None:
        """The first slot where nobody is: anywhere (""), or in a slice ("s1"). Raises Failure if there is no such slice."""
        slots = [slot for slot in self.slots.values() if wish in ("", f"s{slot.slice}")]
        if not slots:
            raise invalid(f"this run has no slice {wish.removeprefix('s')!r}; it has {', '.join(self.slots)}")
        return next((slot for slot in slots if slot.name not in self._living), None)

    def join(self, hello: wire.Hello, link: Link) -> Member:
        """Take in a worker that has proved who it is. Raises Failure (INVALID_ARGUMENT) with the reason to refuse it."""
        slot = self.slots.get(hello.name)
        if slot is None:
            raise invalid(f"this run has no worker {hello.name!r}; it has {', '.join(self.slots)}")
        if len(hello.devices) != len(slot.devices):
            raise invalid(f"worker {slot.name} has {len(hello.devices)} devices; this run wants {len(slot.devices)} of each worker")
        if hello.name in self._living:
            raise invalid(f"worker {slot.name} is already there (incarnation {self.incarnation(slot.name)})")
        incarnation = hello.incarnation or self.incarnation(slot.name) + 1
        if incarnation <= self.incarnation(slot.name):
            raise invalid(f"incarnation {incarnation} of worker {slot.name} is over: {self.incarnation(slot.name)} has joined since")
        self._describe(slot, hello)
        member = Member(
            slot,
            incarnation,
            hello.pid,
            hello.host,
            hello.bulk_address,
            hello.shares_directory,
            link,
            asyncio.get_running_loop().time(),
            platform_version=hello.platform_version,
            jaxlib=hello.jaxlib,
        )
        self._living[slot.name] = member
        self._incarnations[slot.name] = incarnation
        self._shares[slot.name] = hello.shares_directory
        return member

    def remove(self, member: Member, loss: Failure) -> None:
        """The member is gone. Its slot can be filled by a later incarnation."""
        if self._living.get(member.slot.name) is member:
            del self._living[member.slot.name]
            self._losses[member.slot.name] = loss

    def _describe(self, slot: Slot, hello: wire.Hello) -> None:
        """Note the devices of a slot once: the program reads them once, so a replacement can't change them."""
        known = [device for device in self.devices if device.worker == slot.name]
        if known:
            expected = [(device.platform, device.kind) for device in known]
            if (found := [(info.platform, info.kind) for info in hello.devices]) != expected:
                raise invalid(f"worker {slot.name} had devices {expected} before; it can't come back with {found}")
            return
        for index, (number, info) in enumerate(zip(slot.devices, hello.devices, strict=True)):
            kinds = tuple(info.memory_kinds)[:MEMORIES]
            self.devices.append(
                Device(number, slot.slice, slot.name, index, info.platform, info.kind, kinds, info.default_memory_kind),
            )
        self.devices.sort(key=lambda device: device.id)


def lost(member: Member, cause: str, at: float) -> Failure:
    """The error that everything on a dead worker ends with. at: seconds since 1970."""
    slot = member.slot
    if member.notice is not None:
        cause += f" ({member.notice.reason} announced it {at - member.notice.at:.1f} s before)"
    return Failure(
        Code.DATA_LOSS,
        f"worker {slot.name} (slice {slot.slice}, incarnation {member.incarnation}, pid {member.pid}) is lost: {cause}, at {clock(at)} UTC",
    )
