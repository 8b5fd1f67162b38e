"""Small 2D scenes of matter and rigid bodies."""

import dataclasses

import warpbots as wb

S = wb.shapes
JELLY = wb.Material(2e4, 0.3, 1000.0, "neo_hookean")
ROOM = ((-0.1, -0.05), (0.25, 0.2))


def flat_hammer() -> wb.Scene:
    """An arm with a motor whose head presses into a block of jelly on a floor, beside a box that slides on a rail."""
    jelly = wb.SoftBody("jelly", S.Box((0, 0), (0.1, 0.05)), JELLY, friction=0.3,
                        regions={"top": S.HalfSpace((0, 0.025), (0, -1))})  # fmt: skip
    head = wb.RigidBody("head", S.Sphere((0, 0), 0.03), 2000.0, position=(0.053, 0.079), friction=0.5)
    handle = wb.RigidBody("handle", S.Capsule((-0.06, 0), (0.02, 0), 0.01), 500.0, position=(0.12, 0.08), friction=0.2)
    press = wb.RigidBody("press", S.Box((-0.02, -0.03), (0.02, 0.03)), 1500.0, position=(-0.019, 0.032), friction=0.4)
    joints = [
        wb.Joint("shoulder", "revolute", None, "handle", position=(0.2, 0.11), start_velocity=(-6.0,), damping=0.02),
        wb.Joint("wrist", "revolute", "handle", "head", position=(0.07, 0.085), start_velocity=(-3.0,), damping=1e-3),
        wb.Joint("rail", "prismatic", None, "press", axis=(1, 0.2), start_velocity=(0.5,)),
    ]  # fmt: skip
    actuators = [wb.actuators.Muscle("muscle", "top", (1, 0), 2e3), wb.actuators.Torque("motor", "shoulder", 30.0)]
    return wb.Scene([jelly, head, handle, press], actuators, [wb.floor(dim=2, friction=0.4)], joints=joints,
                    domain=ROOM)  # fmt: skip


def flat_anvil() -> wb.Scene:
    """The arm of `flat_hammer`, on jelly of which a clamp holds one part and a grip that moves another part."""
    scene = flat_hammer()
    regions = {"clamp": S.Box((-1, -1), (0.03, 1)), "grip": S.Box((0.04, 0.0251), (0.06, 1))}
    jelly = dataclasses.replace(scene.soft[0], regions={**scene.soft[0].regions, **regions})
    rise = wb.PrescribedMotion([0.0, 0.1], [[0, 0], [0.001, 0.005]])
    held = [wb.Constraint("clamp", name="clamp"), wb.Constraint("grip", name="grip", motion=rise)]
    return dataclasses.replace(scene, bodies=[jelly, *scene.rigid], constraints=held)


def flat_flail() -> wb.Scene:
    """An arm with a motor, into whose end a soft strap reaches; the strap binds a weight, and a free disc lies on it."""
    strap = wb.SoftBody("strap", S.Box((0, 0), (0.1, 0.025)), wb.Material(1e4, 0.25, 1000.0), friction=0.3,
                        regions={"middle": S.Box((0.03, 0), (0.07, 0.025))})  # fmt: skip
    arm = wb.RigidBody("arm", S.Box((-0.03, -0.02), (0.03, 0.02)), 500.0, position=(-0.012, 0.011), friction=0.5)
    weight = wb.RigidBody("weight", S.Box((-0.02, -0.02), (0.02, 0.02)), 2000.0, position=(0.1, 0.012))
    disc = wb.RigidBody("disc", S.Sphere((0, 0), 0.02), 500.0, position=(0.052, 0.0441), friction=0.4)
    joints = [
        wb.Joint("shoulder", "revolute", None, "arm", position=(-0.05, 0.01), start=(0.2,), start_velocity=(3.0,),
                 damping=0.02),
    ]  # fmt: skip
    motors = [wb.actuators.Muscle("muscle", "middle", (1, 0), 1e3), wb.actuators.Torque("motor", "shoulder", 5.0)]
    return wb.Scene([strap, arm, weight, disc], motors, [wb.floor(0.001, dim=2, friction=0.4)], joints=joints)


def disc_and_jelly(density: float = 1000.0, friction: float = 0.5) -> wb.Scene:
    """A disc above a square of jelly, off its middle, without gravity."""
    jelly = wb.SoftBody("jelly", S.Box((0, 0), (0.1, 0.1)), JELLY, friction=friction)
    disc = wb.RigidBody("disc", S.Sphere((0, 0), 0.04), density, position=(0.07, 0.146), friction=friction)
    return wb.Scene([jelly, disc], gravity=(0, 0), domain=((-0.1, -0.1), (0.2, 0.25)))
