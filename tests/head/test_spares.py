"""Spares: processes that have joined and wait for a place."""

from __future__ import annotations

import asyncio
import pathlib
from unittest import mock

from everstep.head.channel import Link
from everstep.head.runtime import SPARE_SILENCE, Runtime, RuntimeConfig
from everstep.wire import channel_pb2 as wire
from everstep.wire import frames


def test_one_that_has_gone_silent_is_not_taken(tmp_path: pathlib.Path) -> None:
    async def main() -> None:
        runtime = Runtime(RuntimeConfig(1, 1, 1, "token", tmp_path, mock.Mock()))
        link = Link(runtime, "token")
        hello = wire.Hello(version=frames.VERSION, token="token", name="spare1", spare=True, devices=[wire.DeviceInfo(platform="cpu")])
        link.data_received(frames.encode(wire.ToHead(hello=hello).SerializeToString()))
        assert runtime.has_joined("spare1", 0)
        link.last_seen -= SPARE_SILENCE + 1
        assert not runtime.take_spare("spare1", "s0w0", 2)
        link.data_received(frames.encode(wire.ToHead(heartbeat=wire.Heartbeat()).SerializeToString()))
        assert runtime.take_spare("spare1", "s0w0", 2)
        assert runtime.members.incarnation("s0w0") == 2
        await runtime.close()

    asyncio.run(main())
