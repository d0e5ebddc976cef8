"""Plans that make new arrays out of the shards of others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from everstep.head.specs import ArraySpec
from everstep.wire.errors import invalid
from everstep.wire.ifrt import requests_pb2 as wire

Source = tuple[int, int]  # number of the input array, number of its shard


def sources(plan: wire.RemapPlan, inputs: Sequence[ArraySpec], outputs: Sequence[ArraySpec]) -> list[list[Source]]:
    """Where each shard of each output comes from. Raises Failure (INVALID_ARGUMENT) if the plan leaves one out or contradicts itself."""
    if len(plan.input_specs) != len(inputs):
        raise invalid(f"a remap plan for {len(plan.input_specs)} arrays is given {len(inputs)}")
    found: list[dict[int, Source]] = [{} for _ in outputs]
    for output, shard, source in _pairs(plan, inputs, outputs):
        if shard in found[output]:
            raise invalid(f"a remap plan fills shard {shard} of output {output} twice")
        if inputs[source[0]].dtype != outputs[output].dtype:
            raise invalid(f"a remap plan makes {outputs[output].dtype} of {inputs[source[0]].dtype}")
        found[output][shard] = source
    for number, (spec, filled) in enumerate(zip(outputs, found, strict=True)):
        if len(filled) != len(spec.sharding.devices):
            raise invalid(f"a remap plan fills {len(filled)} of the {len(spec.sharding.devices)} shards of output {number}")
    return [[filled[shard] for shard in range(len(filled))] for filled in found]


def _pairs(plan: wire.RemapPlan, inputs: Sequence[ArraySpec], outputs: Sequence[ArraySpec]) -> Iterator[tuple[int, int, Source]]:
    """(output, its shard, source): by numbers where the plan has them, else by devices (a shard stays on its device)."""
    if plan.mappings:
        for mapping in plan.mappings:
            source, target = _check(mapping.in_array, inputs, "input"), _check(mapping.out_array, outputs, "output")
            taken = _shards(mapping.from_start, mapping.from_end, mapping.from_step, inputs[source])
            given = _shards(mapping.to_start, mapping.to_end, mapping.to_step, outputs[target])
            if len(taken) != len(given):
                raise invalid(f"a remap plan moves {len(taken)} shards into {len(given)} places")
            yield from ((target, place, (source, shard)) for shard, place in zip(taken, given, strict=True))
        return
    for entry in plan.input_devices_for_output:
        target = _check(entry.out_array, outputs, "output")
        places = {device: shard for shard, device in enumerate(outputs[target].sharding.devices)}
        for taken_from in entry.input_devices:
            source = _check(taken_from.in_array, inputs, "input")
            held = {device: shard for shard, device in enumerate(inputs[source].sharding.devices)}
            for device in taken_from.device_list.device_ids:
                if device not in places or device not in held:
                    raise invalid(f"a remap plan names device {device}, on which input {source} or output {target} does not lie")
                yield target, places[device], (source, held[device])


def _check(number: int, arrays: Sequence[ArraySpec], what: str) -> int:
    if not 0 <= number < len(arrays):
        raise invalid(f"a remap plan of {len(arrays)} {what}s names {what} {number}")
    return number


def _shards(starts: Sequence[int], ends: Sequence[int], steps: Sequence[int], spec: ArraySpec) -> list[int]:
    """The shard numbers in some intervals."""
    if not len(starts) == len(ends) == len(steps):
        raise invalid("the intervals of a remap plan lack starts, ends or steps")
    count = len(spec.sharding.devices)
    shards: list[int] = []
    for start, end, step in zip(starts, ends, steps, strict=True):
        if not (0 <= start < count and step > 0 and start <= end < count + step):
            raise invalid(f"an array of {count} shards has no shards {start}:{end}:{step}")
        shards.extend(range(start, end, step))
    if shards and max(shards) >= count:
        raise invalid(f"an array of {count} shards has no shard {max(shards)}")
    return shards
