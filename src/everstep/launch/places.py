"""Where the workers of a run go on a cluster: bundles of resources in groups, a group for each slice. Knows no engine."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from everstep.launch.seam import WorkerSpec

Resources: TypeAlias = Mapping[str, float]  # by the engine's name of each, e.g. {"CPU": 1, "GPU": 8}; memory in bytes

PLACEMENTS = ("pack", "spread", "strict_pack", "strict_spread")  # how the workers of a slice lie on nodes; strict: so or not at all


def resources(text: str) -> Resources:
    """From "GPU=8,CPU=4". A worker has one CPU if nothing else is said. Raises ValueError with what is wrong."""
    found = {"CPU": 1.0}
    for item in text.split(","):
        name, _, amount = item.partition("=")
        try:
            found[name.strip()] = float(amount)
        except ValueError:
            raise ValueError(f"{item!r} is not NAME=AMOUNT, such as GPU=8") from None
        if not name.strip() or not 0 <= found[name.strip()] < float("inf"):
            raise ValueError(f"{item!r} is not an amount of something")
    wanted = {name: amount for name, amount in found.items() if amount}
    if not wanted:
        raise ValueError("a worker needs something of a node")
    return wanted


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Place:
    """Bundle `index` of group `group`."""

    group: int
    index: int


class Places:
    """As many bundles as processes: a group for each slice, and one for the spares if there are any.

    A spare that takes a worker's place stays in its bundle, and the dead worker's bundle is free for the next spare. So a process that is
    started goes to its own bundle or, when somebody else is there, to any other.
    """

    def __init__(self, slices: int, workers_per_slice: int, spares: int) -> None:
        self.groups = [workers_per_slice] * slices + ([spares] if spares else [])  # how many bundles each has
        self._free = {Place(group, index) for group, count in enumerate(self.groups) for index in range(count)}

    def take(self, spec: WorkerSpec) -> Place:
        """Raises OSError if all are taken."""
        if not self._free:
            raise OSError("more processes than places")
        home = Place(spec.slice, spec.worker)
        place = home if home in self._free and not spec.spare else max(self._free)  # those of the spares come last
        self._free.remove(place)
        return place

    def free(self, place: Place) -> None:
        """Its process has ended."""
        self._free.add(place)


def lacking(bundle: Resources, count: int, placement: str, nodes: Sequence[Resources], free: Resources) -> str:
    """What `count` bundles that have no place yet wait for, in words.

    nodes: what each living node has, taken or not. free: what of it is free, over all nodes.
    """
    share = {name: amount * (count if placement == "strict_pack" else 1) for name, amount in bundle.items()}
    wanted = count if placement == "strict_spread" else 1
    missing = []
    for name, amount in share.items():
        having = [node.get(name, 0.0) for node in nodes]
        left = free.get(name, 0.0)
        if sum(has >= amount for has in having) < wanted:
            where = "one node" if wanted == 1 else f"each of {wanted} nodes"
            missing.append(f"{name}={amount:g} on {where}; the nodes have {', '.join(f'{has:g}' for has in having) or 'none'}")
        elif left < bundle[name] * count:
            missing.append(f"{name}={bundle[name] * count:g}; {left:g} of {sum(having):g} are free")
    return " and ".join(missing) or f"{_text(share)} on one node; so much is free, but not together"


def _text(amounts: Resources) -> str:
    return ", ".join(f"{name}={amount:g}" for name, amount in amounts.items())
