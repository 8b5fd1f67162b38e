"""Matter that flows under MPM: its state, its gradients, and who else takes it."""

import dataclasses
import pickle

import numpy as np
import pytest
import torch
from cases import assert_gradients, block, end_of, least, stirred, to_numpy, yielding

import warpbots as wb
from warpbots.numerics import precision
from warpbots.simulation import Simulation
from warpbots.solvers import MPM, MassSpring, ProjectiveDynamics

DX = 1 / 8


def of_clay(scene: wb.Scene, plasticity=None) -> wb.Scene:
    """The scene with bodies of the same stiffness that flow."""
    kind = plasticity or wb.materials.VonMises(300.0, 500.0)
    bodies = [
        dataclasses.replace(b, material=dataclasses.replace(b.material, law="hencky", plasticity=kind))
        for b in scene.bodies
    ]
    return dataclasses.replace(scene, bodies=bodies)


def equivalent_stress(sim: Simulation, state) -> np.ndarray:
    """sqrt(3/2) |dev tau| = sqrt(6) mu |dev e| of each particle [Pa], shape (worlds, n_particles)."""
    F = to_numpy(state.deformation)
    stretch = np.log(np.linalg.svd(F, compute_uv=False))
    dev = stretch - stretch.mean(axis=-1, keepdims=True)
    E, nu = (to_numpy(sim.parameter(n)) for n in ("youngs_modulus", "poissons_ratio"))
    return np.sqrt(6.0) * E / (2.0 * (1.0 + nu)) * np.linalg.norm(dev, axis=-1)


def test_a_block_that_falls_stays_dented_and_rubber_does_not():
    """No particle is ever beyond its yield surface and some are on it; plastic strain grows; elastic matter has none."""
    fall = {"velocity": (0.0, -2.0), "gravity": (0.0, 0.0), "obstacles": (wb.floor(height=0.245, dim=2),)}
    rubber, clay = (
        Simulation(scene, MPM(1 / 16), 5e-3, None) for scene in (block(2, **fall), of_clay(block(2, **fall)))
    )
    assert rubber.state().plastic.shape == (1, 0)
    assert "yield_stress" not in rubber.parameters()
    before, height, nearest = clay.state().plastic, {}, -np.inf
    tolerance = {"float64": 1e-11, "float32": 1e-2}[precision]
    for sim in (rubber, clay):
        with torch.no_grad():
            motion = sim.rollout(None, 40)
        for _, state in motion.states():
            if sim is clay:
                limit = 300.0 + 500.0 * to_numpy(state.plastic)
                beyond = equivalent_stress(sim, state) - limit
                assert beyond.max() <= tolerance
                nearest = max(nearest, beyond.max())
                assert (state.plastic >= before).all()
                before = state.plastic
        height[sim] = float(np.ptp(to_numpy(motion.final.position)[0, :, 1]))
    assert before.max() > 0.1
    assert abs(nearest) <= tolerance
    assert height[clay] < 0.97 * height[rubber]


def test_bodies_of_different_kinds_in_one_scene():
    """Elastic bodies beside a plastic one move to the bit as they do alone, far away from it, and remember nothing."""
    Box, rubber = wb.shapes.Box, wb.Material(1e4, 0.3, 1000.0, "hencky")
    left = wb.SoftBody("left", Box((0.1, 0.25), (0.35, 0.5)), rubber, velocity=(0.0, -2.0))
    clay = dataclasses.replace(rubber, plasticity=wb.materials.VonMises(100.0))
    right = wb.SoftBody("right", Box((1.1, 0.25), (1.35, 0.5)), clay, velocity=(0.0, -2.0))
    around = {"obstacles": [wb.floor(height=0.24, dim=2)], "domain": ((0.0, 0.0), (1.5, 1.0))}
    alone, both = (
        Simulation(wb.Scene(bodies, **around), MPM(DX), 4e-3, 4).rollout(None, 5).final
        for bodies in ([left], [left, right])
    )
    n = alone.position.shape[1]
    assert torch.equal(both.position[:, :n], alone.position)
    assert torch.equal(both.deformation[:, :n], alone.deformation)
    assert not both.plastic[:, :n].any()
    assert both.plastic[:, n:].max() > 0.01


def test_the_state_is_kept_wherever_states_are(tmp_path):
    """In pickles, files of states and worlds of a batch, which do what each does alone."""
    sim = Simulation(yielding(2), MPM(DX), 4e-3, 4, worlds=2)
    speed = torch.tensor([[1.0, -1.0], [-0.5, -2.0]])[:, None].expand_as(sim.state().velocity)
    start = sim.state(velocity=speed)
    final = sim.rollout(None, 5, start).final
    assert (final.plastic > 0.0).any(dim=1).all()
    assert not torch.equal(final.plastic[0], final.plastic[1])
    single = Simulation(yielding(2), MPM(DX), 4e-3, 4)
    for world in range(2):
        alone = single.rollout(None, 5, single.state(velocity=speed[world : world + 1])).final
        assert torch.equal(alone.plastic[0], final.plastic[world])
    sim.save_state(tmp_path / "state.pt", final)
    for back in (pickle.loads(pickle.dumps(final)), sim.load_state(tmp_path / "state.pt")):
        assert all(torch.equal(a, b) for a, b in zip(back.fields(), final.fields(), strict=True))


@pytest.mark.verification
@pytest.mark.parametrize("dim", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_gradients_are_those_of_differences(dim):
    """By all parameters and the state at the start, plastic strain among them; about half of the particles flow."""
    sim = Simulation(yielding(dim), MPM(DX), 4e-3, 2)
    inputs = stirred(sim, np.random.default_rng(1), 2)
    flowed = end_of(sim, inputs).plastic != inputs["plastic"]
    assert 0.2 < flowed.double().mean() < 0.98
    assert {"yield_stress", "hardening", "friction_angle"} <= set(inputs)
    assert_gradients(sim, np.random.default_rng(1))


@pytest.mark.verification
def test_gradients_where_the_clay_is_held(rng):
    """A constraint takes part of what a step did after it has flowed."""
    scene = yielding(2)
    scene = dataclasses.replace(scene, constraints=[wb.Constraint("root", "line", (1.0, 0.5))])
    assert_gradients(Simulation(scene, MPM(DX), 4e-3, 2), rng)


def test_every_schedule_of_checkpoints_gives_the_same_gradient():
    """To the last bit."""
    found = []
    for schedule in (wb.Checkpoints.all(), wb.Checkpoints.every(3), wb.Checkpoints.sqrt()):
        sim = Simulation(yielding(2), MPM(DX), 4e-3, 4, checkpoints=schedule)
        stress = sim.parameter("yield_stress").clone().requires_grad_()
        start = sim.state(velocity=torch.tensor([1.0, -1.5]).expand_as(sim.state().velocity))
        final = sim.rollout(None, 7, start, yield_stress=stress).final
        (gradient,) = torch.autograd.grad(final.position.square().sum() + final.plastic.sum(), stress)
        found.append(gradient)
    assert found[0].any()
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_a_design_is_kept_in_the_records_of_a_scene():
    """A yield stress for each region becomes that of its material, one for each particle a field."""
    sim = Simulation(yielding(2), MPM(DX), 4e-3, 4)
    root = sim.region("root")
    values = {"yield_stress": torch.where(root, 250.0, 350.0), "hardening": torch.ones(len(root))}
    clay = torch.as_tensor(sim.model.matter.body == 0)
    scene = sim.scene_with(**{n: torch.where(clay, v, sim.parameter(n)[0]) for n, v in values.items()})
    body, *others = scene.bodies
    assert scene.fields == ()
    assert body.material.plasticity == wb.materials.VonMises(350.0, 1.0)
    assert body.region_materials["root"].plasticity == wb.materials.VonMises(250.0, 1.0)
    assert tuple(others) == sim.scene.bodies[1:]
    graded = sim.scene_with(yield_stress=torch.linspace(200.0, 300.0, len(root)))
    assert [f.name for f in graded.fields] == ["yield_stress"]


@pytest.mark.parametrize("solver", [MassSpring(DX), ProjectiveDynamics(DX)], ids=lambda s: type(s).__name__)
def test_other_solvers_refuse_it(solver):
    dim = {MassSpring: least("springs"), ProjectiveDynamics: 3}[type(solver)]
    scene = block(dim)
    (body,) = scene.bodies
    clay = wb.Material(1e4, 0.25 if dim == 2 else 0.3, law="hencky", plasticity=wb.materials.VonMises(300.0))
    scene = dataclasses.replace(scene, bodies=[dataclasses.replace(body, material=clay)])
    words = f"'block': {type(solver).__name__} has no plasticity such as VonMises; leave it out .* or use MPM"
    with pytest.raises(wb.SceneError, match=words):
        Simulation(scene, solver, 1e-3)


def test_a_body_has_one_plasticity():
    shape, clay = (
        wb.shapes.Box((0.0, 0.0), (1.0, 1.0)),
        wb.Material(1e4, law="hencky", plasticity=wb.materials.VonMises(300.0)),
    )
    elastic = dataclasses.replace(clay, plasticity=None)
    with pytest.raises(wb.SceneError, match="region 'a' has plasticity None, the body VonMises; one body has one"):
        wb.SoftBody("b", shape, clay, {"a": shape}, {"a": elastic})
