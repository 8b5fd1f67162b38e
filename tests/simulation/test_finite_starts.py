"""Motions begin from finite numbers: others are refused before a step runs, with the field, the world and the entry."""

import dataclasses

import pytest
import torch

import warpbots as wb
from warpbots.gradients import captured

SPRING = wb.Scene([wb.SoftBody("cube", wb.shapes.Box((0.0, 0.0, 0.1), (0.1, 0.1, 0.2)), wb.Material(1e4))])


def simulation(worlds: int = 2) -> wb.Simulation:
    return wb.Simulation(SPRING, wb.MassSpring(0.1), 1e-3, 1, worlds=worlds)


def broken(sim: wb.Simulation, world: int = 1) -> object:
    """A state with one velocity that is not a number."""
    velocity = sim.state().velocity.clone()
    velocity[world, 3, 2] = torch.nan
    return dataclasses.replace(sim.state(), velocity=velocity)


@pytest.mark.parametrize("use", ["rollout", "step", "equilibrium", "reset", "save_state"])
def test_a_start_that_is_not_finite_is_refused(use, tmp_path):
    """The advice was to use more substeps or weaker actuators, after a step had run."""
    sim = simulation()
    if use == "equilibrium":
        sim = wb.Simulation(SPRING, wb.ProjectiveDynamics(0.1), 1e-3, 1, worlds=2)
    calls = {
        "rollout": lambda: sim.rollout(None, 2, broken(sim)),
        "step": lambda: sim.step(broken(sim), torch.zeros(0)),
        "equilibrium": lambda: sim.equilibrium(None, broken(sim)),
        "save_state": lambda: sim.save_state(tmp_path / "state.pt", broken(sim)),
        "reset": lambda: sim.reset(sim.state(), [1], broken(sim)),
    }
    what = "reset: start" if use == "reset" else f"{use}: state"
    said = rf"^{what}: field 'velocity' must be finite, got nan in world 1 at index \[3, 2\]; check where it comes from"
    with pytest.raises(ValueError, match=said):
        calls[use]()


def test_a_reset_looks_only_at_the_worlds_that_it_takes():
    """The state may hold a world that diverged: that is why it is reset. The same for worlds of the start."""
    sim = simulation()
    healed = sim.reset(broken(sim), [1])
    assert torch.equal(healed.velocity, sim.state().velocity)
    assert torch.equal(sim.reset(sim.state(), [0], broken(sim)).velocity, healed.velocity)


def test_a_lost_world_may_hold_anything_but_its_mark():
    """Nothing is computed from it; a mark that is not a number says nothing."""
    bob = wb.RigidBody("bob", wb.shapes.Sphere((0.0, 0.0, 0.0), 0.1))
    sim = wb.Simulation(wb.Scene([bob]), wb.Articulated(), 1e-3, 1, worlds=2)
    lost = dataclasses.replace(sim.state(lost=torch.tensor([0.0, 1.0])), qd=sim.state().qd.clone())
    lost.qd[1] = torch.nan
    assert sim.step(lost, torch.zeros(0)).q[0].isfinite().all()
    with pytest.raises(ValueError, match=r"^state field 'lost' must be finite, got nan in world 1;"):
        sim.state(lost=torch.tensor([0.0, torch.nan]))


def test_a_first_run_is_announced_once(monkeypatch):
    """With all substeps kept, each interval has kernels on arrays of its own, which were announced again."""
    said = []
    announce = captured.said_when_slow
    monkeypatch.setattr(captured, "said_when_slow", lambda text: (said.append(text), announce(text))[1])
    sim = wb.Simulation(SPRING, wb.MassSpring(0.1), 1e-3, 1, checkpoints=wb.Checkpoints.all())
    velocity = sim.state().velocity.clone().requires_grad_()
    for _ in range(2):
        sim.rollout(None, 4, sim.state(velocity=velocity)).final.position.sum().backward()
    assert sorted(said) == sorted(f"first run of {what} (compiled once, then cached)" for what in KERNELS * 2)


KERNELS = ["kernels", "kernels of the gradient"]


@pytest.mark.parametrize("value", [7.0, 0.5])
def test_a_mark_that_is_neither_0_nor_1_is_refused(value):
    """With 0.5, a world was lost in the first step, with the advice to take shorter steps."""
    sim = simulation()
    said = rf"field 'lost' must be 1 for worlds that cannot go on and 0 for others, got {value:g} in world 1; sim.state"
    marks = torch.tensor([0.0, value])
    for what, call in (
        ("state", lambda: sim.state(lost=marks)),
        ("rollout: state:", lambda: sim.rollout(None, 1, dataclasses.replace(sim.state(), lost=marks))),
        ("reset: start:", lambda: sim.reset(sim.state(), [1], dataclasses.replace(sim.state(), lost=marks))),
    ):
        with pytest.raises(ValueError, match=rf"^{what} {said}"):
            call()
    with pytest.raises(ValueError, match=r"^step: state: field 'lost' must be"):
        sim.step(dataclasses.replace(sim.state(), lost=marks), torch.zeros(0))
    sim.reset(sim.state(), [0], dataclasses.replace(sim.state(), lost=marks))


def test_wrong_names_are_followed_by_what_they_probably_mean():
    sim = simulation()
    for call, said in (
        (lambda: sim.rollout(None, 2, start=sim.state()), "no parameter 'start'; .*; did you mean the argument state="),
        (lambda: sim.rollout(None, 2, E=1e4), r"no parameter 'E'; .*; did you mean 'youngs_modulus'\?"),
        (lambda: sim.rollout(None, 2, youngs_module=1e4), r"did you mean 'youngs_modulus'\?"),
        (lambda: sim.sense(sim.state(), step=False), "did you mean the argument steps="),
        (lambda: sim.state(postion=0.0), r"state: there is no field 'postion'; .*; did you mean 'position'\?"),
        (lambda: sim.state(vel=0.0), r"did you mean 'velocity'\?"),
        (lambda: sim.parameter("drags"), r"did you mean 'drag'\?"),
        (lambda: sim.rollout(None, 2, nu=0.3), "there is no parameter 'nu'; the model has [^;?]*$"),
    ):
        with pytest.raises((ValueError, KeyError), match=said):
            call()
