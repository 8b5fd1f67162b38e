"""Small scenes that touch, pull and turn, in one order of threads after the other: ``python in_orders.py OUT.npz NAME``.

States after a few steps and their gradients to all that a step depends on.
"""

import dataclasses
import os
import sys

import numpy as np

TIGHT = 1e-11 if os.environ.get("WARPBOTS_PRECISION") == "float64" else None
"""Tolerance of steps whose adjoint would else stop where rounding takes it, at the tolerance of the solver."""


def moved(sim, steps: int = 2, **fields) -> dict[str, np.ndarray]:
    """States after some steps, and readings and equations of motion of them where there are any, by field name.

    And gradients of a weighted sum of them by ``d_`` and input name. All runs twice: a second run prepares the kernels
    of branches that the first did not enter, too.
    """
    _moved(sim, steps, fields)
    return _moved(sim, steps, fields)


def _moved(sim, steps: int, fields: dict) -> dict[str, np.ndarray]:
    import torch

    import warpbots as wb
    from warpbots.solvers import Senses

    rest = sim.state(**fields)
    inputs = {n: t.clone() for n, t in vars(rest).items()} | {n: sim.parameter(n) for n in sim.parameters()}
    inputs["control"] = torch.full((sim.worlds, sim.channels), 0.3, dtype=torch.float64)
    inputs = {n: t.requires_grad_() for n, t in inputs.items() if t.numel()}
    state = type(rest)(**{n: inputs.get(n, t) for n, t in vars(rest).items()})
    control = inputs.get("control", torch.zeros(sim.worlds, 0))
    replaced = {n: inputs[n] for n in sim.parameters() if n in inputs}
    for _ in range(steps):
        state = sim.step(state, control, **replaced)
    final = dict(vars(state))
    if isinstance(sim.solver, Senses):
        final |= {f"sensed {n}": t for n, t in vars(sim.sense(state, control, **replaced)).items()}
    if isinstance(sim.solver, wb.Articulated):
        final |= {f"found {n}": t for n, t in vars(sim.dynamics(state, control, **replaced)).items()}
    final = {n: t for n, t in final.items() if t.numel()}
    rng = np.random.default_rng(0)
    loss = sum((torch.as_tensor(rng.normal(size=t.shape)) * t).sum() for t in final.values())
    gradients = torch.autograd.grad(loss, list(inputs.values()), allow_unused=True)
    found = {n: t.detach().numpy() for n, t in final.items()}
    return found | {f"d_{n}": g.numpy() for n, g in zip(inputs, gradients, strict=True) if g is not None}


def particles() -> dict[str, np.ndarray]:
    """MPM: a block with every actuator on a floor and at a wall."""
    import cases

    import warpbots as wb

    sim = wb.Simulation(cases.busy(3, "fixed_corotated", 2), wb.MPM(1 / 16), 1e-3, 2, worlds=2)
    return moved(sim, velocity=np.array([1.5, -0.5, -0.8]))


def springs() -> dict[str, np.ndarray]:
    """Springs that yield, with damping, contact, a line and every actuator, under the integrator with the most stages."""
    import cases

    import warpbots as wb
    from warpbots.scene import Box, Constraint, Obstacle

    scene = cases.worn(cases.busy(3, solver="springs"))
    plate, held = (
        Obstacle(Box((0.0, 0.0, 0.05), (1.0, 1.0, 0.18)), name="plate"),
        Constraint("root", "plane", (1, 0, 0)),
    )
    scene = dataclasses.replace(scene, obstacles=(*scene.obstacles, plate), constraints=(held,))
    sim = wb.Simulation(scene, wb.MassSpring(1 / 16, integrator="rk4"), 1e-4, 2, worlds=2)
    return moved(sim, velocity=np.array([1.5, -0.5, -0.8]))


def flat() -> dict[str, np.ndarray]:
    """MPM in a plane, of another law, with loads, damping and every constraint."""
    import cases

    import warpbots as wb

    sim = wb.Simulation(cases.held(cases.busy(2, "neo_hookean")), wb.MPM(1 / 16), 1e-3, 2, worlds=2)
    return moved(sim, velocity=np.array([1.5, -0.8]))


def charged() -> dict[str, np.ndarray]:
    """MPM in a plane, of a law with a constant, and an actuator that is quadratic in its control."""
    import cases

    import warpbots as wb

    scene = cases.block(2, "gent", actuators=(cases.ACTUATORS["dielectric"](2),))
    stretched = np.array([[1.3, 0.1], [0.0, 0.9]])
    return moved(wb.Simulation(scene, wb.MPM(1 / 16), 1e-3, 2, worlds=2), deformation=stretched)


def yielding() -> dict[str, np.ndarray]:
    """MPM in a plane, of matter that yields and of sand."""
    import cases

    import warpbots as wb

    sim = wb.Simulation(cases.yielding(2), wb.MPM(1 / 16), 1e-3, 2, worlds=2)
    return moved(sim, velocity=np.array([1.5, -0.8]))


def liquid() -> dict[str, np.ndarray]:
    """MPM in a plane, of a liquid."""
    import cases

    import warpbots as wb

    sim = wb.Simulation(cases.busy(2, "weakly_compressible"), wb.MPM(1 / 16), 1e-3, 2, worlds=2)
    return moved(sim, velocity=np.array([1.5, -0.8]))


def _carried():
    """A scene in a plane, with a rail that moves by a table and turns by a drive, and a belt that is lifted and runs."""
    import cases

    import warpbots as wb

    lift = wb.PrescribedMotion([0.0, 0.5, 1.0], [[0, 0], [0.01, 0.2], [0.1, 0.3]])
    belt = wb.Obstacle(wb.shapes.HalfSpace((0, 0.24), (0.1, 1)), "friction", 0.2, motion=lift, surface_velocity=(1, 0))
    rail = wb.Constraint("root", "line", (1, 0.2), "rail", motion=lift)
    drives = (
        wb.actuators.VelocityDrive("turn", "rail", 2.0, kind="rotation", pivot=(0.3, 0.3)),
        wb.actuators.VelocityDrive("push", "floor", 1.0, (1, 1)),
    )
    wall = wb.Obstacle(wb.shapes.HalfSpace((0.05, 0), (1, 0)), name="wall")
    return dataclasses.replace(cases.block(2), actuators=drives, obstacles=(belt, wall), constraints=(rail,))


def carried() -> dict[str, np.ndarray]:
    """MPM on a belt that is lifted and runs, held by a rail that moves."""
    import warpbots as wb

    return moved(wb.Simulation(_carried(), wb.MPM(1 / 16), 1e-3, 2, worlds=2), velocity=np.array([1.5, -0.8]))


def pounded() -> dict[str, np.ndarray]:
    """An arm that pounds into a block of MPM, on a tool that moves."""
    from designs import moving
    from hybrid_scenes import hammer

    import warpbots as wb

    solver = wb.Coupled(wb.MPM(0.025), wb.Articulated(tolerance=1e-13))
    return moved(wb.Simulation(moving(hammer(), 0.001), solver, 1e-3, 2, worlds=2))


def hammered() -> dict[str, np.ndarray]:
    """An arm that pounds into a lattice, on a tool that moves."""
    from designs import moving
    from hybrid_scenes import hammer

    import warpbots as wb

    solver = wb.Coupled(wb.MassSpring(0.025, damping=1e-3), wb.Articulated(tolerance=1e-13))
    return moved(wb.Simulation(moving(hammer(), 0.001), solver, 1e-3, 2, worlds=2))


def flung() -> dict[str, np.ndarray]:
    """An arm that flings a strap which is bound to it and to a weight."""
    from hybrid_scenes import flail

    import warpbots as wb

    solver = wb.Coupled(wb.MassSpring(0.0125, integrator="verlet"), wb.Articulated(tolerance=1e-13))
    return moved(wb.Simulation(flail(), solver, 1e-3, 2, worlds=2))


def pinned() -> dict[str, np.ndarray]:
    """An arm in a plane that pounds into a block of MPM, of which a clamp and a grip hold parts."""
    from flat_scenes import flat_anvil

    import warpbots as wb

    solver = wb.Coupled(wb.MPM(0.0125), wb.Articulated(tolerance=1e-13))
    return moved(wb.Simulation(flat_anvil(), solver, 1e-3, 2, worlds=2))


def whipped() -> dict[str, np.ndarray]:
    """An arm in a plane that flings a strap which is bound to it and to a weight, and carries a disc."""
    from flat_scenes import flat_flail

    import warpbots as wb

    solver = wb.Coupled(wb.MassSpring(0.0125, integrator="verlet"), wb.Articulated(tolerance=1e-13))
    return moved(wb.Simulation(flat_flail(), solver, 1e-3, 2, worlds=2))


def drawn() -> dict[str, np.ndarray]:
    """Springs on a belt that is lifted and runs, held by a rail that moves."""
    import warpbots as wb

    return moved(wb.Simulation(_carried(), wb.MassSpring(1 / 16), 1e-3, 2, worlds=2), velocity=np.array([1.5, -0.8]))


def machine() -> dict[str, np.ndarray]:
    """Springs in a plane: bars with a motor between them, which touch each other and the ground."""
    import warpbots as wb
    from warpbots.scene import Attachment, Box, Material, Motor, Scene, SoftBody, floor

    boxes = {"stator": Box((-0.2, -0.05), (0.2, 0.05)), "rotor": Box((-0.05, -0.15), (0.05, 0.15))}
    bars = [SoftBody(n, b, Material(1e6), regions={n: b}, velocity=(0.3, -0.5)) for n, b in boxes.items()]
    axle = Attachment("axle", "stator", "rotor", ((0.0, 0.0),))
    motor = Motor("motor", "axle", "rotor", "stator", 20.0, 8.0)
    scene = Scene(bars, [motor], [floor(-0.151, dim=2, friction=0.3)], attachments=[axle])
    solver = wb.MassSpring(0.05, integrator="verlet", contact_stiffness=1e6, contact_damping=0.3, collision=1.0)
    return moved(wb.Simulation(scene, solver, 2e-3, None), steps=3)


def cubes() -> dict[str, np.ndarray]:
    """Tetrahedra: a cube that falls askew onto another one, on a floor with friction."""
    import warpbots as wb
    from warpbots.scene import Box, Material, Scene, SoftBody, floor

    flesh = Material(1e5, 0.3, 1000.0, "neo_hookean")
    low = SoftBody("low", Box((0, 0, 0.0005), (0.1, 0.1, 0.1)), flesh, velocity=(0, 0, -0.2))
    high = SoftBody("high", Box((0.031, 0.027, 0.104), (0.131, 0.127, 0.2)), flesh, velocity=(0.1, 0, -1.2))
    scene = Scene([low, high], obstacles=[floor(friction=0.5)])
    return moved(wb.Simulation(scene, wb.ProjectiveDynamics(0.05), 5e-3))


def bricks() -> dict[str, np.ndarray]:
    """Damped hexahedra with fibres and cells that fall onto the edge of an obstacle, between their nodes."""
    import warpbots as wb
    from warpbots.scene import Box, Fibre, HalfSpace, Material, Obstacle, PneumaticCell, Posed, Scene, SoftBody

    c = 0.5**0.5
    ridge = Posed(Box((-0.1, -0.1, -0.1), (0.1, 0.1, 0.1)), (0.02, 0, -0.2 * c), [(c, 0, c), (0, 1, 0), (-c, 0, c)])
    body = SoftBody(
        "bricks", Box((0, 0, 0.0005), (0.1, 0.05, 0.05)), Material(1e5, 0.3, 1000.0, "neo_hookean", damping=0.01),
        {"tip": HalfSpace((0.05, 0, 0), (-1, 0, 0))}, velocity=(0.1, 0, -0.5),
    )  # fmt: skip
    drives = [Fibre("fibre", "tip", (1, 0.2, 0), 1e5, 0.2), PneumaticCell("cell", "tip", 1e5, 0.2)]
    scene = Scene([body], drives, [Obstacle(ridge, friction=0.5)])
    return moved(wb.Simulation(scene, wb.ProjectiveDynamics(0.05, elements="hexahedra"), 5e-3))


def winged() -> dict[str, np.ndarray]:
    """A sheet sewn onto a solid and a mast of bars, all damped, in a stream."""
    import soft_bodies

    import warpbots as wb

    scene = soft_bodies.swimming(soft_bodies.damped(soft_bodies.mixed()))
    return moved(wb.Simulation(scene, wb.ProjectiveDynamics(soft_bodies.CELL), soft_bodies.DT))


def draped() -> dict[str, np.ndarray]:
    """Two thin sheets, one above the other, that fall onto the edge of a table with friction."""
    import warpbots as wb
    from warpbots.scene import Box, Material, Obstacle, Scene, Sheet, SoftBody

    bodies = [
        SoftBody(
            f"cloth {k}",
            Sheet.rectangle((-0.05, -0.04), (0.05, 0.04), 5e-4, (2, 1), height=0.0005 + 0.001 * k, bending=1e-5),
            Material(5e5, 0.3, 300.0),
            velocity=(0.1, 0.0, -0.3 - 0.3 * k),
        )
        for k in range(2)
    ]
    table = Obstacle(Box((-1.0, -1.0, -1.0), (0.01, 1.0, 0.0)), friction=0.4)
    return moved(wb.Simulation(Scene(bodies, obstacles=[table]), wb.ProjectiveDynamics(0.02), 5e-3), steps=1)


def turning() -> dict[str, np.ndarray]:
    """Two bars with a motor, of which one carries a wave and the other stays in a plane."""
    import soft_bodies

    import warpbots as wb

    wave = wb.actuators.Oscillation("wave", "rotor", 0.05, 7.0, wave=(20.0, 0.0, 0.0))
    plane = wb.Constraint("stator", "plane", (0.1, 0.2, 1.0))
    machine = soft_bodies.machine()
    scene = dataclasses.replace(machine, actuators=(*machine.actuators, wave), constraints=(plane,))
    solver = wb.ProjectiveDynamics(soft_bodies.CELL, collisions=False, tolerance=TIGHT)
    return moved(wb.Simulation(scene, solver, soft_bodies.DT))


def driven() -> dict[str, np.ndarray]:
    """Fibres, cells and cables in a bar."""
    import soft_bodies

    import warpbots as wb

    scene = soft_bodies.driven()
    scene = dataclasses.replace(scene, actuators=(*scene.actuators, *soft_bodies.strung().actuators))
    return moved(wb.Simulation(scene, wb.ProjectiveDynamics(soft_bodies.CELL), soft_bodies.DT))


def breathing() -> dict[str, np.ndarray]:
    """A finger with a chamber of given pressure and one of given gas, which falls onto a floor."""
    import soft_bodies

    import warpbots as wb

    scene = soft_bodies.breathing((wb.scene.floor(-0.0002, friction=0.3),), held=False)
    return moved(wb.Simulation(scene, wb.ProjectiveDynamics(soft_bodies.CELL, tolerance=TIGHT), soft_bodies.DT))


def tied() -> dict[str, np.ndarray]:
    """Two bars that are tied to each other on a rod, by split global steps."""
    import soft_bodies

    import warpbots as wb
    from warpbots.scene import Attachment, Box, Capsule, Obstacle, SoftBody

    beam = soft_bodies.beam()
    weld = Attachment("weld", "beam", "tip", [(0.16, y, z) for y in (0.02, 0.06) for z in (0.02, 0.06)])
    tip = SoftBody("tip", Box((0.16, 0, 0), (0.32, 0.08, 0.08)), beam.bodies[0].material)
    rod = Obstacle(Capsule((0.26, -1.0, -0.01), (0.3, 1.0, -0.01), 0.01), "friction", 0.3)
    scene = dataclasses.replace(beam, bodies=(*beam.bodies, tip), attachments=(weld,), obstacles=(rod,))
    solver = wb.ProjectiveDynamics(soft_bodies.CELL, splitting=True, tolerance=TIGHT)
    return moved(wb.Simulation(scene, solver, soft_bodies.DT), steps=1)


def factored() -> dict[str, np.ndarray]:
    """A bar with nodes in a plane and on a line, of moduli over decades, by factors of its second derivative."""
    import soft_bodies
    import torch

    import warpbots as wb

    scene = soft_bodies.guided(soft_bodies.beam(), wb.shapes.HalfSpace((0.159, 0, 0.04), (-1, 0, 1)))
    solver = wb.ProjectiveDynamics(soft_bodies.CELL, collisions=False, tolerance=TIGHT, linear_solver="adaptive")
    sim = wb.Simulation(scene, solver, soft_bodies.DT)
    E = sim.parameter("youngs_modulus")
    share = torch.as_tensor(np.random.default_rng(0).uniform(size=E.shape), dtype=E.dtype)
    scene = sim.scene_with(youngs_modulus=E * 10.0 ** (-3.0 * share))
    return moved(wb.Simulation(scene, solver, soft_bodies.DT))


def sled() -> dict[str, np.ndarray]:
    """Flesh with bare bones under it that slide over a floor."""
    import bare_bones

    import warpbots as wb
    from warpbots.scene import Scene, floor

    scene = Scene(bare_bones.sled((0.0, 0.0, 0.0005), velocity=(0.5, 0.0, -0.5)), obstacles=(floor(friction=0.3),))
    return moved(wb.Simulation(scene, wb.ProjectiveDynamics(bare_bones.CELL, tolerance=TIGHT), 5e-3), steps=1)


def loose() -> dict[str, np.ndarray]:
    """Two rigid cubes that tumble and slide on a soft slab on a floor."""
    import loose_bodies

    import warpbots as wb

    return moved(wb.Simulation(loose_bodies.tumbling(), wb.ProjectiveDynamics(0.04, tolerance=TIGHT), 4e-3), steps=2)


def pressed() -> dict[str, np.ndarray]:
    """A soft bar between a clamp and a rail that move, under the edge of a box that presses and drags it; with forces."""
    import warpbots as wb
    from warpbots.shapes import Box

    ends = {"left": Box((-1, -1, -1), (0.01, 1, 1)), "right": Box((0.15, -1, -1), (1, 1, 1))}
    bar = wb.SoftBody("bar", Box((0, 0, 0), (0.16, 0.08, 0.08)), wb.Material(1e5), ends, velocity=(0.0, 0.1, 0.2))
    motion = wb.PrescribedMotion(
        [0, 0.02, 1.0], [[0, 0, 0], [1e-3, 5e-4, 1e-3], [0, 0, 0]], np.diag([0, 0.02, 0.03]), (0.1, 0, 0)
    )
    jaws = [
        wb.Constraint("left", name="clamp", motion=motion),
        wb.Constraint("right", "line", (1, 0.2, 0.5), name="rail", motion=motion),
    ]
    box = wb.Obstacle(
        Box((0.05, -0.1, 0.0805), (0.11, 0.045, 0.2)), name="box", static_friction=0.7, surface_velocity=(0.2, 0.1, 0)
    )
    drives = [
        wb.actuators.VelocityDrive("press", "box", 0.5, (0.1, 0.2, -1)),
        wb.actuators.VelocityDrive("turn", "box", 0.5, (1, 0.2, 0), kind="rotation", pivot=(0.08, 0, 0.1)),
    ]
    scene = wb.Scene([bar], drives, [wb.floor(-0.0005), box], constraints=jaws)
    solver = wb.ProjectiveDynamics(0.04, tolerance=TIGHT, contact_interval=4e-3)
    return moved(wb.Simulation(scene, solver, 4e-3, worlds=2), steps=2)


def hand() -> dict[str, np.ndarray]:
    """Rigid fingers that press on a ball, a box and a drum."""
    import scenes

    import warpbots as wb

    return moved(wb.Simulation(scenes.hand(), wb.Articulated(), 2e-3, worlds=2), steps=3)


def tumbling() -> dict[str, np.ndarray]:
    """A brick that hits a floor with a corner, in no time, sticks or slides there, and flies on."""
    import warpbots as wb

    brick = wb.RigidBody("brick", wb.shapes.Box((-0.1, -0.15, -0.05), (0.1, 0.15, 0.05)), 500.0, points=8)
    turn, corner = np.array([0.3, 0.2, 0.1, 0.9]) / np.linalg.norm([0.3, 0.2, 0.1, 0.9]), np.array([0.1, 0.15, 0.05])
    x, y, z, w = turn
    up = np.array([2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)])  # in the brick's axes
    start = (0.0, 0.0, float(np.abs(up) @ corner) + 5e-4, *turn)
    free = wb.Joint("brick", "free", None, "brick", start=start, start_velocity=(0.5, 0.0, -1.0, 0.0, 1.0, 0.0))
    law = wb.Contact("brick", "floor", 1e8, 1e10, 0.3, 1e7, restitution=0.7, impact="instant")
    scene = wb.Scene([brick], obstacles=[wb.floor()], joints=[free], contacts=[law])
    return moved(wb.Simulation(scene, wb.Articulated(), 2e-3, worlds=2), steps=3)


def lifted() -> dict[str, np.ndarray]:
    """A brick and a ball on a plate that lifts, turns and drags them, while a ball pushes the brick; under loads."""
    import warpbots as wb
    from warpbots.actuators import VelocityDrive

    bodies = [
        wb.RigidBody("brick", wb.shapes.Box((0, 0, 0), (0.12, 0.08, 0.08)), 1000.0, points=26),
        wb.RigidBody("ball", wb.shapes.Sphere((0.3, 0.0, 0.0499), 0.05), 1000.0, points=8),
    ]
    turns = np.array([[0, 0, 0], [1, 0, 2], [3, -1, 4]]) * 1e-2
    motion = wb.PrescribedMotion([0, 0.005, 0.02], np.diag([6, 3, 2]) * 1e-3, turns, (0.05, 0.02, 0.01))
    plate = wb.Obstacle(
        wb.shapes.HalfSpace((0, 0, 0.0002), (0.02, 0.0, 1)), name="plate", motion=motion, surface_velocity=(0.1, 0, 0.3)
    )
    tool = wb.Obstacle(wb.shapes.Sphere((-0.0495, 0.045, 0.041), 0.05), name="tool")
    drives = [
        VelocityDrive("push", "tool", 0.3, (1, 0.1, 0)),
        VelocityDrive("roll", "tool", 2.0, (0, 1, 0), kind="rotation", pivot=(0.0, 0.0, 0.0)),
    ]
    laws = [
        wb.Contact(name, to, 3e6, 1e8, 0.3, 2e5, restitution=0.0)
        for name, to in (("brick", "plate"), ("brick", "tool"), ("ball", "plate"), ("brick", "wall"))
    ]
    wall = wb.Obstacle(wb.shapes.HalfSpace((1, 0, 0), (-1, 0, 0)), name="wall")
    scene = wb.Scene(bodies, drives, [plate, tool, wall], contacts=laws)
    return moved(wb.Simulation(scene, wb.Articulated(), 2e-3, worlds=2), steps=3)


def race() -> dict[str, np.ndarray]:
    """What no kernel may do: threads take places in the order in which they come."""
    import warp as wp

    place, count = wp.zeros(100, dtype=int), wp.zeros(1, dtype=int)
    wp.launch(come_kernel(), 100, inputs=[count], outputs=[place])
    return {"place": place.numpy()}


def come_kernel():
    """Kernel over threads: where each comes in."""
    import warp as wp

    @wp.kernel(enable_backward=False)
    def come(count: wp.array[int], place_out: wp.array[int]):
        i = wp.tid()
        place_out[i] = wp.atomic_add(count, 0, 1)

    return come


def compute(names: list[str]) -> dict[str, np.ndarray]:
    """Results by scene, order and name."""
    from order_of_threads import ORDERS, order

    found = {}
    for name in names:
        for chosen in ORDERS:
            with order(chosen):
                found |= {f"{name}/{chosen}/{n}": value for n, value in globals()[name]().items()}
    return found


if __name__ == "__main__":
    import warnings

    import warp as wp
    from order_of_threads import install

    wp.config.log_level = wp.LOG_WARNING
    wp.config.verify_autograd_array_access = True
    warnings.simplefilter("ignore")
    warnings.filterwarnings("error", ".*has already been read")  # written over before its gradient was computed
    install()
    np.savez(sys.argv[1], **compute(sys.argv[2:]))
