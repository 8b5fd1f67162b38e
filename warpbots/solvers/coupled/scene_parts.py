"""The two scenes of which a scene with matter and rigid bodies consists: one for each solver."""

import dataclasses

from warpbots.scene import Scene, Servo, SoftBody, Torque, VelocityDrive

__all__ = ["matter_channels", "matter_of", "merged", "robot_channels", "robots_of"]


def matter_of(scene: Scene) -> Scene:
    """The scene without rigid bodies, their joints, motors and laws of contact."""
    actuators = tuple(scene.actuators[c] for c in matter_channels(scene))
    return dataclasses.replace(scene, bodies=scene.soft, actuators=actuators, joints=(), contacts=())


def robots_of(scene: Scene) -> Scene:
    """The scene without soft bodies and all that acts on them."""
    actuators = tuple(scene.actuators[c] for c in robot_channels(scene))
    return dataclasses.replace(
        scene, bodies=scene.rigid, actuators=actuators, constraints=(), loads=(), attachments=(), domain=None
    )


def matter_channels(scene: Scene) -> list[int]:
    """Control channels of the scene for the actuators of `matter_of`."""
    return [c for c, a in enumerate(scene.actuators) if not isinstance(a, Torque | Servo)]


def robot_channels(scene: Scene) -> list[int]:
    """Control channels of the scene for the actuators of `robots_of`: motors at joints, and drives of obstacles."""
    obstacles = {o.name for o in scene.obstacles}
    return [
        c
        for c, a in enumerate(scene.actuators)
        if isinstance(a, Torque | Servo) or (isinstance(a, VelocityDrive) and a.moves in obstacles)
    ]


def merged(scene: Scene, matter: Scene, robots: Scene) -> Scene:
    """`scene` with the parts of `matter` and `robots`, which are changed copies of `matter_of` and `robots_of`.

    Parts of both, such as gravity, obstacles and their drives, are those of `matter`.
    """
    driven = [a for a in robots.actuators if not isinstance(a, VelocityDrive)]
    soft, rigid, own, motors = map(iter, (matter.bodies, robots.bodies, matter.actuators, driven))
    bodies = tuple(next(soft) if isinstance(body, SoftBody) else next(rigid) for body in scene.bodies)
    actuators = tuple(next(motors) if isinstance(a, Torque | Servo) else next(own) for a in scene.actuators)
    return dataclasses.replace(
        matter, bodies=bodies, actuators=actuators, joints=robots.joints, contacts=robots.contacts
    )
