"""Rigid bodies that start face to face with others, with soft matter and with obstacles: they rest, and nothing jumps."""

import dataclasses

import numpy as np
import pytest
import torch
from loose_bodies import SIDE, G, cube, last, simulated, slab, steps, thrown
from scipy.spatial.transform import Rotation

from warpbots.meshing import tetrahedra
from warpbots.scene import (
    Box,
    Constraint,
    Joint,
    Material,
    Obstacle,
    Posed,
    RigidBody,
    Scene,
    SceneError,
    Sheet,
    SoftBody,
    Sphere,
    TetMesh,
    Torque,
    floor,
)
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics


def face_to_face(shift: float = 0.0, gap: float = 0.0, count: int = 3, on_floor: bool = True) -> Scene:
    """Equal cubes on one another, `gap` apart, on a floor; each is `shift` beside the one below."""
    cubes = [cube(f"cube {k}", (k * shift, 0.6 * k * shift, k * (SIDE + gap) + gap)) for k in range(count)]
    return Scene(cubes, obstacles=(floor(friction=0.5),) * on_floor)


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize("dt", (1e-3, 5e-3))
@pytest.mark.parametrize("shift", (0.0, 0.008))
@pytest.mark.parametrize("gap", (0.0, -1e-8, 1e-5))
def test_a_stack_that_starts_face_to_face_rests(gap, shift, dt):
    """Bodies part by a quarter of the clearance in 25 ms; the floor and each cube bear the weight on them meanwhile.

    At the clearance at once, steps of 1 ms would throw the uppermost cube 22 mm high.
    """
    sim = simulated(face_to_face(shift, gap), 0.03, dt)
    start = sim.sense(sim.state()).center[0]
    kept = 0.25 * 0.01 * float(sim.model.topology.components.length[0])
    weight = 1000.0 * SIDE**3 * G
    for k, state in enumerate(steps(sim, round(0.05 / dt))):
        rise = (sim.sense(state).center[0] - start).numpy()
        assert rise[:, 2].min() > -1.5e-5
        assert (rise[:, 2] < 1.01 * kept * np.arange(3) + 1e-7).all()
        assert np.abs(rise[:, :2]).max() < 2e-5
        if 0.01 < (k + 1) * dt < 0.02:
            np.testing.assert_allclose(sim.report().bone_force[0, :, 2], weight, rtol=1e-2)
    np.testing.assert_allclose(sim.report().bone_force[0, :, 2], weight, rtol=1e-3)
    np.testing.assert_allclose(sim.report().obstacle_force[0, 0, 2], -3.0 * weight, rtol=1e-3)
    np.testing.assert_allclose(rise[:, 2], (kept - gap) * np.arange(3) - max(gap, 0.0), atol=3e-6)


@pytest.mark.parametrize(("gap", "shift"), ((-1e-6, 0.0), (-1e-6, 0.008), (-1e-3, 0.008), (-SIDE, 0.0)))
def test_an_overlap_is_refused_with_its_place(gap, shift):
    scene = face_to_face(shift, gap, count=2, on_floor=False)
    with pytest.raises(
        SceneError, match=r"RigidBody 'cube .' and RigidBody 'cube .': .* near \[.*\] m; move them apart, so that they "
    ):
        ProjectiveDynamics(0.03).build(scene)


def soft_box(name, lower, upper):
    return SoftBody(name, Box(lower, upper), Material(1e5))


@pytest.mark.parametrize(
    ("other", "how"),
    (
        (((0.03, 0.01, 0.01), (0.07, 0.05, 0.05)), "their surfaces intersect"),
        (((0.01, 0.01, 0.01), (0.03, 0.03, 0.03)), "it starts up to 0.01 m inside it"),
    ),
)
def test_soft_bodies_that_start_inside_one_another_are_refused(other, how):
    """If one is wholly inside the other, no edge meets a face, and nothing else would find it."""
    scene = Scene((soft_box("outer", (0, 0, 0), (0.04, 0.04, 0.04)), soft_box("inner", *other)))
    with pytest.raises(SceneError, match=rf"SoftBody 'inner' and SoftBody 'outer': {how}.* or use collisions=False"):
        ProjectiveDynamics(0.02).build(scene)
    ProjectiveDynamics(0.02, collisions=False).build(scene)


def test_a_sheet_through_the_nodes_of_a_soft_body_is_refused():
    """Its triangles meet the faces of the body along their edges only."""
    cloth = SoftBody("cloth", Sheet.rectangle((-0.02, 0.0), (0.06, 0.04), 1e-3, (4, 2), 0.02), Material(1e5))
    with pytest.raises(SceneError, match=r"SoftBody 'cloth' and SoftBody 'pad': their surfaces intersect near"):
        ProjectiveDynamics(0.02).build(Scene((soft_box("pad", (0, 0, 0), (0.04, 0.04, 0.04)), cloth)))


@pytest.mark.parametrize("shift", (0.0, 0.013))
def test_soft_bodies_that_start_face_to_face_are_not_refused(shift):
    beside = soft_box("beside", (0.04, shift, shift), (0.08, 0.04 + shift, 0.04 + shift))
    ProjectiveDynamics(0.02).build(Scene((soft_box("body", (0, 0, 0), (0.04, 0.04, 0.04)), beside)))


@pytest.mark.verification(float32=True)
def test_a_cube_exactly_on_a_soft_slab_is_in_contact_with_it():
    """It is not bound to it: contact bears its weight, and it flies up if it is thrown."""
    body = cube("cube", (0.02, 0.02, 0.04))
    scene = Scene((slab((0.1, 0.1, 0.04), friction=0.5), body), constraints=(Constraint("bottom"),))
    sim = simulated(scene, 0.02, 5e-3)
    states = list(steps(sim, 30))
    height = [float(sim.sense(s).center[0, 0, 2]) for s in (sim.state(), *states)]
    assert max(height) < height[0] + 0.01 * sim.model.mesh.edge
    weight = 1000.0 * SIDE**3 * G
    assert sim.report().bone_force[0, 0, 2] == pytest.approx(weight, rel=0.02)
    up = simulated(dataclasses.replace(scene, joints=(thrown(body, (0, 0, 0.5, 0, 0, 0)),)), 0.02, 5e-3)
    flown = list(steps(up, 8))[-1]
    assert float(up.sense(flown).center[0, 0, 2]) > height[0] + 0.5 * 0.04 - 0.5 * G * 0.05**2
    assert up.report().contacts[0] == 0


def test_matter_on_a_link_is_in_contact_with_it_and_a_warning_says_how_to_bind_it():
    """A pad that merely touches a link, and a pad that reaches into it."""
    link = RigidBody("link", Box((-0.05, -0.05, -0.05), (0.05, 0.05, 0.0)))
    joint = Joint("stand", "fixed", None, "link")
    for depth, bound in ((0.0, False), (2e-4, True)):
        pad = SoftBody("pad", Box((-0.04, -0.04, -depth), (0.04, 0.04, 0.04)), Material(1e5))
        scene = Scene((pad, link), joints=(joint,))
        if bound:
            sim = Simulation(scene, ProjectiveDynamics(0.02), 5e-3)
        else:
            with pytest.warns(UserWarning, match=r"'pad' touches RigidBody 'link' and is not bound .* by 0.0002 m"):
                sim = Simulation(scene, ProjectiveDynamics(0.02), 5e-3)
        assert (sim.model.mesh.bone >= 0).any() == bound
        list(steps(sim, 4))
        assert (sim.report().contacts[0] > 0) == (not bound)


@pytest.mark.verification
def test_gradients_through_bodies_that_part_slowly_are_those_of_differences(rng):
    """Two cubes a tenth of the clearance apart, in motion along each other, by their poses, velocities and friction."""
    scene = face_to_face(0.008, 3e-5, count=2)
    push = thrown(scene.rigid[1], (0.02, 0.01, 0.0, 0.0, 0.0, 0.1))
    sim = simulated(dataclasses.replace(scene, joints=(push,)), 0.03, 2e-3, tolerance=1e-13)
    rest = sim.state()
    inputs = {"q": rest.q, "qd": rest.qd} | {n: sim.parameter(n) for n in ("body_friction", "gravity", "mass")}
    by = torch.as_tensor(rng.normal(size=rest.q.shape))

    def loss(values: dict) -> torch.Tensor:
        state = sim.state(q=values["q"], qd=values["qd"])
        for _ in range(3):
            state = sim.step(state, torch.zeros(1, 0), **{n: v for n, v in values.items() if n not in ("q", "qd")})
        return (by * state.q).sum()

    leaves = {n: v.clone().requires_grad_() for n, v in inputs.items()}
    loss(leaves).backward()
    apart = [(c[1] - c[0])[2] for c in (sim.sense(s).center[0] for s in (rest, *steps(sim, 3)))]
    assert 1.5e-5 < apart[-1] - apart[0] < 2.5e-5  # they part still
    for name, value in inputs.items():
        direction = torch.as_tensor(rng.normal(size=value.shape)) * (1e-2 if name == "q" else 1.0)
        slope, size = (
            float((leaves[name].grad * direction).sum()),
            1e-6 * (float(value.abs().median() or value.abs().max()) or 1.0),
        )
        with torch.no_grad():
            up, down = (float(loss(inputs | {name: value + s * size * direction})) for s in (1.0, -1.0))
        assert slope != 0.0, name
        assert slope == pytest.approx((up - down) / (2.0 * size), rel=1e-5, abs=1e-10 / size), name


def press(force: float, dt: float, **options) -> Simulation:
    """A soft ball on a floor, and a plate on rails above it that a motor pushes down."""
    ball = SoftBody("ball", Sphere((0, 0, 0.027), 0.025), Material(3e4, 0.3, 300.0), friction=0.6)
    plate = RigidBody("plate", Box((-0.02, -0.02, 0), (0.02, 0.02, 0.01)), 500.0, position=(0, 0, 0.056), friction=0.6)
    rails = Joint("rails", "prismatic", None, "plate", axis=(0, 0, -1), damping=2.0)
    scene = Scene((ball, plate), (Torque("push", "rails", max_torque=force),), (floor(friction=0.6),), joints=(rails,))
    return simulated(scene, 0.0125, dt, **options)


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize(("force", "dt"), ((0.8, 1e-2), (3.2, 1e-2), (0.8, 2e-2)))
def test_a_plate_pressed_on_a_soft_ball_stays_outside_of_it(force, dt):
    """The load would compress the skin of the first nodes that touch by more than the clearance, and is borne."""
    sim = press(force, dt)
    state, push = sim.state(), torch.ones(1, 1)
    for _ in range(round(0.2 / dt)):
        state = sim.step(state, push)
        under = float(sim.sense(state).center[0, 0, 2]) - 0.005
        assert state.position[0, :, 2].max() < under - 0.59 * 0.01 * sim.model.mesh.edge
    assert sim.report().bone_force[0, 0, 2] == pytest.approx(force + 500.0 * 0.04 * 0.04 * 0.01 * G, rel=0.01)


@pytest.mark.verification
def test_gradients_through_a_pressed_pair_are_those_of_differences():
    """Height of the plate after three more steps by the force, the matter and the damping, in the state under load."""
    sim = press(0.8, 1e-2, tolerance=1e-12)
    start, push = sim.state(), torch.ones(1, 1, dtype=torch.float64)
    for _ in range(15):
        start = sim.step(start, push)
    inputs = {"push": 0.9 * push} | {n: sim.parameter(n) for n in ("youngs_modulus", "joint_damping", "mass")}

    def loss(values: dict) -> torch.Tensor:
        state = start
        for _ in range(3):
            state = sim.step(state, values["push"], **{n: v for n, v in values.items() if n != "push"})
        return state.q.sum()

    leaves = {n: v.clone().requires_grad_() for n, v in inputs.items()}
    loss(leaves).backward()
    gap = float(sim.sense(start).center[0, 0, 2]) - 0.005 - float(start.position[0, :, 2].max())
    assert 0.59 < gap / (0.01 * sim.model.mesh.edge) < 0.7
    for name, value in inputs.items():
        slope, size = float((leaves[name].grad * value).sum()), 1e-5
        with torch.no_grad():
            up, down = (float(loss(inputs | {name: (1.0 + s * size) * value})) for s in (1.0, -1.0))
        assert slope != 0.0, name
        assert slope == pytest.approx((up - down) / (2.0 * size), rel=1e-5), name


@pytest.mark.verification
@pytest.mark.parametrize("start", (0.2, 0.3, 0.39))
def test_gradients_of_a_step_that_begins_nearer_than_half_the_clearance_are_those_of_differences(start, rng):
    """By positions and velocities; the pairs of a few nodes state nearly the same conditions, so each needs its skin."""
    gap = start * 2.4e-4
    cube = Box((-0.017, -0.0155, gap), (0.023, 0.0245, 0.04 + gap))
    cube = SoftBody("cube", cube, Material(5e4, 0.3, 1000.0), friction=0.4, velocity=(0.05, 0.0, -0.05))
    plate = RigidBody("plate", Box((-0.06, -0.06, -0.06), (0.06, 0.06, 0.0)), friction=0.4)
    scene = Scene((cube, plate), joints=(Joint("held", "fixed", None, "plate"),))
    sim = simulated(scene, 0.02, 1e-2, tolerance=1e-12)
    rest = sim.state()
    inputs = {"position": rest.position, "velocity": rest.velocity}
    by = torch.as_tensor(rng.normal(size=rest.position.shape))

    def loss(values: dict) -> torch.Tensor:
        return (by * sim.step(sim.state(**values), torch.zeros(1, 0)).position).sum()

    leaves = {n: v.clone().requires_grad_() for n, v in inputs.items()}
    loss(leaves).backward()
    assert sim.state(**inputs).position[0, :, 2].min() < 0.4 * float(sim.model.pairs.clearance.numpy().max())
    for name, size in (("position", 1e-9), ("velocity", 1e-7)):
        direction = torch.as_tensor(rng.normal(size=rest.position.shape))
        slope = float((leaves[name].grad * direction).sum())
        with torch.no_grad():
            up, down = (float(loss(inputs | {name: inputs[name] + s * size * direction})) for s in (1.0, -1.0))
        assert slope == pytest.approx((up - down) / (2.0 * size), rel=1e-5), name


def rigid_press(turn: float, dt: float, **options) -> Simulation:
    """A cube on rails, turned by an angle [deg] from its face to its edge, that a motor presses on a rigid block."""
    turned = Rotation.from_euler("ZX", (20.0, turn), degrees=True).as_matrix()
    height = 0.5 * SIDE * (np.cos(np.radians(turn)) + np.sin(np.radians(turn)))
    block = RigidBody("block", Box((-0.06, -0.06, -0.06), (0.06, 0.06, 0.0)))
    tool = Posed(Box((-0.5 * SIDE,) * 3, (0.5 * SIDE,) * 3), (0.0,) * 3, turned)
    tool = RigidBody("tool", tool, position=(0.0, 0.0, height + 3e-4))
    rails = Joint("rails", "prismatic", None, "tool", axis=(0.0, 0.0, -1.0), damping=2.0)
    push = Torque("push", "rails", max_torque=1e3 * tool.density * SIDE**3 * G)
    return simulated(
        Scene((block, tool), (push,), joints=(Joint("held", "fixed", None, "block"), rails)), 0.03, dt, **options
    )


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize(("turn", "dt"), ((0.0, 2e-2), (45.0, 1e-2), (45.0, 2e-2)))
def test_rigid_bodies_that_a_load_presses_together_stay_apart(turn, dt):
    """A thousand weights would compress the skin by more than the clearance, so that the bodies meet."""
    sim = rigid_press(turn, dt)
    state, push = sim.state(), torch.ones(1, 1)
    start = float(sim.sense(state).center[0, 1, 2]) - 3e-4
    for _ in range(round(0.2 / dt)):
        state = sim.step(state, push)
        apart = float(sim.sense(state).center[0, 1, 2]) - start
        assert apart > 0.59 * 0.01 * float(sim.model.topology.components.length[0])
    assert sim.report().bone_force[0, 1, 2] == pytest.approx(1001.0 * 1000.0 * SIDE**3 * G, rel=0.01)
    assert state.shorter_steps[0] <= 2
    assert sim.report().iterations.max() < 50


@pytest.mark.verification
@pytest.mark.parametrize("turn", (0.0, 45.0))
def test_gradients_through_pressed_rigid_bodies_are_those_of_differences(turn):
    """Height of the tool after three more steps by its load, mass and damping, and by the pose that it starts from."""
    sim = rigid_press(turn, 2e-2, tolerance=1e-12)
    start, push = sim.state(), torch.ones(1, 1, dtype=torch.float64)
    for _ in range(8):
        start = sim.step(start, push)
    inputs = {"q": start.q, "push": 0.9 * push} | {n: sim.parameter(n) for n in ("joint_damping", "mass")}

    def loss(values: dict) -> torch.Tensor:
        state = sim.state(q=values["q"], qd=start.qd)
        for _ in range(3):
            state = sim.step(state, values["push"], **{n: v for n, v in values.items() if n not in ("q", "push")})
        return state.q.sum()

    leaves = {n: v.clone().requires_grad_() for n, v in inputs.items()}
    loss(leaves).backward()
    apart = float((sim.sense(start).center - sim.sense(sim.state()).center)[0, 1, 2]) + 3e-4
    assert 0.59 < apart / (0.01 * float(sim.model.topology.components.length[0])) < 0.7
    for name, value in inputs.items():
        slope, size = float((leaves[name].grad * value).sum()), 1e-6
        with torch.no_grad():
            up, down = (float(loss(inputs | {name: (1.0 + s * size) * value})) for s in (1.0, -1.0))
        assert slope == pytest.approx((up - down) / (2.0 * size), rel=1e-5, abs=1e-9), (name, slope)


@pytest.mark.parametrize("turned", (0.0, 25.0))
def test_a_flat_rigid_top_touches_vertices_alone(turned):
    """The edge between the two triangles of its top adds no contacts: a soft cube rests as on an obstacle.

    The ridges of a rail that is narrower than the edges of the cube carry it.
    """
    rotation = Rotation.from_euler("z", turned, degrees=True).as_matrix()
    mesh = tetrahedra(Box((-0.04, -0.04, 0.0), (0.04, 0.04, 0.08)), 0.03)
    x = mesh.vertices @ rotation.T + [0.0, 0.0, 5e-4]
    body = SoftBody("cube", TetMesh(x, mesh.tets), Material(1e5, 0.3, 1000.0))
    table, rail = Box((-0.1, -0.11, -0.1), (0.1, 0.1, 0.0)), Box((-0.1, -0.008, -0.1), (0.1, 0.008, 0.0))
    ends, contacts = [], []
    for shape, rigid in ((table, True), (table, False), (rail, True)):
        under = {"obstacles": (Obstacle(shape),)}
        if rigid:
            under = {"joints": (Joint("held", "fixed", None, "under"),)}
        bodies = (body, RigidBody("under", shape, 1000.0))[: 1 + rigid]
        sim = simulated(Scene(bodies, **under), 1.0, 1e-2)
        end = last(sim, 30)
        ends.append(end.position[0].double().numpy())
        contacts.append(int(sim.report().contacts[0]))
        weight = 1000.0 * 0.08**3 * G
        assert sim.report().contact_force[0, :, 2].sum() == pytest.approx(weight, rel=0.02)
    assert contacts[0] == contacts[1] == (mesh.vertices[:, 2] == 0.0).sum()
    np.testing.assert_allclose(ends[0] - ends[0].mean(axis=0), ends[1] - ends[1].mean(axis=0), atol=1e-5)
    assert contacts[2] > 4
    assert ends[2][:, 2].min() > -2e-3
