"""What `everstep status` shows, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from everstep.head.members import Member
    from everstep.head.runtime import Runtime


def describe(runtime: Runtime) -> dict[str, Any]:
    """Slices with their workers, devices, sessions, and totals. Bytes of a worker are as of its last heartbeat."""
    slices: dict[int, dict[str, Any]] = {}
    for slot in runtime.members.slots.values():
        member = runtime.members.get(slot.name)
        entry = slices.setdefault(slot.slice, {"slice": slot.slice, "up": True, "workers": []})
        entry["up"] = entry["up"] and member is not None and member.is_up
        entry["workers"].append(
            {
                "name": slot.name,
                "up": member is not None and member.is_up,
                "state": _state(member),
                "incarnation": runtime.members.incarnation(slot.name),
                "pid": member.pid if member is not None else None,
                "host": member.host if member is not None else None,
                "devices": list(slot.devices),
                "arrays": member.arrays if member is not None else 0,
                "bytes": member.bytes if member is not None else 0,
                "programs": member.programs if member is not None else 0,
            }
        )
    sessions = [
        {
            "session": session.number,
            "label": session.label,
            "arrays": len(session.arrays),
            "bytes": session.nbytes,
            "programs": len(session.programs),
        }
        for session in runtime.sessions.values()
    ]
    world = runtime.worlds.current
    return {
        "slices": [slices[index] for index in sorted(slices)],
        "world": {"number": world.number, "workers": list(world.slots)} if world is not None else None,
        "sessions": sessions,
        "last_event": runtime.events.last,
        "programs": len(runtime.programs),
        "operations_in_flight": runtime.dispatcher.in_flight(),
        "bytes": sum(session["bytes"] for session in sessions),
    }


def _state(member: Member | None) -> str:
    """lost, joining (no world includes it yet), leaving (told to go), suspected (silent for long) or up."""
    if member is None:
        return "lost"
    if not member.is_up:
        return "joining"
    if member.notice is not None:
        return "leaving"
    return "suspected" if member.is_suspected else "up"
