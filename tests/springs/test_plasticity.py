"""Springs that yield and break: one bar against its stress-strain curve, a lattice against differences."""

import dataclasses

import numpy as np
import pytest
import torch
from cases import ACTUATORS, assert_gradients, block, end_of, stirred, to_numpy, worn

from warpbots.scene import Box, Constraint, Load, Material, Scene, SceneError, SoftBody, Truss, floor
from warpbots.simulation import Simulation
from warpbots.solvers import MPM, MassSpring

E, RADIUS, LENGTH = 1e5, 0.01, 0.5
MATTER = Material(E, 0.25, 1000.0)
STIFFNESS = E * 2.0 * RADIUS / LENGTH


def bar(force: float = 0.0, **limits) -> Scene:
    """A bar along x, held at the origin, with a load at its end."""
    regions = {"held": Box((-0.01, -0.1), (0.01, 0.1)), "end": Box((LENGTH - 0.01, -0.1), (LENGTH + 0.01, 0.1))}
    material = dataclasses.replace(MATTER, **limits)
    body = SoftBody("bar", Truss([[0, 0], [LENGTH, 0]], [[0, 1]], RADIUS), material, regions=regions)
    loads = [Load("end", (force, 0.0))] if force else []
    return Scene([body], constraints=[Constraint("held")], loads=loads, gravity=(0.0, 0.0))


def drawn(sim: Simulation, strain: float):
    """The bar at rest, drawn to a length."""
    position = sim.state().position.clone()
    position[:, 1, 0] = LENGTH * (1.0 + strain)
    return sim.state(position=position)


@pytest.mark.parametrize("integrator", ["euler", "verlet", "rk4"])
@pytest.mark.parametrize("strain", [0.1, -0.1])
def test_a_bar_that_yields_keeps_its_new_length(integrator, strain):
    """Drawn to 10 % with a yield strain of 2 % it comes to rest 8 % longer, or shorter; below it springs back."""
    sim = Simulation(bar(yield_strain=0.02), MassSpring(1.0, integrator=integrator, drag=20.0), 5e-3, substeps=None)
    end = sim.rollout(None, 400, drawn(sim, strain)).final
    assert to_numpy(end.plastic).item() == pytest.approx(np.sign(strain) * 0.08, abs=1e-6)
    assert to_numpy(end.position)[0, 1, 0] == pytest.approx(LENGTH * (1.0 + np.sign(strain) * 0.08), rel=1e-5)
    end = sim.rollout(None, 400, drawn(sim, 0.019)).final
    assert to_numpy(end.plastic).item() == 0.0
    assert to_numpy(end.position)[0, 1, 0] == pytest.approx(LENGTH, rel=1e-5)


def test_the_force_of_a_bar_that_yields_is_that_of_its_yield_strain():
    """Perfect plasticity: E A e_y however far it is drawn, read from the acceleration of its end."""
    sim = Simulation(bar(yield_strain=0.02), MassSpring(1.0), 1e-5)
    for strain in (0.03, 0.2, 0.5):
        end = sim.rollout(None, 1, drawn(sim, strain)).final
        force = sim.model.lattice.mass[1] * to_numpy(end.velocity)[0, 1, 0] / 1e-5
        assert force == pytest.approx(-E * 2.0 * RADIUS * 0.02, rel=1e-4)


def test_a_bar_breaks_at_its_strain_and_stays_broken():
    """Loads of 0.95 and 1.05 of E A e_b, put on slowly by drag; what hangs on a broken bar flies free."""
    critical = E * 2.0 * RADIUS * 0.1
    for share in (0.95, 1.05):
        sim = Simulation(bar(share * critical, breaking_strain=0.1), MassSpring(1.0, drag=100.0), 5e-3, substeps=None)
        end = sim.rollout(None, 300).final
        assert bool(end.broken[0, 0]) == (share > 1.0)
        if share < 1.0:
            assert to_numpy(end.position)[0, 1, 0] == pytest.approx(LENGTH * 1.095, rel=1e-3)
            continue
        back = dataclasses.replace(end, position=sim.state().position, velocity=sim.state().velocity)
        sim = Simulation(bar(share * critical, breaking_strain=0.1), MassSpring(1.0), 1e-3)
        flown = sim.rollout(None, 10, back).final
        speed = share * critical / sim.model.lattice.mass[1] * 1e-2
        assert to_numpy(flown.velocity)[0, 1, 0] == pytest.approx(speed, rel=1e-4)
        assert sim.sense(flown).elastic_energy.item() == 0.0


@pytest.mark.filterwarnings("ignore:.* its lattice may fold there")
def test_limits_that_are_not_reached_change_nothing():
    """To the last bit."""
    scene = block(2, velocity=(1.0, -2.0), obstacles=(floor(height=0.25, dim=2),))
    tough = dataclasses.replace(scene.bodies[0].material, yield_strain=5.0, breaking_strain=9.0)
    ends = []
    for made in (scene, dataclasses.replace(scene, bodies=[dataclasses.replace(scene.bodies[0], material=tough)])):
        sim = Simulation(made, MassSpring(0.05), 2e-3, substeps=None)
        ends.append(sim.rollout(None, 40).final)
    assert torch.equal(ends[0].position, ends[1].position)
    assert (ends[1].broken == 0.0).all()
    assert ends[0].broken.shape == (1, 0)


def test_a_beam_that_hits_a_pin_tears_there():
    """A brittle slab lands on a post: springs break, most of them over the post, and they are in the state."""
    body = SoftBody("slab", Box((0.0, 0.1), (0.6, 0.16)), Material(2e5, 0.25, 1000.0, breaking_strain=0.2))
    post = floor(height=0.05, dim=2)
    post = dataclasses.replace(post, shape=Box((0.28, -1.0), (0.32, 0.1)))
    scene = Scene([dataclasses.replace(body, velocity=(0.0, -4.0))], obstacles=[post], domain=((-1, -2), (2, 1)))
    sim = Simulation(scene, MassSpring(0.02, damping=1e-4), 1e-3, substeps=None)
    end = sim.rollout(None, 60).final
    broken = to_numpy(end.broken)[0] > 0
    middle = sim.model.lattice.position[sim.model.lattice.ends].mean(axis=1)
    assert 5 < broken.sum() < 0.2 * len(broken)
    assert (np.abs(middle[broken, 0] - 0.3) < 0.05).mean() > 0.6


@pytest.mark.verification
@pytest.mark.parametrize("integrator", ["euler", "rk4"])
@pytest.mark.parametrize("dim", [2, 3])
def test_gradients(integrator, dim, rng):
    """To everything, yield strains, plastic strains and damage included: differences in float64 to 1e-6."""
    scene = block(
        dim,
        obstacles=(floor(height=0.262, dim=dim, friction=0.1),),
        actuators=tuple(ACTUATORS[name](dim) for name in ("expansion", "oscillation")),
        damping=1e-3,
    )
    sim = Simulation(worn(scene), MassSpring(1 / 16, integrator=integrator), 6e-3, substeps=3, worlds=2)
    inputs = stirred(sim, np.random.default_rng(0), intervals=2)
    assert (end_of(sim, inputs).plastic != inputs["plastic"]).double().mean() > 0.1
    assert_gradients(sim, rng)


@pytest.mark.parametrize("field", ["yield_strain", "breaking_strain"])
def test_faults(field):
    for value in (0.0, -0.1):
        with pytest.raises(SceneError, match=f"Material: {field} must be positive, or None for never"):
            dataclasses.replace(MATTER, **{field: value})
    with pytest.raises(SceneError, match=f"SoftBody 'bar': MPM has no {field}; leave it out"):
        MPM(0.05).build(dataclasses.replace(bar(**{field: 0.1}), constraints=()))
