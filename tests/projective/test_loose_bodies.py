"""Rigid bodies without flesh in projective dynamics: their motion, their contacts, and what they cost."""

import dataclasses

import numpy as np
import pytest
import torch
from loose_bodies import GAP, SIDE, G, cube, last, off_centre, pile, simulated, slab, steps, thrown, tumbling

from warpbots.actuators import Torque
from warpbots.scene import (
    Box,
    Constraint,
    HalfSpace,
    Inertia,
    Joint,
    Material,
    Obstacle,
    Posed,
    PrescribedMotion,
    RigidBody,
    Scene,
    SceneError,
    Sheet,
    SoftBody,
    Sphere,
    floor,
)
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated, ProjectiveDynamics


def chain(shape: bool) -> tuple[list[RigidBody], list[Joint], list[Torque]]:
    """A body that flies and spins, with two more on a hinge and a ball, with or without shapes."""
    inertia = None if shape else Inertia(2.0, (0.01, 0.02, -0.01), (0.01, 0.02, 0.025))
    box = Box((-0.04, -0.05, -0.08), (0.04, 0.05, 0.08)) if shape else None
    bodies = [RigidBody(n, box, inertia=inertia, position=(0.2 * k, 0.0, 0.5)) for k, n in enumerate("abc")]
    joints = [
        Joint("root", "free", None, "a", start_velocity=(0.3, 0.2, 1.0, 3.0, -5.0, 8.0)),
        Joint("hinge", "revolute", "a", "b", (0.1, 0.0, 0.5), axis=(0, 1, 0), start_velocity=2.0, stiffness=3.0),
        Joint("ball", "ball", "b", "c", (0.3, 0.0, 0.5), start_velocity=(1.0, 2.0, -1.0), damping=0.01),
    ]
    return bodies, joints, [Torque("motor", "hinge", 0.5)]


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("soft", (True, False), ids=("beside matter", "alone"))
@pytest.mark.parametrize("shape", (True, False), ids=("boxes", "points"))
@pytest.mark.parametrize("collisions", (True, False), ids=("", "untouchable"))
def test_free_motion_is_the_one_of_articulated(shape, soft, collisions):
    """To rounding, under implicit Euler, for spinning bodies with joints, springs and a motor, with and without shapes."""
    bodies, joints, motors = chain(shape)
    far = [SoftBody("far", Box((1.0, 0.0, 0.0), (1.05, 0.05, 0.05)), Material(5e4))] if soft else []
    rigid = Simulation(Scene(bodies, motors, joints=joints), Articulated("bdf1"), 2e-3, substeps=1)
    sim = simulated(Scene([*far, *bodies], motors, joints=joints), 0.03, 2e-3, collisions=collisions)
    one, other, u = rigid.state(), sim.state(), torch.full((1, 1), 0.4)
    for _ in range(20):
        one, other = rigid.step(one, u.double()), sim.step(other, u)
    error = 1e-6 if other.q.dtype == torch.float32 or sim.solver.tolerance > 1e-9 else 1e-12
    assert (one.q - other.q).abs().max() < error
    assert (one.qd - other.qd).abs().max() < 10.0 * error
    assert (other.q - sim.state().q)[0, :3].norm() > 0.03


def test_a_cube_slides_as_far_on_soft_matter_as_coulomb_says():
    """v^2 / (2 mu g) = 42.5 mm, without v h / 2 = 0.5 mm, which implicit Euler loses."""
    mu, v, h = 0.3, 0.5, 2e-3
    body = cube("cube", (0.05, 0.02, 0.05 + GAP), 926.0, mu)
    scene = Scene(
        (slab((0.3, 0.1, 0.05), friction=mu), body), joints=(thrown(body, (v, 0, 0, 0, 0, 0)),),
        constraints=(Constraint("bottom"),),
    )  # fmt: skip
    sim = simulated(scene, 0.025, h)
    state = last(sim, 110)
    way = (sim.sense(state).center - sim.sense(sim.state()).center)[0, 0]
    assert float(way[0]) == pytest.approx(v**2 / (2.0 * mu * G) - v * h / 2.0, rel=0.02)
    assert way[1].abs() < 1e-4
    assert sim.sense(state).velocity[0, 0].norm() < 0.02  # the slab swings


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("spin", (0.0, 40.0))
@pytest.mark.parametrize("density", (1.0, 1000.0, 1e5), ids="1:{:g}".format)
def test_momentum_is_kept_in_every_step_of_an_off_centre_hit(spin, density):
    sim = simulated(off_centre(spin, density), 0.04, 2e-3)
    start, before = sim.sense(sim.state()), sim.sense(sim.state()).velocity[0, 0]
    errors, touched = [], 0
    for state in steps(sim, 12):
        touched += int(sim.report().contacts[0])
        errors.append(float((sim.sense(state).momentum - start.momentum).norm() / start.momentum.norm()))
    assert touched > 0
    assert (sim.sense(state).velocity[0, 0] - before).norm() > 0.01
    assert max(errors) < 1e-6


@pytest.mark.parametrize(
    ("density", "modulus", "count"),
    ((1.0, 5e4, 30), (1000.0, 5e4, 30), (1e5, 5e7, 25), (9.3e5, 5e7, 25)),
    ids=("1:2300", "1:2.3", "43:1", "400:1"),
)
def test_a_cube_rests_on_a_slab_whatever_their_masses(density, modulus, count):
    sim = simulated(Scene((slab((0.1, 0.1, 0.05), modulus), cube("cube", (0.02, 0.02, 0.05 + GAP), density)),
                          constraints=(Constraint("bottom"),)), 0.025, 1e-2)  # fmt: skip
    state = last(sim, count)
    weight = density * SIDE**3 * G
    assert sim.sense(state).velocity.abs().max() < 1e-3
    np.testing.assert_allclose(sim.report().bone_force[0, 0], [0.0, 0.0, weight], atol=1e-2 * weight)


@pytest.mark.parametrize(("angle", "sticks"), ((25.0, True), (28.0, False), (35.0, False)))
def test_a_cube_on_an_incline_obeys_coulomb(angle, sticks):
    """It sticks below arctan 0.5 = 26.6 degrees, and slides above it with g (sin - mu cos)."""
    mu, slope = 0.5, np.deg2rad(angle)
    tilted = (G * np.sin(slope), 0.0, -G * np.cos(slope))
    ground = Obstacle(HalfSpace((0.0, 0.0, 0.0), (0.0, 0.0, 1.0)), "friction", mu)
    scene = Scene((cube("cube", (0.0, 0.0, 2e-4)),), obstacles=(ground,), gravity=tilted)
    sim = simulated(scene, 0.03, 5e-3)
    first = last(sim, 10)
    state = last(sim, 20, first)
    velocity = [float(sim.sense(s).velocity[0, 0, 0]) for s in (first, state)]
    expected = 0.0 if sticks else G * (np.sin(slope) - mu * np.cos(slope))
    assert (velocity[1] - velocity[0]) / 0.1 == pytest.approx(expected, abs=1e-3 * G)


@pytest.mark.parametrize("ratio", (1e-3, 1.0, 1e3), ids="{:g}".format)
def test_a_pile_of_rigid_cubes_stands(ratio):
    """The forces of many contacts at two rigid bodies add up to the weights; no body sinks or creeps."""
    sim = simulated(pile(3 if ratio == 1.0 else 2, ratio), 0.03, 5e-3)
    state = last(sim, 40)
    readings, mass = sim.sense(state), sim.parameter("mass")[0].double().numpy()
    assert readings.velocity.abs().max() < 1e-4
    assert readings.center[0, :, :2].sub(SIDE / 2.0).abs().max() < 1e-6
    heights = SIDE / 2.0 + (SIDE + GAP) * np.arange(len(mass))
    np.testing.assert_allclose(readings.center[0, :, 2].numpy(), heights, atol=4e-4)
    np.testing.assert_allclose(sim.report().bone_force[0, :, 2], mass * G, rtol=1e-3)


@pytest.mark.verification(float32=True)
def test_the_order_of_bodies_does_not_matter():
    """Two piles of two cubes: one after the other in the list of bodies, or one between the cubes of the other."""
    cubes = {}
    for name, x in (("left", 0.0), ("right", 0.2)):
        for level in range(2):
            velocity = (0.3, 0.1, -0.2) if name == "left" else (-0.1, 0.2, -0.3)
            body = cube(f"{name} {level}", (x, 0.0, level * (SIDE + GAP) + GAP), friction=0.3 + 0.2 * level)
            cubes[body.name] = body, thrown(body, (*velocity, 0.5, 1.0, 2.0 - level))
    ends = []
    for order in ((0, 1, 2, 3), (0, 2, 3, 1)):
        chosen = [list(cubes)[k] for k in order]
        bodies, joints = zip(*(cubes[name] for name in chosen), strict=True)
        scene = Scene(bodies, joints=joints, obstacles=(floor(friction=0.4),))
        end = last(simulated(scene, 0.03, 4e-3), 6).q.reshape(-1, 7)
        ends.append(end[np.argsort(order)])
    assert (ends[0][:, 2] < (0.5 + torch.arange(2).repeat(2)) * (SIDE + GAP) + 2.0 * GAP).all()  # they touch
    error = 1e-9 if torch.get_default_dtype() == torch.float64 else 1e-5
    assert (ends[1] - ends[0]).abs().max() < error


def test_a_cube_on_a_soft_block_on_a_rigid_base():
    bodies = (
        cube("top", (0.02, 0.02, 0.1 + 2.0 * GAP), 500.0), slab((0.1, 0.1, 0.05), height=0.05 + GAP),
        RigidBody("base", Box((0.0, 0.0, 0.0), (0.1, 0.1, 0.05)), 2000.0),
    )  # fmt: skip
    sim = simulated(Scene(bodies, obstacles=(floor(-GAP),)), 0.05, 1e-2)
    state = last(sim, 50)
    assert sim.sense(state).velocity.abs().max() < 1e-3
    force = sim.report().bone_force[0]
    weights = np.array([500.0 * SIDE**3, 2000.0 * 5e-4]) * G
    np.testing.assert_allclose(force[:, 2], weights, rtol=5e-3)


def test_a_ball_lies_in_a_cloth():
    sheet = Sheet.rectangle((-0.1, -0.1), (0.1, 0.1), 1e-3, (6, 6))
    edge = Box((-0.11, -0.11, -0.01), (-0.0999, 0.11, 0.01)), Box((0.0999, -0.11, -0.01), (0.11, 0.11, 0.01))
    cloth = SoftBody("cloth", sheet, Material(1e6, 0.3, 500.0), {"left": edge[0], "right": edge[1]})
    ball = RigidBody("ball", Sphere((0.0, 0.0, 0.0), 0.03), 500.0, position=(0.0, 0.0, 0.031))
    scene = Scene((cloth, ball), constraints=tuple(Constraint(n, name=n) for n in ("left", "right")))
    sim = simulated(scene, 0.03, 1e-2)
    state = last(sim, 110)  # it rolls to one side or another, and swings
    assert sim.sense(state).velocity.norm() < 0.01
    assert -0.05 < float(sim.sense(state).center[0, 0, 2]) < 0.03
    weight = 500.0 * 4.0 / 3.0 * np.pi * 0.03**3 * G
    assert sim.report().bone_force[0, 0, 2] == pytest.approx(weight, rel=0.01)


def test_worlds_are_independent_to_the_bit():
    """Three worlds of different speeds, each the same as alone."""
    scene, speed = tumbling(), (-0.4, 0.2, 0.7)
    sims = [simulated(scene, 0.04, 4e-3, worlds=n) for n in (len(speed), 1)]
    many = sims[0].state()
    qd = many.qd.clone()
    qd[:, 0] += torch.tensor(speed)
    together = last(sims[0], 3, sims[0].state(qd=qd))
    for w in range(len(speed)):
        alone = last(sims[1], 3, sims[1].state(qd=qd[w : w + 1]))
        for name in ("position", "velocity", "q", "qd"):
            assert torch.equal(getattr(together, name)[w], getattr(alone, name)[0]), (w, name)


def test_a_restart_within_contact_ends_with_the_same_bits():
    sim = simulated(tumbling(), 0.04, 4e-3)
    states = list(steps(sim, 5))
    assert sim.report().contacts[0] > 4
    again = simulated(tumbling(), 0.04, 4e-3)
    fields = {n: t.clone() for n, t in vars(states[1]).items()}
    end = last(again, 3, again.state(**fields))
    for name in ("position", "velocity", "q", "qd"):
        assert torch.equal(getattr(end, name), getattr(states[4], name)), name


def test_a_body_without_flesh_has_no_column_of_nodes_and_a_block_of_its_own():
    """What the global step stores and inverts grows with the number of bodies, not with nodes or its square."""

    def sizes(count: int) -> tuple[int, int, int]:
        cubes = [cube(f"cube {k}", (0.2 * k, 0.3, 0.0)) for k in range(count)]
        model = ProjectiveDynamics(0.025).build(Scene((slab((0.1, 0.1, 0.05)), *cubes)))
        handles = model.matrices.of(1e-2).handles
        assert handles.weight.size == 0
        coupling, work = model.workspace.contact.coupling, model.workspace.bones.work[0]
        return work.inverse.size, work.rows.size, coupling.width

    assert sizes(2) == (2 * 6 * 6, 2 * 4 * 6, 12)
    assert sizes(9) == (9 * 6 * 6, 9 * 4 * 6, 12)


@pytest.mark.verification
@pytest.mark.parametrize("soft", (False, pytest.param(True, marks=pytest.mark.slow)), ids=("rigid", "soft"))
def test_gradients_through_contact_are_those_of_differences(soft, rng):
    """Relative 1e-6, and Taylor remainders of second order, by all that a motion in contact depends on."""
    sim, count = simulated(tumbling(soft), 0.04, 4e-3, tolerance=1e-13), 3
    rest, fields = sim.state(), ["q", "qd"] + ["position", "velocity"] * soft
    names = ["mass", "center_of_mass", "friction", "body_friction", "gravity", "joint_position", "body_position"]
    names += ["youngs_modulus", "density"] * soft
    inputs = {n: sim.parameter(n).clone() for n in names} | {n: getattr(rest, n).clone() for n in fields}
    by = {n: torch.as_tensor(rng.normal(size=inputs[n].shape)) for n in fields}

    def loss(values: dict) -> torch.Tensor:
        state = sim.state(**{n: values[n] for n in fields})
        for _ in range(count):
            state = sim.step(state, torch.zeros(1, 0), **{n: values[n] for n in names})
        return sum((by[n] * getattr(state, n)).sum() * (0.01 if n in ("velocity", "qd") else 1.0) for n in by)

    leaves = {n: v.clone().requires_grad_() for n, v in inputs.items()}
    loss(leaves).backward()
    with torch.no_grad():
        start = float(loss(inputs))
    assert sim.report().contacts[0] > 10
    for name, value in inputs.items():
        direction = torch.as_tensor(rng.normal(size=value.shape))
        slope, scale = float((leaves[name].grad * direction).sum()), float(value.abs().median()) or 0.1
        assert slope != 0.0, name
        errors, slopes = [], []
        for step in (1e-5, 1e-6, 1e-7):
            size = step * scale
            with torch.no_grad():
                ends = [float(loss(inputs | {name: value + s * size * direction})) for s in (1.0, -1.0)]
            slopes.append((ends[0] - ends[1]) / (2.0 * size))
            errors.append(abs(ends[0] - start - size * slope))
        assert min(abs(slope - s) for s in slopes) < 1e-6 * abs(slope) + 1e-12 / scale, (name, slope, slopes)
        small = max(1e-2 * errors[1], 1e-13)  # of second order, down to rounding; a contact may begin to slide at 1e-5
        assert errors[2] < 2.0 * small or errors[1] < 1e-12, (name, errors)


def test_gradients_of_a_pile_that_stands_are_found_in_single_precision():
    """Contacts hold all of it: the end moves with the start, and heights and speeds at the start have no effect."""
    sim = simulated(pile(3), 0.03, 5e-3)
    rest = last(sim, 20)
    leaves = {n: getattr(rest, n).detach().clone().requires_grad_() for n in ("q", "qd")}
    end = last(sim, 3, sim.state(**leaves))
    x, z = (end.q[0, k::7] for k in (0, 2))
    by_x = torch.autograd.grad(x.sum(), leaves.values(), retain_graph=True)
    by_z = torch.autograd.grad(z.sum(), leaves.values())
    assert (by_x[0][0, ::7] - 1.0).abs().max() < 1e-3
    assert by_x[1].abs().max() < 1e-2 * 5e-3
    assert by_z[0][0, 2::7].abs().max() < 1e-2
    assert by_z[1].abs().max() < 1e-2 * 5e-3


def test_what_is_barely_inside_soft_matter_is_refused():
    """Nodes in line, or a body inside that no node reaches, are neither a bone nor a loose body."""
    soft = SoftBody("cube", Box((0.0,) * 3, (0.1,) * 3), Material(5e4))
    pin = RigidBody("pin", Box((0.02, 0.02, -0.05), (0.03, 0.03, 0.15)))
    needle = RigidBody("needle", Box((0.049, 0.049, -0.05), (0.051, 0.051, 0.15)))
    for body in (pin, needle):
        with pytest.raises(
            SceneError, match=f"'{body.name}'.* nodes of the soft bodies are inside or on it, .* by a gap"
        ):
            ProjectiveDynamics(0.05).build(Scene((soft, body)))
    inside = dataclasses.replace(pin, shape=Box((0.01, 0.01, 0.01), (0.09, 0.09, 0.09)))
    assert ProjectiveDynamics(0.02).build(Scene((soft, inside))).matrices.of(1e-2).handles.fleshed == 1


def bent(placed: bool) -> Scene:
    """Two bones with a pad each, bent at the elbow and turned at the root, by the start of a joint or by `placed`."""
    turn, bend = np.deg2rad(25.0), np.deg2rad(40.0)

    def about_y(angle: float) -> np.ndarray:
        c, s = np.cos(angle), np.sin(angle)
        return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])

    bone, pad = Box((-0.05, -0.015, -0.015), (0.05, 0.015, 0.015)), Box((-0.02, -0.03, -0.03), (0.02, 0.03, 0.03))
    R = about_y(turn), about_y(turn + bend)
    elbow = R[0] @ [0.12, 0.0, 0.0]
    centers = R[0] @ [0.06, 0.0, 0.0], elbow + R[1] @ [0.06, 0.0, 0.0]
    pads = [
        SoftBody(f"pad {k}", Posed(pad, tuple(c), r), Material(5e4))
        for k, (c, r) in enumerate(zip(centers, R, strict=True))
    ]
    where = list(zip(centers, R, strict=True)) if placed else [((x, 0.0, 0.0), np.eye(3)) for x in (0.06, 0.18)]
    bones = [RigidBody(n, bone, 2000.0, position=x, rotation=r) for n, (x, r) in zip("ab", where, strict=True)]
    at, start = (elbow, (None, None)) if placed else ((0.12, 0.0, 0.0), (turn, bend))
    spring = {"stiffness": 2.0, "neutral": 0.1 if placed else bend + 0.1}
    joints = (
        Joint("root", "revolute", None, "a", axis=(0, 1, 0), start=start[0], start_velocity=2.0),
        Joint("elbow", "revolute", "a", "b", at, axis=(0, 1, 0), start=start[1], **spring),
    )
    return Scene((*pads, *bones), obstacles=(floor(-0.25),), joints=joints)


@pytest.mark.verification(float32=True)
def test_joints_start_anywhere_with_their_flesh():
    """As if the bones had been given where they start, in motion and in gradients."""
    ends, slopes = [], []
    for placed in (True, False):
        sim = simulated(bent(placed), 0.015, 4e-3, elements="tetrahedra")
        mass = sim.parameter("mass").clone().requires_grad_()
        state = sim.state()
        for _ in range(5):
            state = sim.step(state, torch.zeros(1, 0), mass=mass)
        ends.append(state)
        slopes.append(torch.autograd.grad(state.velocity.sum(), mass)[0])
    error = 1e-9 if torch.get_default_dtype() == torch.float64 else 2e-6
    assert (ends[0].position - sim.state().position).norm(dim=-1).max() > 1e-2
    assert (ends[0].position - ends[1].position).abs().max() < error
    assert (ends[0].velocity - ends[1].velocity).abs().max() < 1e3 * error
    assert (ends[0].qd - ends[1].qd).abs().max() < 1e4 * error
    assert (slopes[0] - slopes[1]).abs().max() < 1e3 * error * slopes[0].abs().max()


def test_a_free_body_starts_where_its_joint_says():
    """On the slab and in contact with it at once, turned by its quaternion."""
    half = np.deg2rad(90.0) / 2.0
    start = (0.0, 0.0, 0.2, 0.0, float(np.sin(half)), 0.0, float(np.cos(half)))
    plate = RigidBody("plate", Box((-0.005, -0.03, -0.03), (0.005, 0.03, 0.03)), position=(0.05, 0.05, -0.2 + 0.0553))
    joint = Joint("free", "free", None, "plate", start=start)
    sim = simulated(
        Scene((slab((0.1, 0.1, 0.05)), plate), joints=(joint,), constraints=(Constraint("bottom"),)), 0.05, 5e-3
    )
    state = last(sim, 20)
    np.testing.assert_allclose(sim.sense(state).center[0, 0].numpy(), [0.05, 0.05, 0.055], atol=5e-4)
    assert sim.report().contacts[0] >= 3


def test_soft_matter_rests_on_a_body_that_cannot_move():
    """A rigid table on a fixed joint has no joint velocities, and still carries a block."""
    table = RigidBody("table", Box((-0.1, -0.1, -0.1), (0.1, 0.1, 0.0)), 1000.0)
    block = SoftBody("block", Box((-0.04, -0.04, 0.001), (0.04, 0.04, 0.081)), Material(1e5))
    scene = Scene([block, table], joints=[Joint("stand", "fixed", None, "table")])
    sim = Simulation(scene, ProjectiveDynamics(0.04), 5e-3)
    height = sim.rollout(None, 10).final.position[0, :, 2].min()
    assert -1e-4 < float(height) < 1e-3


def test_a_base_may_stand_in_the_floor():
    """A body that cannot move overlaps with a still floor, as bases of robots do, without a force; others are refused."""
    base = RigidBody("base", Box((-0.1, -0.1, -0.01), (0.1, 0.1, 0.05)), 1000.0)
    plate = RigidBody("plate", Box((-0.1, -0.1, 0.05), (0.1, 0.1, 0.06)), 1000.0)
    block = cube("block", (-0.03, -0.03, 0.06 + GAP))
    joints = [Joint("stand", "fixed", None, "base"), Joint("on top", "fixed", "base", "plate")]
    scene = Scene([base, plate, block], obstacles=[floor(friction=0.5)], joints=joints)
    sim = simulated(scene, 0.05, 5e-3)
    state = last(sim, 20)
    assert sim.sense(state).velocity.abs().max() < 1e-4
    report = sim.report()
    assert np.abs(report.obstacle_force).max() == 0.0
    np.testing.assert_allclose(report.bone_force[0, 2, 2], 1000.0 * SIDE**3 * G, rtol=1e-3)
    lift = PrescribedMotion([0.0, 1.0], [[0, 0, 0], [0, 0, 0.001]], interpolation="linear")
    rising = dataclasses.replace(scene.obstacles[0], motion=lift)
    for other in (
        dataclasses.replace(scene, obstacles=[rising]),
        dataclasses.replace(scene, joints=[Joint("slide", "prismatic", None, "base"), joints[1]]),
    ):
        with pytest.raises(SceneError, match="surface points of RigidBody 'base' start inside it"):
            ProjectiveDynamics(0.05).build(other)
