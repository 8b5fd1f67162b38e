"""States of single worlds at a new start, and states in files."""

import dataclasses

import numpy as np
import pytest
import torch
from cases import LATTICES, SOLVERS, block, busy, fields_of, least, worn, yielding

import warpbots as wb
from warpbots.scene import Box

ALL = (*SOLVERS, "articulated", "bones", "worn", "yielding")
"""Names of simulations: that of each solver, rigid bodies, bones in a soft body, and springs that yield and break."""


def simulation(name: str, worlds: int = 3) -> wb.Simulation:
    """A small scene in motion: `busy`, or a hinged link that falls onto a floor, alone or in a soft body."""
    if name == "articulated":
        link = wb.RigidBody("link", Box((0, 0, 0), (0.1, 0.1, 0.3)), position=(0, 0, 0.05), points=4)
        hinge = wb.Joint("hinge", "revolute", None, "link", position=(0, 0, 0.3), axis=(0, 1, 0), start=(0.3,))
        scene = wb.Scene([link], [wb.actuators.Torque("motor", "hinge", 1.0)], [wb.floor()], joints=[hinge],
                         contacts=[wb.Contact("link", "floor", 1e6, friction=0.5, viscosity=1e3)])  # fmt: skip
        return wb.Simulation(scene, wb.Articulated(), 2e-3, 2, worlds=worlds, device="cpu")
    if name == "bones":
        soft = wb.SoftBody("flesh", Box((0, 0, 0), (0.25, 0.25, 0.5)), wb.Material(1e4, 0.3))
        bone = wb.RigidBody("bone", Box((0, 0, 0), (0.25, 0.25, 0.25)), density=2e3)
        solver = wb.ProjectiveDynamics(1 / 8)
        return wb.Simulation(
            wb.Scene([soft, bone], obstacles=[wb.floor()]), solver, 5e-3, 1, worlds=worlds, device="cpu"
        )
    if name == "yielding":
        return wb.Simulation(yielding(2), SOLVERS["mpm"](1 / 8), 2e-3, None, worlds=worlds)
    if name == "worn":
        return wb.Simulation(worn(busy(2, solver="springs")), LATTICES["springs"](1 / 8), 2e-3, None, worlds=worlds)
    return wb.Simulation(busy(least(name), solver=name), SOLVERS[name](1 / 8), 2e-3, None, worlds=worlds, device="cpu")


def moved(sim: wb.Simulation, steps: int = 2):
    """A state after some intervals, whose worlds differ, and the control."""
    state = sim.state()
    field = "qd" if sim.model.matter is None else "velocity"
    value = getattr(state, field)
    different = 0.1 * torch.arange(1.0, sim.worlds + 1, dtype=value.dtype).view(-1, *(1,) * (value.dim() - 1))
    control = torch.full((sim.channels,), 0.2)
    state = dataclasses.replace(state, **{field: value + different})
    for _ in range(steps):
        state = sim.step(state, control)
    return state, control


def same(a, b, worlds=slice(None)) -> bool:
    return all(torch.equal(x[worlds], y[worlds]) for x, y in zip(a.fields(), b.fields(), strict=True))


@pytest.mark.parametrize("name", ALL)
def test_worlds_that_are_reset_start_again_and_the_others_go_on(name):
    """After a reset of world 1 it repeats its first steps bit for bit, history included; worlds 0 and 2 never notice."""
    sim = simulation(name)
    state, control = moved(sim)
    mixed = sim.reset(state, [1])
    assert not same(state, sim.state(), 1)
    assert same(mixed, sim.state(), 1) and same(mixed, state, [0, 2])
    after, undisturbed, fresh = (sim.step(s, control) for s in (mixed, state, sim.state()))
    assert same(after, undisturbed, [0, 2]) and same(after, fresh, 1)


def test_worlds_are_chosen_by_mask_index_or_slice_of_either():
    sim = simulation("springs")
    state, _ = moved(sim)
    for worlds in (
        [False, True, False],
        torch.tensor([False, True, False]),
        1,
        -2,
        np.int64(1),
        (1, 1),
    ):
        assert same(sim.reset(state, worlds), sim.reset(state, [1])), worlds
    assert same(sim.reset(state, []), state) and same(sim.reset(state, [True] * 3), sim.state())


def test_a_given_start_is_taken_world_by_world_and_is_differentiable():
    """The gradient of what follows reaches `state` in worlds that go on and `start` in those that were reset."""
    sim = simulation("mpm")
    state, control = moved(sim)
    leaves = [s.mapped(lambda f: f.detach().clone().requires_grad_()) for s in (state, moved(sim, 1)[0])]
    mixed = sim.reset(leaves[0], [False, True, False], leaves[1])
    assert same(mixed, leaves[1], 1) and same(mixed, state, [0, 2])
    after = sim.step(mixed, control)
    after.position.square().sum().backward()
    gone_on, started = (s.position.grad for s in leaves)
    assert (gone_on[[0, 2]] != 0).any(dim=-1).all() and (gone_on[1] == 0).all()
    assert (started[1] != 0).any(dim=-1).all() and (started[[0, 2]] == 0).all()
    alone = state.mapped(lambda f: f.detach().clone().requires_grad_())
    sim.step(alone, control).position.square().sum().backward()
    assert torch.equal(alone.position.grad[[0, 2]], gone_on[[0, 2]])


def test_faults_of_resets_are_one_sentence():
    sim = simulation("springs")
    state = sim.state()
    for worlds, message in (
        ([True, False], r"a mask of worlds must have shape \(3,\), one entry for each, got \(2,\)"),
        ([3], r"there is no world 3; the simulation has worlds 0 to 2"),
        ([0.5], r"worlds must be a mask of booleans or a list of indices, got numbers of type torch.float32"),
    ):
        with pytest.raises(ValueError, match=message):
            sim.reset(state, worlds)
    with pytest.raises(ValueError, match="start must be a state of the same solver as state, MassSpringState, got MPM"):
        sim.reset(state, [0], simulation("mpm").state())
    with pytest.raises(ValueError, match=r"reset: state is .*'position' has shape \(2, "):
        sim.reset(simulation("springs", worlds=2).state(), [0])


@pytest.mark.parametrize("name", ALL)
def test_a_motion_goes_on_from_a_file_bit_for_bit(name, tmp_path):
    """What is read has all fields, so that the next step, in a simulation made anew, is the one it would have been."""
    sim = simulation(name)
    state, control = moved(sim)
    sim.save_state(tmp_path / "state.pt", state)
    again = simulation(name)
    read = again.load_state(tmp_path / "state.pt")
    assert same(read, state) and fields_of(read).keys() == fields_of(state).keys()
    assert same(again.step(read, control), sim.step(state, control))


def test_files_of_other_simulations_are_refused(tmp_path):
    scene, path = block(2), tmp_path / "state.pt"

    def made(solver=None, scene=scene, worlds=2):
        return wb.Simulation(scene, solver or wb.MassSpring(1 / 8), 1e-3, 1, worlds=worlds, device="cpu")

    sim = made()
    sim.save_state(path, sim.state())
    for other, message in (
        (made(wb.MPM(1 / 8)), "is a state of MassSpring, and this is MPM"),
        (made(worlds=3), r"position has shape \(2, 9, 2\) instead of \(3, 9, 2\)"),
        (made(scene=block(2, youngs_modulus=2e4)), "is a state of another scene than 'robot'"),
    ):
        with pytest.raises(ValueError, match=message):
            other.load_state(path)
    with pytest.raises(ValueError, match=r"save_state: state is .*'position' has shape \(3, 9, 2\)"):
        sim.save_state(path, made(worlds=3).state())
    with pytest.raises(FileNotFoundError, match="there is no file"):
        sim.load_state(tmp_path / "nothing.pt")


def test_other_places_at_rest_and_other_starts_are_refused(tmp_path):
    """Shapes of the fields are the same, but not what they are the state of."""
    scene, path = block(2), tmp_path / "state.pt"
    sim = wb.Simulation(scene, wb.MPM(1 / 8), 1e-3, 1, device="cpu")
    sim.save_state(path, sim.state())
    bodies = [dataclasses.replace(scene.soft[0], velocity=(0.1, 0.0))]
    thrown = wb.Simulation(dataclasses.replace(scene, bodies=bodies), wb.MPM(1 / 8), 1e-3, 1, device="cpu")
    with pytest.raises(ValueError, match="another scene than"):
        thrown.load_state(path)
    lattices = [wb.Simulation(scene, wb.MassSpring(1 / 20, "random", seed=s), 1e-3, 1, device="cpu") for s in range(8)]
    places = [s.state().position for s in lattices]
    one, two = next((a, b) for a in range(8) for b in range(a) if places[a].shape == places[b].shape)
    lattices[one].save_state(path, lattices[one].state())
    with pytest.raises(ValueError, match="another mesh, lattice or set of particles than"):
        lattices[two].load_state(path)


class Evil:
    """Unpickled, it would call a function."""

    called = False

    @staticmethod
    def call():
        Evil.called = True

    def __reduce__(self):
        return Evil.call, ()


def test_files_are_data_only(tmp_path):
    sim = simulation("springs")
    sim.save_state(tmp_path / "good.pt", sim.state())
    data = torch.load(tmp_path / "good.pt", weights_only=True)
    (tmp_path / "text.pt").write_text("not a state")
    torch.save({"format": "another"}, tmp_path / "other.pt")
    torch.save(data | {"fields": {"position": "x"}}, tmp_path / "texts.pt")
    torch.save(data | {"more": Evil()}, tmp_path / "evil.pt")
    for name in ("text", "other", "texts", "evil"):
        with pytest.raises(ValueError, match="is no file of Simulation.save_state"):
            sim.load_state(tmp_path / f"{name}.pt")
    assert not Evil.called
