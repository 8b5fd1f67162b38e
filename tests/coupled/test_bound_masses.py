"""Masses of lattices that are bound to rigid bodies, against conservation laws, closed forms and bad input."""

import dataclasses

import numpy as np
import pytest
import torch
from hybrid_scenes import flail
from scipy.special import ellipk

import warpbots as wb
from warpbots.numerics import precision

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*its bending is about"),
    pytest.mark.filterwarnings("ignore:rigid bodies that rest on masses"),
]

S = wb.shapes
ROUNDING = 1e-12 if precision == "float64" else 1e-5
STILL = torch.zeros(1, 0)
RUBBER = wb.Material(2e4, 0.25, 1000.0)
BAR = wb.SoftBody("bar", S.Box((-0.1, -0.02, -0.02), (0.1, 0.02, 0.02)), RUBBER)
CUBE = S.Box((-0.03,) * 3, (0.03,) * 3)
LEFT = wb.RigidBody("left", CUBE, position=(-0.11, 0, 0))
RIGHT = wb.RigidBody("right", CUBE, position=(0.11, 0, 0))
FIX = wb.Joint("fix", "fixed", None, "left")
INTEGRATORS = pytest.mark.parametrize("integrators", [(a, b) for a in ("euler", "verlet") for b in ("bdf1", "sdirk2")])


def simulation(bodies, dt=2e-3, integrators=("euler", "sdirk2"), substeps=None, drag=0.0, spacing=0.02, **parts):
    """A simulation of the bodies without gravity."""
    matter = wb.MassSpring(spacing, integrator=integrators[0], drag=drag)
    solver = wb.Coupled(matter, wb.Articulated(integrators[1]))
    return wb.Simulation(wb.Scene(bodies, **{"gravity": (0, 0, 0), **parts}), solver, dt, substeps)


def away(sim: wb.Simulation, state) -> float:
    """Largest distance of a bound mass from its place in its body [m]."""
    found = []
    for state_ in (sim.state(), state):
        read = sim.sense(state_, torch.zeros(1, sim.channels))
        of = torch.tensor(sim.model.bound.of)
        own = of[of >= 0]
        offset = state_.position[0, of >= 0].double() - read.position[0, own].double()
        found.append(torch.einsum("ni,nij->nj", offset, read.rotation[0, own].double()))
    return float((found[1] - found[0]).norm(dim=-1).max())


@pytest.mark.verification
@INTEGRATORS
@pytest.mark.parametrize("ratio", [1e-3, 1.0, 1e3])
def test_momentum_is_conserved_at_all_ratios_of_masses_while_both_turn(ratio, integrators):
    """In every step of a cube with a bar in it that bends and turns by up to 80 degrees."""
    sim = simulation([BAR, dataclasses.replace(LEFT, density=1481.0 * ratio)], integrators=integrators)
    start, free = sim.state(), torch.tensor(sim.model.bound.of < 0)
    velocity = start.velocity.clone()
    velocity[0, free, 2] = 2.0 * (start.position[0, free, 0] + 0.08)
    state = sim.state(velocity=velocity)
    first = sim.sense(state, STILL)
    energy = float(first.kinetic_energy + first.elastic_energy)
    size = np.sqrt(2.0 * energy * float(sim.parameter("mass").sum() + sim.parameter("body_mass").sum()))
    energies = []
    for _ in range(100):
        state = sim.step(state, STILL)
        read = sim.sense(state, STILL)
        assert (read.momentum - first.momentum).abs().max() <= ROUNDING * size
        assert (read.angular_momentum - first.angular_momentum).abs().max() <= 0.1 * ROUNDING * size
        energies.append(float(read.kinetic_energy + read.elastic_energy) / energy)
    assert max(energies) < 1.02  # energies of symplectic schemes oscillate with the step ...
    assert np.mean(energies[50:]) == pytest.approx(np.mean(energies[:50]), abs=5e-3)  # ... about a constant
    assert away(sim, state) < 5e-6
    assert ratio > 1.0 or read.rotation[0, 0, 0, 0] < 0.96


@INTEGRATORS
def test_two_bodies_on_a_light_bar_oscillate_with_the_frequency_of_springs(integrators):
    """f = sqrt(k / mu) / 2 pi with k = E A / L; plates around the ends of the bar make it 2 % stiffer."""
    light = dataclasses.replace(BAR, material=wb.Material(1e5, 0.25, 1.0))
    pull = [
        wb.Joint(n, "free", None, n, start_velocity=(v, 0, 0, 0, 0, 0)) for n, v in (("left", -0.3), ("right", 0.3))
    ]
    sim = simulation([light, LEFT, RIGHT], 1e-3, integrators, joints=pull)
    with torch.no_grad():
        run = sim.rollout(None, 250, observe=lambda state: state.q)
    z = (run.observation[0, :, 7] - run.observation[0, :, 0]).double().numpy()
    up = np.flatnonzero((z[:-1] < 0) & (z[1:] >= 0))
    at = up - z[up] / (z[up + 1] - z[up])
    stiffness, reduced = 1e5 * 0.04**2 / 0.16, 0.5 * float(sim.parameter("body_mass")[0, 0])
    assert 1e3 / np.diff(at).mean() == pytest.approx(np.sqrt(stiffness / reduced) / (2.0 * np.pi), rel=0.02)
    assert abs(z[5:]).max() == pytest.approx(0.6 * np.sqrt(reduced / stiffness), rel=0.02)


@pytest.mark.parametrize(("axis", "spacing", "off"), [((1, 0, 0), 0.02, 0.02), ((0, 0, 1), 0.01, 0.12)])
def test_a_bar_between_plates_has_the_stiffness_of_a_beam(axis, spacing, off):
    """E A / L in tension; with both ends clamped, 12 E I / L^3 and shear in bending (2 and 4 cells across)."""
    E, L, width, force = 1e6, 0.2, 0.04, 0.5
    bar = wb.SoftBody("bar", S.Box((-0.02, -0.02, -0.02), (L + 0.02, 0.02, 0.02)), wb.Material(E, 0.25, 1000.0))
    left, right = (dataclasses.replace(b, position=(x, 0, 0)) for b, x in ((LEFT, -0.03), (RIGHT, L + 0.03)))
    slide = wb.Joint("slide", "prismatic", None, "right", axis=axis, damping=90.0 if axis[0] else 17.0)
    push = wb.actuators.Torque("push", "slide", force)
    sim = simulation(
        [bar, left, right],
        5e-3,
        integrators=("euler", "bdf1"),
        spacing=spacing,
        drag=30.0,
        joints=[FIX, slide],
        actuators=[push],
    )
    with torch.no_grad():
        end = sim.rollout(torch.ones(40, 1), 40).final
    tension, bending, shear = E * width**2 / L, E * width**4 / L**3, 0.4 * E * 5.0 / 6.0 * width**2 / L
    expected = force / tension if axis[0] else force / bending + force / shear
    assert end.q.item() == pytest.approx(expected, rel=off)
    on = sim.sense(end, torch.ones(1, 1)).matter_force[0].double() @ torch.tensor(axis).double()
    assert on.tolist() == pytest.approx([force, -force], rel=0.03)


@INTEGRATORS
def test_the_force_on_a_body_that_turns_is_that_on_its_circle(integrators):
    """m omega^2 R outward, in steps of another length than the interval in which forces are measured."""
    lump = wb.SoftBody("lump", S.Box((0.1, -0.02, -0.02), (0.14, 0.02, 0.02)), RUBBER)
    case = wb.RigidBody("case", CUBE, position=(0.12, 0, 0))
    hinge = wb.Joint("hinge", "revolute", None, "case", axis=(0, 1, 0), start_velocity=(10.0,))
    sim = simulation([lump, case], 1e-3, integrators, substeps=3, joints=[hinge])
    with torch.no_grad():
        read = sim.sense(sim.rollout(None, 50).final, STILL)
    outward = read.matter_force[0, 0].double() @ read.center[0, 0].double() / 0.12
    spin = float(read.angular_velocity[0, 0, 1])
    assert float(outward) == pytest.approx(float(sim.parameter("mass").sum()) * spin**2 * 0.12, rel=2e-3)
    assert spin == pytest.approx(10.0, rel=2e-3)


@pytest.mark.verification
@INTEGRATORS
def test_gradients_of_forces_on_bodies_are_those_of_differences(integrators):
    matter = wb.MassSpring(0.0125, integrator=integrators[0], damping=1e-3)
    sim = wb.Simulation(flail(), wb.Coupled(matter, wb.Articulated(integrators[1], tolerance=1e-13)), 1e-3, 1)
    rng, start = np.random.default_rng(2), sim.state()
    control = torch.full((1, 2), 0.3, dtype=torch.float64)
    weights = torch.tensor(rng.normal(size=(2, 1, 3, 3)))
    moving = {n: getattr(start, n) + 1e-3 * torch.tensor(rng.normal(size=tuple(getattr(start, n).shape)))
              for n in ("position", "velocity", "qd")}  # fmt: skip
    values = {n: sim.parameter(n) for n in ("mass", "youngs_modulus", "body_mass", "joint_position", "gravity")}
    leaves = {n: v.clone().requires_grad_(True) for n, v in {**moving, **values}.items()}

    def loss(given):
        state = sim.state(**{n: given[n] for n in moving})
        read = sim.sense(state, control, **{n: given[n] for n in values})
        return (weights[0] * read.matter_force).sum() + 10.0 * (weights[1] * read.matter_torque).sum()

    gradients = dict(zip(leaves, torch.autograd.grad(loss(leaves), list(leaves.values())), strict=True))
    leaves = {n: v.detach() for n, v in leaves.items()}
    for name, value in leaves.items():
        direction = torch.tensor(rng.normal(size=tuple(value.shape))) * value.abs().max()
        e = 1e-7
        with torch.no_grad():
            pair = [loss(leaves | {name: value + s * e * direction}) for s in (1.0, -1.0)]
        difference = float(pair[0] - pair[1]) / (2.0 * e)
        assert float((gradients[name] * direction).sum()) == pytest.approx(difference, rel=1e-5, abs=1e-6), name


def test_a_lump_inside_a_body_swings_as_a_part_of_it():
    """The period of a compound pendulum at a right angle, with the masses of both."""
    lump = wb.SoftBody("lump", S.Box((0.1, -0.02, -0.02), (0.14, 0.02, 0.02)), RUBBER)
    case = wb.RigidBody("case", CUBE, 100.0, position=(0.12, 0, 0))
    hinge = wb.Joint("hinge", "revolute", None, "case", axis=(0, 1, 0))
    sim = simulation([lump, case], 5e-3, substeps=4, joints=[hinge], gravity=(0, 0, -9.81))
    with torch.no_grad():
        run = sim.rollout(None, 140, observe=lambda state: state.q)
    z = run.observation[0, :, 0].double().numpy() - 0.5 * np.pi
    cross = np.flatnonzero(z[:-1] * z[1:] < 0)
    at = cross + z[cross] / (z[cross] - z[cross + 1])
    M, m, x = float(sim.parameter("body_mass")), *(a[0].double() for a in (sim.parameter("mass"), sim.state().position))
    inertia = M * (0.06**2 / 6 + 0.12**2) + float((m * (x[:, 0] ** 2 + x[:, 2] ** 2)).sum())
    period = 4.0 * np.sqrt(inertia / (9.81 * 0.12 * (M + float(m.sum())))) * ellipk(0.5)
    assert 2.0 * 5e-3 * np.diff(at).mean() == pytest.approx(period, rel=5e-3)
    assert len(sim.model.bound) == 27
    assert away(sim, run.final) < 5e-5


def test_a_clamp_feels_the_weight_of_what_hangs_in_it():
    """A body that is fixed to the world takes the whole weight and its moment."""
    firm = dataclasses.replace(BAR, material=wb.Material(2e5, 0.25, 1000.0))
    sim = simulation([firm, LEFT], 5e-3, joints=[FIX], drag=30.0, gravity=(0, 0, -9.81))
    with torch.no_grad():
        end = sim.rollout(None, 80).final
        read = sim.sense(end, STILL)
    weight = float(sim.parameter("mass").sum()) * 9.81
    middle = float((sim.parameter("mass")[0] @ end.position[0, :, 0]) / sim.parameter("mass").sum())
    assert read.matter_force[0, 0].tolist() == pytest.approx([0, 0, -weight], abs=1e-3 * weight)
    assert float(read.matter_torque[0, 0, 1]) == pytest.approx(weight * middle, abs=1e-3 * 0.1 * weight)


def test_a_floating_body_starts_with_its_matter_and_bound_masses_with_their_body():
    thrown = dataclasses.replace(BAR, velocity=(0.2, 0.1, -0.3))
    sim = simulation([thrown, LEFT], integrators=("euler", "bdf1"))
    read = sim.sense(sim.rollout(None, 20).final, STILL)
    assert float(read.elastic_energy) < 1e-12 + 1e-7 * float(read.kinetic_energy)
    assert read.velocity[0, 0].tolist() == pytest.approx([0.2, 0.1, -0.3], rel=1e-5)
    turning = wb.Joint(
        "turning", "revolute", None, "left", position=(-0.11, 0, 0), axis=(0, 0, 1), start_velocity=(3.0,)
    )
    sim = simulation([BAR, LEFT], joints=[turning])
    at = torch.tensor(sim.model.bound.of == 0)
    x = sim.state().position[0, at]
    assert torch.allclose(sim.state().velocity[0, at, 1], 3.0 * (x[:, 0] + 0.11))


def test_bound_masses_do_not_touch_obstacles_but_their_body_does():
    """A foot on the floor carries what is bound to it, by its own law."""
    foot = wb.RigidBody("foot", CUBE, 500.0, position=(0, 0, 0.04), points=26)
    lump = wb.SoftBody("lump", S.Box((-0.02, -0.02, 0.01), (0.02, 0.02, 0.05)), RUBBER)
    law = wb.Contact("foot", "floor", 1e8, 1e9)
    sim = simulation(
        [lump, foot],
        5e-3,
        integrators=("euler", "bdf1"),
        obstacles=[wb.floor(0.01)],
        contacts=[law],
        gravity=(0, 0, -9.81),
    )
    with torch.no_grad():
        read = sim.sense(sim.rollout(None, 60).final, STILL)
    weight = 9.81 * float(sim.parameter("mass").sum() + sim.parameter("body_mass").sum())
    assert -float(read.obstacle_force[0, 0, 2]) == pytest.approx(weight, rel=0.01)
    assert read.contact_force.abs().max() == 0.0


def test_a_body_that_its_matter_bears_is_not_said_to_fall():
    """No law between it and the floor is needed, and no warning is given: warnings are errors here."""
    block = wb.SoftBody("block", S.Box((-0.04, -0.04, 0.0), (0.04, 0.04, 0.08)), wb.Material(2e5, 0.25, 1000.0))
    on = dataclasses.replace(LEFT, position=(0, 0, 0.09))
    sim = simulation([block, on], 5e-3, obstacles=[wb.floor()], gravity=(0, 0, -9.81), drag=30.0)
    with torch.no_grad():
        read = sim.sense(sim.rollout(None, 120).final, STILL)
    assert read.position[0, 0, 2] == pytest.approx(0.09, abs=1e-3)
    weight = 9.81 * float(sim.parameter("mass").sum() + sim.parameter("body_mass").sum())
    assert float(read.contact_force[0, 0, 2]) == pytest.approx(-weight, rel=0.01)


def test_links_that_overlap_share_masses_by_depth_and_truss_ends_are_ball_joints():
    near = dataclasses.replace(RIGHT, position=(-0.06, 0, 0))
    of = simulation([BAR, LEFT, near]).model.bound.of
    x = simulation([BAR, LEFT, near]).state().position[0, :, 0].numpy()
    assert set(of[x < -0.0999]) == {0}
    assert set(of[abs(x + 0.06) < 1e-6]) == {1}
    bars = wb.SoftBody("bars", S.Truss([(-0.11, 0, 0), (0.11, 0, 0)], [(0, 1)], 0.01), wb.Material(1e6))
    assert simulation([bars, LEFT, RIGHT]).model.bound.of.tolist() == [0, 1]


def test_what_cannot_be_bound_is_refused_with_place_and_remedy():
    thin = wb.RigidBody("pin", S.Box((-0.03, -0.03, -0.003), (0.03, 0.03, 0.003)), position=(0, 0, 0.01))
    with pytest.raises(wb.SceneError, match=r"RigidBody 'pin': it reaches into SoftBody 'bar', but 0 masses .* three that "
                       r"are not in line; move it further inside by a spacing of 0\.02 m, make it thicker, use"):  # fmt: skip
        simulation([BAR, thin])
    bars = wb.SoftBody("bars", S.Truss([(-0.11, 0, 0), (0.11, 0, 0)], [(0, 1)], 0.01), wb.Material(1e6))
    with pytest.raises(wb.SceneError, match=r"'pin': .* none of the masses at the ends of the bars of its Truss is inside or on "
                       r"the body; move one of its joints inside, or the body out$"):  # fmt: skip
        simulation([bars, dataclasses.replace(thin, position=(0, 0, 0))])
    held = dataclasses.replace(BAR, regions={"end": S.Box((-0.11, -0.03, -0.03), (-0.09, 0.03, 0.03))})
    with pytest.raises(wb.SceneError, match=r"Constraint 'clamp': it holds mass \d+ of 'bar' at \[-0\.1, .*\] m, which is bound "
                       r"to RigidBody 'left'; keep the region out of the rigid body, or hold the body by a Joint"):  # fmt: skip
        simulation([held, LEFT], constraints=[wb.Constraint("end")])
    with pytest.raises(wb.SceneError, match=r"'left': it reaches into SoftBody 'bar'.* is not bound to its particles; .*"
                       r"Coupled\(MassSpring"):  # fmt: skip
        wb.Coupled(wb.MPM(0.02)).build(wb.Scene([BAR, LEFT], domain=((-0.2,) * 3, (0.2,) * 3)))


def test_a_start_away_from_its_place_stops_the_run_with_the_mass():
    sim = simulation([BAR, LEFT], joints=[wb.Joint("slide", "prismatic", None, "left", axis=(-1, 0, 0))])
    with pytest.raises(wb.SimulationError, match=r"mass \d+ of 'bar' in world 0 is 0\.03 m away from its place in RigidBody "
                       r"'left', to which it is bound, and may be half a spacing of 0\.02 m away"):  # fmt: skip
        sim.rollout(None, 2, sim.state(q=torch.tensor([[0.03]], dtype=torch.float64)))


def test_a_stage_brings_back_the_same_bound_masses(tmp_path):
    sim = simulation([BAR, LEFT, RIGHT], joints=[FIX])
    wb.usd.write(tmp_path / "bound.usda", sim.scene)
    again = wb.Simulation(wb.usd.read(tmp_path / "bound.usda"), sim.solver, 2e-3)
    assert again.model.bound.of.tolist() == sim.model.bound.of.tolist()
    assert "36 masses bound to rigid bodies" in again.model.summary()
    assert torch.allclose(again.rollout(None, 5).final.position, sim.rollout(None, 5).final.position, atol=1e-9)


def test_a_foot_without_a_law_gets_a_warning_and_a_hub_above_its_legs_none():
    """Bound masses touch nothing: the foot sinks through the floor until masses above it meet the floor."""
    leg = wb.SoftBody("leg", S.Box((0, 0, 0), (0.08, 0.08, 0.12)), RUBBER)
    foot = wb.RigidBody("foot", S.Box((-0.05, -0.05, -0.02), (0.05, 0.05, 0.02)), position=(0.04, 0.04, 0.0))
    solver, parts = wb.Coupled(wb.MassSpring(0.02)), {"obstacles": [wb.floor(-0.05)]}
    with pytest.warns(
        UserWarning, match="RigidBody 'foot' falls through Obstacle 'floor', because no Contact names both"
    ):
        sim = wb.Simulation(wb.Scene([leg, foot], **parts), solver, 5e-3)
    assert sim.sense(sim.rollout(None, 40).final, STILL).center[0, 0, 2].item() - 0.02 < -0.06
    law = wb.Contact("foot", "floor", 1e5, 1e4)
    sole = dataclasses.replace(foot, points=26)
    assert wb.Simulation(wb.Scene([leg, sole], contacts=[law], **parts), solver, 5e-3, 12)
    clamped = dataclasses.replace(leg, regions={"top": S.Box((-1, -1, 0.11), (1, 1, 1))})
    assert wb.Simulation(wb.Scene([clamped, foot], constraints=[wb.Constraint("top")], **parts), solver, 5e-3)
    hub = dataclasses.replace(foot, position=(0.04, 0.04, 0.12))
    assert wb.Simulation(wb.Scene([leg, hub], **parts), solver, 5e-3)
