"""Rigid bodies at rest on matter, for long and in long steps: they stay where they are, or a warning says why not."""

import pytest
import torch
from hybrid_scenes import MATTER, anvil

import warpbots as wb

S = wb.shapes
ALL = {"all": S.Box((-1, -1, -1), (1, 1, 1))}
ROOM = {"domain": ((-0.06, -0.06, -0.04), (0.16, 0.16, 0.2))}
RISE = wb.PrescribedMotion([0.0, 0.1], [[0, 0, 0], [0, 0, 0.05]], beyond="hold")
EACH = pytest.mark.parametrize("motion", [None, RISE], ids=["at rest", "lifted"])


def cube_on(law: wb.Material, held: dict, solver, dt: float, substeps: int, **parts) -> wb.Simulation:
    """A cube of 6 cm, 0.1 mm above a pad of 10 x 10 x 4 cm."""
    pad = wb.SoftBody("pad", S.Box((0, 0, 0), (0.1, 0.1, 0.04)), law, held)
    cube = wb.RigidBody("cube", S.Box((-0.03,) * 3, (0.03,) * 3), position=(0.05, 0.05, 0.0701))
    return wb.Simulation(wb.Scene([pad, cube], **ROOM, **parts), solver, dt, substeps)


def sunk(sim: wb.Simulation, steps: int, rise: float = 0.0) -> tuple[float, float]:
    """Depth below the surface of the pad [m], and force of the pad divided by the weight [1]."""
    seen = sim.sense(sim.rollout(None, steps).final, torch.zeros(1, 0))
    return rise + 0.07 - seen.center[0, 0, 2].item(), seen.matter_force[0, 0, 2].item() / (1000 * 0.06**3 * 9.81)


@EACH
def test_masses_that_are_fixed_bear_a_cube_for_long(motion):
    """Under sdirk2 it sinks by 2.5 mm/s, without end."""
    material, held = wb.Material(2e4, 0.25, 1000.0), [wb.Constraint("all", motion=motion)]
    sim = cube_on(material, ALL, wb.Coupled(wb.MassSpring(0.02)), 5e-3, 4, constraints=held)
    assert sim.solver.bodies.integrator == "bdf1"
    rise = 0.05 if motion else 0.0
    depth, force = sunk(sim, 60, rise)
    assert force == pytest.approx(1.0, rel=1e-3)
    assert 0.0 <= depth < 1.5e-3  # it falls on masses that rise with 0.5 m/s, and a step is 0.6 mm long
    assert sunk(sim, 100, rise)[0] == pytest.approx(depth, abs=1e-6)


def test_a_body_that_sinks_into_masses_under_two_stages_gets_a_warning_and_the_velocity_is_that_of_the_warning():
    solver = wb.Coupled(wb.MassSpring(0.02), wb.Articulated("sdirk2"))
    with pytest.warns(UserWarning, match=r"sink into them under Articulated\('sdirk2'\), with the velocity 0\.21 G h .* use "
                      r"Articulated\('bdf1'\)"):  # fmt: skip
        sim = cube_on(wb.Material(2e4, 0.25, 1000.0), ALL, solver, 5e-3, 4, constraints=[wb.Constraint("all")])
    first, last = sunk(sim, 60)[0], sunk(sim, 100)[0]
    assert (last - first) / 0.2 == pytest.approx(0.2071 * 9.81 * 1.25e-3, rel=0.02)


@EACH
@pytest.mark.parametrize("integrator", ["sdirk2", "bdf1"])
def test_particles_that_are_fixed_bear_a_cube(integrator, motion):
    """Borne by the inertia of the particles alone it would sink by a third of a cell."""
    solver = wb.Coupled(wb.MPM(0.02), wb.Articulated(integrator))
    sim = cube_on(
        wb.Material(2e4, 0.3, 1000.0), ALL, solver, 5e-3, 3, constraints=[wb.Constraint("all", motion=motion)]
    )
    depth, force = sunk(sim, 60, 0.05 if motion else 0.0)
    assert abs(depth) < 2e-4
    assert force == pytest.approx(1.0, abs=0.05)


def test_warnings_of_the_matter_do_not_hide_those_of_the_bodies():
    """The water is more viscous than it should be, and a ball falls through the floor."""
    water = wb.SoftBody("pool", S.Box((0, 0, 0), (0.04, 0.04, 0.04)),
                        wb.Material(2e4, 1 / 3, 1000.0, "weakly_compressible", damping=1e-5))  # fmt: skip
    ball = wb.RigidBody("ball", S.Sphere((0, 0, 0), 0.02), position=(0.12, 0.12, 0.1))
    scene = wb.Scene([water, ball], obstacles=[wb.floor(0.0)], **ROOM)
    with pytest.warns(
        UserWarning, match=r"'pool': its viscosity of .*; RigidBody 'ball' falls through Obstacle 'floor'"
    ):
        wb.Simulation(scene, wb.Coupled(wb.MPM(0.02)), 5e-3)


@pytest.mark.parametrize("matter", MATTER)
def test_an_arm_stops_at_matter_that_cannot_yield(matter):
    """With friction, at effective masses of the points far above the mass of the head: the point that touches stands."""
    sim = wb.Simulation(anvil(), wb.Coupled(MATTER[matter](0.0125), wb.Articulated()), 1e-3, 1)
    before, end = (sim.rollout(None, steps).final for steps in (1, 4))
    assert end.qd.isfinite().all()
    head = [sim.sense(state, torch.zeros(1, 2)).velocity[0, 0, 2].item() for state in (sim.state(), before, end)]
    assert head[0] < -0.8
    assert min(head[1:]) > -0.1
