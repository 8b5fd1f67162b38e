"""Small scenes of matter and rigid bodies."""

import dataclasses

import warpbots as wb

MATTER = {"mpm": wb.MPM, "springs": lambda dx: wb.MassSpring(dx, damping=1e-3)}
"""Functions of the size of a cell [m] that make the solvers of matter which meet rigid bodies, by name."""

JELLY = wb.Material(2e4, 0.3, 1000.0, "neo_hookean")


def hammer() -> wb.Scene:
    """An arm with a motor whose head, of another shape than its handle, presses into a block of jelly on a floor."""
    jelly = wb.SoftBody("jelly", wb.shapes.Box((0, 0, 0), (0.1, 0.1, 0.05)), JELLY, friction=0.3,
                        regions={"top": wb.shapes.HalfSpace((0, 0, 0.025), (0, 0, -1))})  # fmt: skip
    head = wb.RigidBody("head", wb.shapes.Sphere((0, 0, 0), 0.03), 2000.0, position=(0.053, 0.047, 0.079), friction=0.5)
    handle = wb.RigidBody(
        "handle",
        wb.shapes.Capsule((-0.06, 0, 0), (0.02, 0, 0), 0.02),
        500.0,
        position=(0.12, 0.06, 0.069),
        friction=0.2,
    )
    joints = [
        wb.Joint("shoulder", "revolute", None, "handle", position=(0.2, 0.06, 0.11), axis=(0.1, 1, 0),
                 start_velocity=(-6.0,), damping=0.02),
        wb.Joint("wrist", "ball", "handle", "head", position=(0.07, 0.05, 0.085), start_velocity=(1.0, 2.0, -3.0),
                 damping=(1e-3, 1e-3, 1e-3)),
    ]  # fmt: skip
    actuators = [wb.actuators.Muscle("muscle", "top", (1, 0, 0), 2e3), wb.actuators.Torque("motor", "shoulder", 3.0)]
    domain = ((-0.1, -0.1, -0.05), (0.25, 0.2, 0.2))
    return wb.Scene([jelly, head, handle], actuators, [wb.floor(0.0, friction=0.4)], joints=joints, domain=domain)


def anvil() -> wb.Scene:
    """The arm of `hammer`, on jelly of which a clamp holds a quarter and a grip that moves holds another quarter."""
    scene = hammer()
    Box = wb.shapes.Box
    regions = {"clamp": Box((-1, -1, -1), (0.05, 0.05, 1)), "grip": Box((-1, 0.051, -1), (0.05, 1, 1))}
    jelly = dataclasses.replace(scene.soft[0], regions={**scene.soft[0].regions, **regions})
    rise = wb.PrescribedMotion([0.0, 0.1], [[0, 0, 0], [0.001, 0.002, 0.005]])
    held = [wb.Constraint("clamp", name="clamp"), wb.Constraint("grip", name="grip", motion=rise)]
    return dataclasses.replace(scene, bodies=[jelly, *scene.rigid], constraints=held)


def splash() -> wb.Scene:
    """A weight that hangs on a hull by a spring joint with a motor, and hits water of another viscosity than the grid."""
    water = wb.Material(2e4, 1 / 3, 1000.0, "weakly_compressible", damping=4e-4)
    pool = wb.SoftBody("pool", wb.shapes.Box((0, 0, 0), (0.1, 0.1, 0.05)), water, friction=0.2)
    hull = wb.RigidBody("hull", wb.shapes.Sphere((0, 0, 0), 0.03), 500.0, position=(0.053, 0.047, 0.079), friction=0.4)
    weight = wb.RigidBody("weight", wb.shapes.Box((-0.01,) * 3, (0.01,) * 3), 4000.0, position=(0.06, 0.05, 0.12))
    joints = [
        wb.Joint("afloat", "free", None, "hull", start_velocity=(0.3, 0.1, -1.0, 2.0, 5.0, -3.0)),
        wb.Joint("mast", "revolute", "hull", "weight", position=(0.05, 0.05, 0.08), axis=(1, 0.2, 0), stiffness=0.1),
    ]
    domain = ((-0.1, -0.1, -0.05), (0.25, 0.2, 0.2))
    motor = wb.actuators.Torque("motor", "mast", 0.2)
    return wb.Scene([pool, hull, weight], [motor], [wb.floor(0.0, friction=0.4)], joints=joints, domain=domain)


def flail() -> wb.Scene:
    """An arm with a motor, into whose end a soft strap reaches; the strap binds a weight, and a free ball lies on it."""
    material = wb.Material(1e4, 0.25, 1000.0)
    strap = wb.SoftBody("strap", wb.shapes.Box((0, 0, 0), (0.1, 0.025, 0.0125)), material, friction=0.3,
                        regions={"middle": wb.shapes.Box((0.03, 0, 0), (0.07, 0.025, 0.0125))})  # fmt: skip
    arm = wb.RigidBody("arm", wb.shapes.Box((-0.03, -0.02, -0.02), (0.03, 0.02, 0.02)), 500.0,
                       position=(-0.012, 0.011, 0.008), friction=0.5)  # fmt: skip
    weight = wb.RigidBody("weight", wb.shapes.Box((-0.02,) * 3, (0.02,) * 3), 2000.0, position=(0.1, 0.012, 0.007))
    ball = wb.RigidBody("ball", wb.shapes.Sphere((0, 0, 0), 0.02), 500.0, position=(0.052, 0.013, 0.0321), friction=0.4)
    joints = [
        wb.Joint("shoulder", "revolute", None, "arm", position=(-0.05, 0.01, 0.012), axis=(0.1, 1, 0.2),
                 start=(0.3,), start_velocity=(3.0,), damping=0.02),
    ]  # fmt: skip
    motors = [wb.actuators.Muscle("muscle", "middle", (1, 0, 0), 1e3), wb.actuators.Torque("motor", "shoulder", 0.3)]
    return wb.Scene([strap, arm, weight, ball], motors, [wb.floor(0.002, friction=0.4)], joints=joints)


def ball_and_jelly(density: float = 1000.0, friction: float = 0.5) -> wb.Scene:
    """A ball beside a cube of jelly, without gravity."""
    jelly = wb.SoftBody("jelly", wb.shapes.Box((0, 0, 0), (0.1, 0.1, 0.1)), JELLY, friction=friction)
    ball = wb.RigidBody("ball", wb.shapes.Sphere((0, 0, 0), 0.04), density, position=(0.06, 0.05, 0.146),
                        friction=friction)  # fmt: skip
    return wb.Scene([jelly, ball], gravity=(0, 0, 0), domain=((-0.1, -0.1, -0.1), (0.2, 0.2, 0.25)))
