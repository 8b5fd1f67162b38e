"""Scenes, simulations, trajectories, states, observers and controllers as pickles and deep copies."""

import copy
import multiprocessing
import pickle
import pydoc

import numpy as np
import pytest
import torch
from cases import SOLVERS, busy, least

import warpbots as wb
from warpbots.scene import Box, TetMesh, fingerprint

COPIES = {"pickle": lambda thing: pickle.loads(pickle.dumps(thing)), "deepcopy": copy.deepcopy}

tetrahedron = TetMesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 2, 3]])


@pytest.fixture(scope="module")
def arm() -> wb.Simulation:
    """A link on a hinge."""
    link = wb.RigidBody("link", Box((0, 0, 0), (0.1, 0.1, 0.3)))
    hinge = wb.Joint("hinge", "revolute", None, "link", axis=(0, 1, 0))
    scene = wb.Scene([link], [wb.actuators.Torque("motor", "hinge", 1.0)], joints=[hinge])
    return wb.Simulation(scene, wb.Articulated("sdirk2"), 2e-3, 2, worlds=2, device="cpu")


@pytest.mark.parametrize("made", COPIES)
def test_scenes_are_equal_and_as_read_only(made):
    scene = wb.Scene([wb.SoftBody("a", tetrahedron, wb.Material(1e4), regions={"low": Box((0, 0, 0), (1, 1, 0.5))})])
    other = COPIES[made](scene)
    assert other == scene and fingerprint(other) == fingerprint(scene)
    arrays = [getattr(other.soft[0].shape, name) for name in ("vertices", "tets", "volumes")]
    assert not any(a.flags.writeable for a in arrays)
    assert arrays[0] is not scene.soft[0].shape.vertices


def test_a_fingerprint_changes_with_every_number():
    scene = busy(2)
    body = scene.soft[0]
    prints = {fingerprint(scene)}
    for i, change in enumerate(
        (
            {"gravity": (0.0, -9.8100001)},
            {"name": "other"},
            {"actuators": scene.actuators[1:]},
            {"bodies": [wb.SoftBody("block", body.shape, wb.Material(1e4, 0.3, 1000.1), regions=body.regions)]},
            {"bodies": [wb.SoftBody("block", body.shape, body.material, regions={"root": body.shape})]},
        )
    ):
        prints.add(fingerprint(wb.scene.scene.dataclasses.replace(scene, **change)))
        assert len(prints) == i + 2, change
    moved = TetMesh(tetrahedron.vertices + np.array([0, 0, np.finfo(float).eps]), tetrahedron.tets)
    a, b = (fingerprint(wb.Scene([wb.SoftBody("a", shape, wb.Material(1e4))])) for shape in (tetrahedron, moved))
    assert a != b


@pytest.mark.parametrize("made", COPIES)
@pytest.mark.parametrize("name", [*SOLVERS, "arm"])
def test_simulations_are_built_anew_and_give_the_same_bits(made, name, arm):
    if name == "arm":
        sim = arm
    else:
        scene = busy(least(name), solver=name)
        sim = wb.Simulation(scene, SOLVERS[name](1 / 8), 2e-3, None, worlds=2, checkpoints=wb.Checkpoints.every(3))
    other = COPIES[made](sim)
    assert type(other) is type(sim) and other.model is not sim.model
    assert (other.solver, other.dt, other.substeps, other.worlds) == (sim.solver, sim.dt, sim.substeps, sim.worlds)
    assert other.checkpoints == sim.checkpoints and other.model.device == sim.model.device
    table = torch.full((2, sim.channels), 0.3)
    a, b = (s.rollout(table, 2).final for s in (sim, other))
    assert all(torch.equal(x, y) for x, y in zip(a.fields(), b.fields(), strict=True))


@pytest.mark.parametrize("made", COPIES)
def test_trajectories_states_and_controllers_go_with_their_simulation(made, arm):
    """The copy has the motion without its graph; a controller has its weights and observes as before."""
    policy = wb.controllers.MLP(arm, wb.observers.EndEffector("link"), hidden=(4,), clock=0.1)
    trajectory = arm.rollout(policy, 3, observe=lambda state: state.q)
    assert trajectory.final.q.requires_grad
    with torch.no_grad():
        motion, other = COPIES[made](trajectory), COPIES[made](policy)
    assert not motion.final.q.requires_grad and torch.equal(motion.observation, trajectory.observation)
    for (t, a), (s, b) in zip(motion.states(), trajectory.states(), strict=True):
        assert t == s and all(torch.equal(x, y) for x, y in zip(a.fields(), b.fields(), strict=True))
    again = COPIES[made](arm).rollout(other, 3).final
    assert torch.equal(again.q, trajectory.final.q)
    state = COPIES[made](trajectory.start)
    assert type(state) is type(trajectory.start) and torch.equal(state.q, trajectory.start.q)
    for observer in (wb.observers.Joints(), wb.observers.Poses(("link",)), wb.observers.Clusters(3, "low")):
        assert COPIES[made](observer) == observer
    table = wb.controllers.OpenLoop(arm, 3)
    assert torch.equal(COPIES[made](table)(trajectory.start, 0.0), table(trajectory.start, 0.0))


def test_copies_of_controllers_share_what_they_observe_and_not_their_weights(arm):
    policy = wb.controllers.MLP(arm, hidden=(4,))
    other = copy.deepcopy(policy)
    assert other._observe is policy._observe
    with torch.no_grad():
        next(other.parameters()).add_(1.0)
    assert not torch.equal(next(other.parameters()), next(policy.parameters()))


def test_arrays_on_a_device_are_refused(arm):
    state = arm.solver.state(arm.model)
    for made in COPIES.values():
        with pytest.raises(TypeError, match="ArticulatedState of Warp arrays belongs to its device and is neither"):
            made(state)


def final_positions(sim: wb.Simulation, control: torch.Tensor) -> np.ndarray:
    """In another process: where a rollout ends."""
    torch.set_num_threads(1)
    return sim.rollout(control, 2).final.position.numpy()


@pytest.mark.slow
def test_a_spawned_process_gives_the_same_bits():
    sim = wb.Simulation(busy(2, solver="springs"), SOLVERS["springs"](1 / 8), 2e-3, None, device="cpu")
    control = torch.full((2, sim.channels), 0.3)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(final_positions, (sim, control))
    assert np.array_equal(found, sim.rollout(control, 2).final.position.numpy())


def test_records_print_long_arrays_by_shape_and_range():
    mesh = wb.meshing.tetrahedra(Box((0, 0, 0), (0.1, 0.1, 0.1)), 0.05)
    text = repr(wb.SoftBody("a", mesh, wb.Material(1e4)))
    assert "vertices=<float64 array of shape (27, 3), from 0 to 0.1>" in text
    assert "[0.,  0.,  0.]" not in text and len(text) < 700
    assert "vertices=array([[0., 0., 0.]" in repr(tetrahedron)


def test_help_of_a_record_begins_with_names_and_defaults():
    text = pydoc.plain(pydoc.render_doc(wb.SoftBody))
    assert "SoftBody(name, shape, material, regions=None, region_materials=None, velocity=None, color=" in text
    assert "Heightfield" not in text.split("Attributes:")[0]
