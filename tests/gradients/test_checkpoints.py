"""Every checkpoint schedule gives the same gradient to the last bit, with what its documentation says of memory."""

import dataclasses
import functools

import pytest
import torch
from cases import SOLVERS, STEPPING, busy, least

from warpbots.gradients import Checkpoints, Replay
from warpbots.simulation import Simulation
from warpbots.solvers.mpm.workspace import MPMWorkspace

INTERVALS, SUBSTEPS = 10, 3
SCHEDULES = {
    "all": Checkpoints.all(),
    "every 1": Checkpoints.every(1),
    "every 3": Checkpoints.every(3),  # 10 intervals begin with a segment of one
    "every 100": Checkpoints.every(100),
    "sqrt": Checkpoints.sqrt(),
}


LONG = {("projective", "every 1"), ("projective", "every 100")}
"""Implicit steps under schedules in which the other solvers run."""


def simulation(solver, schedule: Checkpoints, worlds: int = 2, name: str = "mpm") -> Simulation:
    return Simulation(
        busy(least(name), solver=name), solver, dt=6e-3, substeps=SUBSTEPS, worlds=worlds, checkpoints=schedule
    )


def policy_of(sim: Simulation) -> torch.nn.Module:
    """A perceptron from the mean position and velocity to controls."""
    torch.manual_seed(1)
    net = torch.nn.Sequential(
        torch.nn.Linear(2 * sim.scene.dim, 8), torch.nn.Tanh(), torch.nn.Linear(8, sim.channels), torch.nn.Tanh()
    )
    return net.to(sim.state().position)


def drive(net: torch.nn.Module):
    """A controller that looks through `net`."""
    return lambda state, time: net(torch.cat([state.position.mean(1), state.velocity.mean(1)], dim=-1))


def gradient(sim: Simulation, closed_loop: bool) -> dict[str, torch.Tensor]:
    """Gradient of a loss on the final state, the controls and observations, to everything that was asked for."""
    net = policy_of(sim)
    start = sim.state(velocity=torch.tensor([1.0, 0.0, -0.5][:: 4 - sim.scene.dim])).velocity.requires_grad_()
    stiff = next(iter(sim.parameters()))  # Young's modulus of matter, the stiffness of springs
    E = sim.parameter(stiff).requires_grad_()
    wanted = {"velocity": start, stiff: E}
    if closed_loop:
        controller = drive(net)
        wanted |= dict(net.named_parameters())
    else:
        torch.manual_seed(2)
        table = (0.5 * torch.randn(2, INTERVALS, sim.channels).tanh()).to(start)
        controller = wanted["control"] = table.requires_grad_()

    def middle(state):
        return state.position.mean(1)

    t = sim.rollout(controller, INTERVALS, sim.state(velocity=start), observe=middle, **{stiff: E})
    loss = sum(f.square().sum() for f in vars(t.final).values()) + t.control.square().mean()
    loss = loss + t.observation[..., 0].square().sum()
    return dict(zip(wanted, torch.autograd.grad(loss, list(wanted.values())), strict=True))


@functools.cache
def plain(solver: str, closed_loop: bool) -> dict[str, torch.Tensor]:
    """The gradient where every interval is kept."""
    return gradient(simulation(SOLVERS[solver](1 / 8), Checkpoints.all(), name=solver), closed_loop)


@pytest.mark.parametrize("closed_loop", [False, True], ids=["table", "policy in the loop"])
@pytest.mark.parametrize(
    ("solver", "schedule"),
    [
        pytest.param(solver, name, marks=pytest.mark.slow if (solver, name) in LONG else ())
        for solver in SOLVERS
        for name in SCHEDULES
        if solver in STEPPING or name == "sqrt"  # steps are replayed alike for all elements
    ],
)
def test_every_schedule_gives_the_same_gradient(solver, schedule, closed_loop):
    """Bitwise, for open loops and for a perceptron in the loop, in two worlds."""
    checkpointed = gradient(simulation(SOLVERS[solver](1 / 8), SCHEDULES[schedule], name=solver), closed_loop)
    for name, expected in plain(solver, closed_loop).items():
        assert (expected != 0).any(), name
        assert torch.equal(checkpointed[name], expected), name


@dataclasses.dataclass
class Counting:
    """A solver that counts the states that are made: the memory of a run."""

    solver: object
    states: int = 0

    def __getattr__(self, name):
        return getattr(self.solver, name)

    def sized(self, scene):
        return self

    def state(self, model, requires_grad=False):
        self.states += 1
        return self.solver.state(model, requires_grad)


def states_held(schedule: Checkpoints, intervals: int) -> int:
    """States made by the solver for one rollout and its gradient."""
    solver = Counting(next(iter(SOLVERS.values()))(1 / 8))
    sim = simulation(solver, schedule, worlds=1)
    control = torch.zeros(intervals, sim.channels, requires_grad=True)
    sim.rollout(control, intervals).final.position.sum().backward()
    return solver.states


@pytest.mark.parametrize(("schedule", "expected"), [("all", 100), ("every 1", 199), ("every 10", 190), ("sqrt", 195)])
def test_nothing_is_computed_more_often_than_documented(schedule, expected, monkeypatch):
    """Intervals run for a gradient: n with all of them kept, 2 n - k in segments of k, the last of which is kept;
    sqrt() takes k = sqrt(n / (b + 1)) = 5.
    """
    run, ran = Replay.run, []
    monkeypatch.setattr(Replay, "run", lambda self, inputs: ran.append(1) or run(self, inputs))
    sim = simulation(SOLVERS["mpm"](1 / 8), SCHEDULES.get(schedule, Checkpoints.every(10)), worlds=1)
    control = torch.zeros(100, sim.channels, requires_grad=True)
    sim.rollout(control, 100).final.position.sum().backward()
    assert len(ran) == expected


def test_memory_grows_as_documented():
    """all(): every substep of n b; every(k): those of one segment, k b; sqrt(): O(sqrt(n b)), so 16 times the steps
    need 4 times the states. Each with a rest: for what runs without gradients, with the start to which lost worlds
    return, and for the first interval, whose state wants none.
    """
    n, b, rest = 32, SUBSTEPS, 2 * (SUBSTEPS + 1) + 1
    assert n * b <= states_held(Checkpoints.all(), n) <= n * (b + 1) + rest
    assert 4 * b <= states_held(Checkpoints.every(4), n) <= 4 * (b + 1) + rest
    few, many = states_held(Checkpoints.sqrt(), 10), states_held(Checkpoints.sqrt(), 160)
    assert many <= 4 * few + rest
    assert many < 160 * b / 8


@pytest.mark.parametrize("schedule", ["all", "every 3", "sqrt"])
def test_a_second_backward_through_a_retained_graph_gives_the_same(schedule):
    """It does not add to the first one."""
    sim = simulation(next(iter(SOLVERS.values()))(1 / 8), SCHEDULES[schedule])
    control = torch.full((2, INTERVALS, sim.channels), 0.3, requires_grad=True)
    E = sim.parameter("youngs_modulus").requires_grad_()
    loss = sim.rollout(control, INTERVALS, youngs_modulus=E).final.position.square().sum()
    first = torch.autograd.grad(loss, [control, E], retain_graph=True)
    second = torch.autograd.grad(loss, [control, E], retain_graph=True)
    other = torch.autograd.grad(2.0 * loss, [control, E])
    for a, b, c in zip(first, second, other, strict=True):
        assert (a != 0).any()
        assert torch.equal(a, b)
        assert torch.equal(2.0 * a, c)


@pytest.mark.parametrize("schedule", ["all", "every 3"])
def test_rollouts_of_one_simulation_do_not_disturb_each_other(schedule):
    """Two graphs alive at once, with a run without gradients in between, give what each gives alone."""
    sim = simulation(next(iter(SOLVERS.values()))(1 / 8), SCHEDULES[schedule])

    def loss(value: float):
        control = torch.full((2, INTERVALS, sim.channels), value, requires_grad=True)
        return control, sim.rollout(control, INTERVALS).final.position.square().sum()

    alone = []
    for value in (0.1, 0.6):
        control, L = loss(value)
        alone.append(torch.autograd.grad(L, control)[0])
    (control_1, L_1), (control_2, L_2) = loss(0.1), loss(0.6)
    sim.rollout(torch.full((2, 3, sim.channels), -0.5), 3)
    assert torch.equal(torch.autograd.grad(L_1, control_1)[0], alone[0])
    assert torch.equal(torch.autograd.grad(L_2, control_2)[0], alone[1])


@pytest.mark.parametrize("k", [0, -1])
def test_a_schedule_without_intervals_is_refused(k):
    with pytest.raises(ValueError, match="k must be at least 1"):
        Checkpoints.every(k)


@pytest.mark.parametrize("kept", [False, True])
def test_a_grid_that_is_kept_gives_the_gradient_of_one_that_is_filled_again(kept, monkeypatch):
    expected = gradient(simulation(SOLVERS["mpm"](1 / 16), Checkpoints.sqrt()), closed_loop=True)
    asked = []
    monkeypatch.setattr(
        MPMWorkspace, "keeps", lambda self, state: asked.append(1) or kept and state.position.requires_grad
    )
    found = gradient(simulation(SOLVERS["mpm"](1 / 16), Checkpoints.sqrt()), closed_loop=True)
    assert asked
    for name, value in expected.items():
        assert torch.equal(found[name], value), name
