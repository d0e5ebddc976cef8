"""The launcher that the options ask for."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

from everstep.cli import options
from everstep.cli.errors import CommandError, UsageError
from everstep.launch.local import LocalLauncher
from everstep.launch.places import Places, resources
from everstep.launch.seam import Launcher


async def launcher_of(
    chosen: options.HeadOptions, run_directory: pathlib.Path, logs: pathlib.Path, waiting: Callable[[str, str], None]
) -> Launcher:
    """Ready to start workers. waiting: called with a worker that has no place for long, and what it waits for. Raises CommandError."""
    if chosen.launcher != options.RAY:
        return LocalLauncher(run_directory, logs)  # of no use where somebody else starts the workers, and of no harm
    try:
        from everstep.launch.ray import RayLauncher  # imports Ray: an extra
    except ImportError as error:
        raise CommandError(f"--launcher ray needs more packages: pip install 'everstep[ray]' ({error})") from error
    bundle = resources(chosen.resources or "CPU=1")
    places = Places(chosen.slices, chosen.workers_per_slice, chosen.spares)
    launcher = RayLauncher(bundle, chosen.placement or "pack", places, chosen.log_directory, waiting)
    try:
        await launcher.connect(chosen.ray_address, chosen.name)
    except OSError as error:
        raise UsageError(str(error)) from error
    return launcher
