"""In which order programs run whose devices wait for each other: in one order on all their devices, that of their start."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence

from everstep.worker.arrays import Stored
from everstep.worker.execution import Execution

_AHEAD = 8  # so many are started and have not ended: where there are 32 on a device XLA makes the next wait within the call


class Turns:
    """Of the programs of one world.

    XLA on CPU keeps no order between programs on one device that don't depend on each other. If each worker takes another one first, they
    wait for each other for ever. So one is started when that before it has ended, or at once if it depends on that: XLA begins a program
    when its arguments are there, and takes over an argument's memory when the programs that read it have ended.
    """

    def __init__(self) -> None:
        self._last: dict[int, Execution] = {}  # the latest one, by the program's ids of its devices
        self._recent: deque[Execution] = deque(maxlen=_AHEAD)

    def before(
        self, devices: Sequence[int], arguments: Sequence[Stored], overwritten: Collection[int], *, may_follow: bool
    ) -> list[Execution]:
        """What must have ended before a program on these devices of this worker is started.

        overwritten: indices of the arguments whose memory it takes over. may_follow: it may be started before what it depends on has ended.
        """
        latest = dict.fromkeys(self._last[device] for device in devices if device in self._last)
        running = [execution for execution in latest if not execution.ended.is_set()]
        return [execution for execution in running if not (may_follow and _depends(execution, arguments, overwritten))]

    def too_many(self) -> list[Execution]:
        """The oldest of those that have been started, if no other may be before it has ended."""
        return [execution for execution in list(self._recent)[:1] if len(self._recent) == _AHEAD and not execution.ended.is_set()]

    def started(self, execution: Execution, read: Sequence[Stored], *, takes_turns: bool) -> None:
        """A program was. read: the arguments by which others that overwrite them may follow it. takes_turns: else it is only counted."""
        self._recent.append(execution)
        if takes_turns:
            self._last.update(dict.fromkeys(execution.devices, execution))
            for stored in read:
                stored.read_by = execution.number

    def clear(self) -> None:
        """Nothing is started any more."""
        self._last.clear()
        self._recent.clear()


def _depends(execution: Execution, arguments: Sequence[Stored], overwritten: Collection[int]) -> bool:
    """Whether XLA will not begin a program with these arguments on any device before this has ended there."""
    number = execution.number
    if any(stored.made_by == number for stored in arguments):
        return True
    # What no program of this world has made may be memory that its client does not own: it would be copied, without waiting.
    overwritten_ones = (arguments[index] for index in overwritten)
    return any(stored.read_by == number and stored.made_by and stored.world is execution.world for stored in overwritten_ones)
