"""Obstacles that a mouse can drag, because actuators move them."""

from warpbots.scene import Scene, VelocityDrive

__all__ = ["tools_of"]


def tools_of(scene: Scene) -> dict[int, list[int]]:
    """Channels of the drives of each obstacle that can be dragged, by the index of the obstacle.

    These obstacles have drives along fixed axes, or a single drive about a fixed axis, and no `PrescribedMotion`.
    """
    found = {}
    for k, obstacle in enumerate(scene.obstacles):
        drives = {
            channel: drive
            for channel, drive in enumerate(scene.actuators)
            if isinstance(drive, VelocityDrive) and drive.moves == obstacle.name and drive.kind != "surface"
        }
        shifts = all(drive.kind == "translation" for drive in drives.values())
        if drives and obstacle.motion is None and (shifts or len(drives) == 1):
            found[k] = list(drives)
    return found
