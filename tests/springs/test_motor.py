"""Attachments and motors: a pendulum, a motor against its formula, what is conserved, and gradients."""

import dataclasses

import numpy as np
import pytest
import torch
from cases import DIMENSIONS, assert_gradients, to_numpy
from scipy.spatial.transform import Rotation

from warpbots.numerics import precision
from warpbots.scene import Attachment, Box, Constraint, Expansion, Material, Motor, Scene, SceneError, SoftBody, floor
from warpbots.simulation import Simulation
from warpbots.solvers import MPM, MassSpring
from warpbots.solvers.mass_spring import spectrum

MATTER = Material(1e6, 0.25, 1000.0)
TORQUE, SPEED = {2: 20.0, 3: 1.0}, 8.0


def machine(dim: int = 3, **parts) -> Scene:
    """Two crossed bars on one axle along z, the rotor above the stator, weightless."""
    depth = ((0.0, 0.05), (0.0, 0.05)) if dim == 3 else ((), ())
    boxes = [
        Box((-0.2, -0.05, *depth[0][:1]), (0.2, 0.05, *depth[0][1:])),
        Box((-0.05, -0.15, *depth[1][:1]), (0.05, 0.15, *depth[1][1:])),
    ]
    names = ("stator", "rotor")
    bodies = [SoftBody(n, b, MATTER, regions={n: b}) for n, b in zip(names, boxes, strict=True)]
    points = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.05)) if dim == 3 else ((0.0, 0.0),)
    axle = Attachment("axle", "stator", "rotor", points)
    motor = Motor("motor", "axle", "rotor", "stator", TORQUE[dim], SPEED)
    return Scene(bodies, **{"attachments": [axle], "actuators": [motor], "gravity": (0.0,) * dim} | parts)


def angle(sim: Simulation, position: np.ndarray, region: str) -> float:
    """By how much a region has turned about z since rest [rad], by least squares."""
    chosen = sim.model.lattice.regions[region]
    X, x = sim.model.lattice.position[chosen][:, :2], position[chosen][:, :2]
    A = (x - x.mean(0)).T @ (X - X.mean(0))
    return float(np.arctan2(A[1, 0] - A[0, 1], A[0, 0] + A[1, 1]))


def inertia(sim: Simulation, region: str) -> float:
    """Moment of inertia of a region about z through its centre [kg m^2]."""
    chosen = sim.model.lattice.regions[region]
    x, m = sim.model.lattice.position[chosen][:, :2], sim.model.lattice.mass[chosen]
    return float((m[:, None] * (x - m @ x / m.sum()) ** 2).sum())


@pytest.mark.parametrize("dim", DIMENSIONS)
@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_a_motor_speeds_up_as_its_formula_says(integrator, dim):
    """Relative angle u w (t - tau (1 - exp(-t / tau))), tau = w / T / (1/I_0 + 1/I_1), to 2 %; both ways."""
    sim = Simulation(machine(dim), MassSpring(0.05, integrator=integrator, damping=1e-4), 5e-3, substeps=None)
    tau = SPEED / TORQUE[dim] / (1.0 / inertia(sim, "stator") + 1.0 / inertia(sim, "rotor"))
    for u in (1.0, -0.5):
        trajectory = sim.rollout(torch.full((60, 1), u), 60)
        for t, state in list(trajectory.states(20))[1:]:
            x = to_numpy(state.position)[0]
            turned = angle(sim, x, "rotor") - angle(sim, x, "stator")
            assert turned == pytest.approx(u * SPEED * (t - tau * (1.0 - np.exp(-t / tau))), rel=0.02)


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("dim", DIMENSIONS)
def test_momentum_is_kept(dim):
    """Linear and, about the axis, angular momentum of a machine that drifts and turns; every mass is where it was."""
    sim = Simulation(machine(dim), MassSpring(0.05), 1e-3, substeps=None)
    start = sim.state()
    made = sim.model.lattice
    end = sim.rollout(torch.ones(100, 1), 100, sim.state(velocity=torch.ones(dim) + 0.0 * start.velocity)).final
    v = to_numpy(end.velocity)[0]
    np.testing.assert_allclose(made.mass @ v / made.mass.sum(), 1.0, rtol=1e-4)
    x = to_numpy(end.position)[0]
    r = (x - made.mass @ x / made.mass.sum())[:, :2]
    spin = made.mass @ (r[:, 0] * (v[:, 1] - 1.0) - r[:, 1] * (v[:, 0] - 1.0))
    assert abs(spin) < {"float32": 1e-3, "float64": 1e-9}[precision] * TORQUE[dim] * 0.1
    assert abs(angle(sim, x, "rotor")) > 0.01


@pytest.mark.verification
@pytest.mark.parametrize("dim", DIMENSIONS)
def test_a_body_that_hangs_on_an_attachment_is_a_pendulum(dim):
    """Period 2 pi sqrt(J / m g d) of a stiff bar about a fixed block, in 3D about two points, to 1 %."""
    up = (0.0, 1.0) if dim == 2 else (0.0, 0.0, 1.0)
    depth = () if dim == 2 else (0.1,)
    zeros = () if dim == 2 else (0.0,)
    block = Box((-0.05, *zeros, -0.05), (0.05, *depth, 0.05))
    rod = Box((-0.05, *zeros, -0.4), (0.05, *depth, 0.0))
    points = ((0.0, 0.0),) if dim == 2 else ((0.0, 0.0, 0.0), (0.0, 0.1, 0.0))
    bodies = [SoftBody("block", block, MATTER, regions={"all": block}), SoftBody("rod", rod, MATTER)]
    scene = Scene(bodies, attachments=[Attachment("pivot", "block", "rod", points)], constraints=[Constraint("all")],
                  gravity=tuple(-9.81 * np.array(up)))  # fmt: skip
    sim = Simulation(scene, MassSpring(0.05, damping=1e-4), 5e-3, substeps=None)
    made = sim.model.lattice
    hangs = made.body == 1
    start = sim.state().position.clone()
    turn = Rotation.from_euler("y", 0.05).as_matrix()[np.ix_([0, 2], [0, 2])]
    plane = start[0][hangs][:, [0, -1]] @ torch.as_tensor(turn, dtype=start.dtype)
    start[0, torch.as_tensor(hangs), 0], start[0, torch.as_tensor(hangs), -1] = plane[:, 0], plane[:, 1]
    swing = sim.rollout(None, 2400, sim.state(position=start), observe=lambda s: s.position[:, hangs, 0].mean(dim=1))
    m, r = made.mass[hangs], made.position[hangs][:, [0, -1]]  # the shared masses lie on the axis and count for nothing
    period = 2.0 * np.pi * np.sqrt((m[:, None] * r**2).sum() / (-9.81 * m @ r[:, 1]))
    assert 1.0 / spectrum(swing.observation[0], sim.dt).peaks(1)[0] == pytest.approx(period, rel=0.01)


def test_what_is_attached_is_one_lattice():
    """Masses and volumes add up, regions of both bodies hold the shared masses, and springs keep their stiffness."""
    scene = machine(3)
    model = MassSpring(0.05).build(scene)
    with pytest.warns(UserWarning, match="overlap at the start"):
        loose = MassSpring(0.05).build(dataclasses.replace(scene, attachments=(), actuators=())).lattice
    made = model.lattice
    assert len(made) == len(loose) - 2
    assert made.mass.sum() == pytest.approx(loose.mass.sum())

    def stiffness(lattice) -> list[tuple]:
        """Of every spring, with the places of its ends."""
        ends = [sorted(map(tuple, lattice.position[pair].round(9).tolist())) for pair in lattice.ends]
        return sorted((*a, *b, round(k, 6)) for (a, b), k in zip(ends, lattice.stiffness, strict=True))

    assert stiffness(made) == stiffness(loose)
    shared = made.regions["stator"] & made.regions["rotor"]
    np.testing.assert_allclose(made.position[shared], [[0, 0, 0], [0, 0, 0.05]], atol=1e-12)
    assert (made.ends[:, 0] < made.ends[:, 1]).all()
    assert (np.diff(made.ends[:, 0]) >= 0).all()
    np.testing.assert_allclose(made.carry @ made.position, made.cells.position)


@pytest.mark.parametrize("pairs", [("ab", "bc"), ("bc", "ab"), ("ab", "cb"), ("cb", "ab"), ("ab", "bc", "ca")], ids=str)
def test_three_bodies_on_one_point_share_one_mass(pairs):
    """In whatever order they are attached."""
    box = Box((0.0, 0.0), (0.1, 0.1))
    bodies = [SoftBody(name, box, MATTER, regions={name: box}) for name in "abc"]
    pins = [Attachment(f"{a}{b}", a, b, ((0.1, 0.1),)) for a, b in pairs]
    lattice = MassSpring(0.1).build(Scene(bodies, attachments=pins)).lattice
    assert len(lattice) == 3 * 4 - 2
    shared = lattice.regions["a"] & lattice.regions["b"] & lattice.regions["c"]
    assert lattice.position[shared].tolist() == [[0.1, 0.1]]
    assert lattice.mass[shared] == pytest.approx([3 * 1000.0 * 0.01 / 4])
    assert lattice.mass.sum() == pytest.approx(3 * 1000.0 * 0.01)


@pytest.mark.verification
@pytest.mark.parametrize("integrator", ["euler", "rk4"])
@pytest.mark.parametrize("dim", DIMENSIONS)
def test_gradients(integrator, dim, rng):
    """To everything, torques and speeds included: differences in float64 to 1e-6."""
    scene = machine(dim, obstacles=[floor(height=-0.14 if dim == 2 else 0.005, dim=dim, friction=0.1)])
    drives = [*scene.actuators, Expansion("grow", "rotor", 0.1)]
    scene = dataclasses.replace(scene, actuators=drives, gravity=(0.3, 0.2, -0.1)[:dim])
    sim = Simulation(scene, MassSpring(0.05, integrator=integrator), 2e-3, substeps=4, worlds=2)
    assert_gradients(sim, rng, 1e-7)


def test_a_motor_bounds_the_time_step():
    """A strong, slow motor is stiffer than the lattice: its own friction must not overshoot."""
    scene = machine(2)
    weak = MassSpring(0.05).build(scene)
    strong = dataclasses.replace(scene, actuators=[dataclasses.replace(scene.actuators[0], max_torque=1e5)])
    solver = MassSpring(0.05)
    bound = solver.max_time_step(solver.build(strong))
    assert bound < solver.max_time_step(weak)
    sim = Simulation(machine(2), solver, 1e-3, substeps=None)
    rate = 1e5 / SPEED * (1.0 / inertia(sim, "stator") + 1.0 / inertia(sim, "rotor"))
    assert bound == pytest.approx(2.0 / rate, rel=1e-5)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Attachment("a", "b", "b", ((0, 0),)), "Attachment 'a': it attaches 'b' to itself"),
        (lambda: Attachment("a", "b", "c", ()), "'a': points must be at least one"),
        (lambda: Attachment("a", "b", "c", ((0, 0), (0, 0))), "two of its points are at one place"),
        (lambda: Motor("m", "a", "r", "s", 0.0, 1.0), r"Motor 'm': max_torque must be positive \[N m\], got 0"),
        (lambda: Motor("m", "a", "r", "s", 1.0, -1.0), r"max_speed must be positive \[rad/s\]"),
        (lambda: machine(attachments=[]), "Motor 'motor': there is no attachment 'axle'; the scene has none"),
        (lambda: machine(attachments=[Attachment("axle", "stator", "leg", ((0, 0, 0), (0, 0, 1)))]), "Attachment 'axle': there is no soft body 'leg'; the scene has stator, rotor"),
        (
            lambda: machine(attachments=[Attachment("axle", "stator", "rotor", ((0, 0, 0),))]),
            "its attachment 'axle' must have two points, which define its axis, got 1",
        ),
        (lambda: machine(actuators=[Motor("m", "axle", "tail", "stator", 1, 1)]), "Motor 'm': there is no region 'tail'"),
        (
            lambda: MassSpring(0.05).build(machine(actuators=[], attachments=[
                Attachment("axle", "stator", "rotor", ((0.0, 0.0, 0.0), (0.0, 0.0, 0.5)))])),
            "the nearest mass of 'stator' is 0.45 m from its point",
        ),
        (
            lambda: MassSpring(0.05).build(machine(actuators=[], attachments=[
                Attachment("axle", "stator", "rotor", ((0.0, 0.0, 0.0), (0.0, 0.0, 0.01)))])),
            "two of its points have the same nearest mass of 'stator'",
        ),
        (
            lambda: MassSpring(0.05).build(machine(actuators=[], attachments=[
                Attachment("axle", "stator", "rotor", ((0.05, 0.0, 0.0),)),
                Attachment("pin", "stator", "rotor", ((0.076, 0.0, 0.0),))])),
            "Attachment 'pin': with earlier attachments it merges the masses of 'stator' at .* and .* m; move its points",
        ),
        (lambda: MPM(0.05).build(machine()), "Motor 'motor': MPM has no motors; use MassSpring"),
        (lambda: MPM(0.05).build(machine(actuators=[])), "Attachment 'axle': in MPM bodies in contact stick"),
    ],
)  # fmt: skip
def test_faults(make, text):
    with pytest.raises(SceneError, match=text):
        make()
