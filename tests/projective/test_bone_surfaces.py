"""Bones that stick out of their soft body: what is bare of them touches obstacles, soft bodies, cloth and other bones."""

import dataclasses

import numpy as np
import pytest
import torch
from bare_bones import CELL, NOWHERE, SOFT, STIFF, TURNS, G, bare, forces, gap, momentum, sled, thrown, weight
from skeletons import arm
from soft_bodies import iterations

from warpbots.contact import signed_distance
from warpbots.numerics import precision
from warpbots.scene import Box, Joint, Material, RigidBody, Scene, Sheet, SoftBody, floor
from warpbots.simulation import Simulation, SimulationError
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective.contact_points import ContactPoints


def test_a_bare_bone_falls_and_stands_on_its_lower_side():
    """It ends on its corners as deep as the skin gives way, forces balance the weight, and the bone keeps its shape."""
    sim = Simulation(Scene(sled((0.0, 0.0, 0.03)), obstacles=(floor(),)), ProjectiveDynamics(CELL), 0.005)
    state, most = sim.state(), 0
    for _ in range(150):
        state = sim.step(state, torch.zeros(0))
        most = max(most, iterations(sim))
    force, on_bone = forces(sim)
    (points,) = bare(sim, state)
    particles = sim.model.matter
    at = np.flatnonzero(particles.bone == 0)
    lengths, rest = (
        np.linalg.norm(a[at, None] - a[at], axis=2) for a in (state.position[0].double().numpy(), particles.position)
    )
    skin = sim.model.matrices.of(sim.dt).contact.skin.numpy()[-1] * force[:, 2].max()
    assert most < 60
    assert state.velocity.abs().max() < 1e-4
    np.testing.assert_allclose(force.sum(axis=0), [0.0, 0.0, weight(sim)], atol=1e-4 * weight(sim))
    assert not force[~on_bone].any()
    assert skin < 1e-4 * particles.edge
    corners = points[np.abs(points[:, 2]) < 0.01]
    assert np.ptp(corners, axis=0)[:2] == pytest.approx([0.12, 0.06], abs=1e-4)
    assert (np.abs(corners[:, 2]) < 1.1 * skin + 1e-7).all()
    assert np.abs(lengths - rest).max() < 1e-7


def test_a_bare_bone_sticks_below_the_angle_of_friction_and_slides_above_it():
    """Half a degree below atan(mu) it stays, half a degree above it slides with g (sin - mu cos)."""
    mu = torch.tensor([0.1, 0.8]).repeat_interleave(2)
    offset, dt = torch.tensor([-0.5, 0.5]).repeat(2), 1 / 120
    angle = torch.atan(mu) + torch.deg2rad(offset)
    scene = Scene(sled(material=STIFF), obstacles=(floor(friction=0.5),))
    sim = Simulation(scene, ProjectiveDynamics(CELL), dt, worlds=len(mu))
    state, rise = sim.state(), round(0.3 / dt)
    down = torch.stack([torch.sin(angle), torch.zeros_like(angle), -torch.cos(angle)], dim=-1)
    for k in range(rise + round(0.3 / dt)):
        state = sim.step(state, torch.zeros(0), gravity=G * min(1.0, (k + 1) / rise) * down, friction=mu[:, None])
        if k == rise:
            begun, time = state.qd[:, 0], 0.0
        elif k > rise:
            time += dt
    gained, slides = state.qd[:, 0] - begun, offset > 0
    expected = G * (torch.sin(angle) - mu * torch.cos(angle)) * time
    assert state.qd[~slides].abs().max() < 1e-4
    torch.testing.assert_close(gained[slides], expected[slides], rtol=0.02, atol=0.0, check_dtype=False)


def test_a_sliding_bone_is_slowed_down_by_mu_g():
    scene = Scene(sled(material=STIFF), obstacles=(floor(friction=0.3),))
    sim = Simulation(scene, ProjectiveDynamics(CELL), 1 / 500)
    state, place = sim.rollout(None, 50).final, []
    state.qd[:, 0] += 1.0
    state.velocity[..., 0] += 1.0
    for _ in range(80):
        state = sim.step(state, torch.zeros(0))
        place.append(float(sim.center_of_mass(state)[0, 0]))
    slowed = np.polyfit(sim.dt * np.arange(79), np.diff(place) / sim.dt, 1)[0]
    assert slowed == pytest.approx(-0.3 * G, rel=0.01)


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("other", ["block", "sled"])
def test_nothing_passes_a_bare_bone_and_momentum_is_handed_over(other, turn):
    """Vertices, faces and edges, at 2 m/s in steps of 5 ms; momentum stays to rounding and to what a step may lack."""
    tolerance, lost = {"float32": (1e-5, 1e-4), "float64": (1e-8, 1e-12)}[precision]
    scene = Scene(thrown(other, turn, 2.0), gravity=NOWHERE)
    sim = Simulation(scene, ProjectiveDynamics(CELL, tolerance=tolerance), 0.005)
    state, edge, met = sim.state(), sim.model.matter.edge, 0
    before, still = momentum(sim, state), sim.sense(state).center[0, 0]
    for _ in range(20):
        state = sim.step(state, torch.zeros(0))
        distance = gap(sim, state)
        assert distance > 0.005 * edge
        met += distance < 0.011 * edge
    assert met >= 1
    assert (momentum(sim, state) - before).norm() < lost * before.norm()
    assert (sim.sense(state).center[0, 0] - still)[2] > 0.005


@pytest.mark.parametrize("other", ["block", "sled"])
def test_what_is_too_fast_for_a_step_is_reported_and_never_passes(other):
    """At 20 m/s a step of 10 ms is longer than both bodies: they end apart on their own sides, or beside each other."""
    solver = ProjectiveDynamics(CELL, max_iterations=300, max_halvings=1)
    sim = Simulation(Scene(thrown(other, "edge", 20.0), gravity=NOWHERE), solver, 0.01)
    state, fault = sim.state(), "did not converge"
    try:
        for _ in range(4):
            state = sim.step(state, torch.zeros(0))
            assert gap(sim, state) > 0.0
            apart = sim.sense(state).center[0, 0].cpu() - state.position[0, sim.model.matter.body == 2].mean(0).cpu()
            assert apart[2] > 0.0 or apart[:2].norm() > 0.1  # sleds slide past each other
    except SimulationError as error:
        fault = str(error)
    assert "kept apart" in fault or "did not converge" in fault


def test_without_contact_between_bodies_bare_bones_are_in_contact_with_obstacles_alone():
    scene = Scene((*thrown("block", "face", 2.0),), gravity=NOWHERE)
    through = Simulation(scene, ProjectiveDynamics(CELL, collisions=False), 0.005)
    final = through.rollout(None, 40).final
    readings = through.sense(final)
    assert readings.velocity.abs().max() < 1e-6
    assert final.position[0, through.model.matter.body == 2, 2].mean() > 0.2
    assert "body_friction" not in through.parameters()
    assert not len(through.model.topology.bone_surfaces)
    grounded = Scene(sled((0.0, 0.0, 0.03)), obstacles=(floor(),))
    landed = Simulation(grounded, ProjectiveDynamics(CELL, collisions=False), 0.005)
    (points,) = bare(landed, landed.rollout(None, 60).final)
    assert np.abs(points[:, 2]).min() < 1e-5


@pytest.mark.verification(float32=True)
def test_the_mean_of_both_frictions_slows_a_block_on_a_bare_bone():
    """A soft block slides along a plate that is held at its end: (0.2 + 0.4) / 2 g."""
    grip = SoftBody("grip", Box((-0.2, -0.04, -0.02), (-0.14, 0.04, 0.02)), SOFT)
    plate = RigidBody("plate", Box((-0.18, -0.04, -0.02), (0.2, 0.04, 0.0)), friction=0.2)
    block = Box((-0.1, -0.02, 0.0004), (-0.06, 0.02, 0.0204))
    thrown = SoftBody("block", block, dataclasses.replace(STIFF, poissons_ratio=0.0), friction=0.4)
    scene = Scene((grip, plate, thrown), joints=(Joint("stand", "fixed", None, "plate"),))
    sim = Simulation(scene, ProjectiveDynamics(CELL), 1 / 500)
    state, of_block, place = sim.rollout(None, 40).final, sim.model.matter.body == 2, []
    state.velocity[:, of_block, 0] += 0.6
    for _ in range(60):
        state = sim.step(state, torch.zeros(0))
        place.append(float(state.position[0, of_block, 0].double().mean()))
    slowed = np.polyfit(sim.dt * np.arange(49), np.diff(place[10:]) / sim.dt, 1)[0]
    assert slowed == pytest.approx(-0.3 * G, rel=0.02)


def test_bone_surfaces_begin_where_bones_are_and_as_fast():
    """After a while in flight, in two worlds: places and velocities of all vertices are those of rigid motions."""
    sim = Simulation(Scene(sled(), obstacles=(floor(-9.0),)), ProjectiveDynamics(CELL), 0.005, worlds=2)
    rates = torch.tensor([[0.3, 0.2, 0.1, 4.0, -3.0, 2.0], [-0.3, 0.5, 1.0, 1.0, 0.0, -5.0]]).double()
    state = sim.rollout(None, 10, sim.state(qd=rates)).final
    arrays = sim.solver.state(sim.model)
    for name in ("position", "velocity", "q", "qd"):
        getattr(arrays, name).assign(getattr(state, name).numpy())
    points, readings = ContactPoints(sim.model, arrays, sim.dt), sim.sense(state)
    count, own = (
        sim.model.topology.sizes.nodes,
        sim.model.topology.bone_surfaces.position - np.array(sim.scene.rigid[0].position),
    )
    x, v = (a.numpy().reshape(2, -1, 3) for a in (points.position, points.velocity))
    for w in range(2):
        arm_of = own @ readings.rotation[w, 0].numpy().T
        rotation = np.cross(readings.angular_velocity[w, 0].numpy(), arm_of)
        np.testing.assert_allclose(x[w, count:], readings.position[w, 0].numpy() + arm_of, atol=1e-6)
        np.testing.assert_allclose(v[w, count:], readings.velocity[w, 0].numpy() + rotation, atol=1e-6)
        np.testing.assert_array_equal(x[w, :count], state.position[w].numpy())
        np.testing.assert_array_equal(v[w, :count], state.velocity[w].numpy())


def test_cloth_lies_on_a_bare_bone():
    """A bone on the floor with its soft body beside it carries a square of cloth, which never gets below its upper side."""
    soft = SoftBody("soft", Box((0.06, -0.04, 0.0), (0.12, 0.04, 0.08)), SOFT)
    bone = RigidBody("bone", Box((-0.06, -0.02, 0.02), (0.09, 0.02, 0.06)), density=2000.0)
    cloth = Sheet.rectangle((-0.08, -0.06), (0.02, 0.06), 1e-3, (6, 6), height=0.075)
    sheet = SoftBody("cloth", cloth, Material(1e5, 0.3, 300.0))
    scene = Scene((soft, bone, sheet), obstacles=(floor(),), joints=(Joint("stand", "fixed", None, "bone"),))
    sim = Simulation(scene, ProjectiveDynamics(CELL), 0.0025)
    state, of_cloth = sim.state(), sim.model.matter.body == 2
    for _ in range(80):
        state = sim.step(state, torch.zeros(0))
        x = state.position[0, of_cloth].double().numpy()
        assert signed_distance(bone.shape, x).min() > 0.0
    assert x[:, 2].max() < 0.062
    assert float(state.position[0, of_cloth, 2].mean()) > 0.04


@pytest.mark.parametrize(("thickness", "cell"), [(0.024, 0.02), (0.06, 0.03)])
def test_bones_inside_their_soft_body_have_no_surface(thickness, cell):
    """Also where they are as thick as the soft body: its nodes are on their surface, and touch."""
    model = ProjectiveDynamics(cell).build(arm("free", thickness=thickness, obstacles=(floor(-0.05),)))
    assert not len(model.topology.bone_surfaces)
    assert model.topology.sizes.points == model.topology.sizes.nodes == len(model.matter)
    assert model.body_friction.shape == (1, 1)


def test_a_state_has_the_nodes_of_soft_bodies_alone():
    sim = Simulation(Scene(sled(), obstacles=(floor(),)), ProjectiveDynamics(CELL), 0.005)
    particles = sim.model.matter
    assert len(sim.model.topology.bone_surfaces) > 50
    assert sim.state().position.shape == (1, len(particles), 3)
    assert signed_distance(Box((-0.04, -0.04, 0.04), (0.04, 0.04, 0.10)), particles.position).max() < 1e-9
    assert sim.parameter("body_friction").shape == (1, 2)
