"""A policy is called once: with noise, with memory or with both it has the same gradient under every schedule."""

import pytest
import torch
from cases import SOLVERS, busy, least
from test_checkpoints import INTERVALS, SCHEDULES, SUBSTEPS

from warpbots.gradients import Checkpoints
from warpbots.simulation import Simulation


class Noisy(torch.nn.Module):
    """A perceptron from the mean velocity to a control, with noise that nobody seeds."""

    def __init__(self, sim: Simulation):
        super().__init__()
        self.layer = torch.nn.Linear(sim.scene.dim, sim.channels).to(sim.state().position)

    def forward(self, state, time):
        mean = self.layer(state.velocity.mean(1))
        return torch.tanh(mean + 0.3 * torch.randn_like(mean))


class Recurrent(torch.nn.Module):
    """A GRU that keeps its hidden state to itself, and the last mean position to take differences of."""

    def __init__(self, sim: Simulation):
        super().__init__()
        self.cell = torch.nn.GRUCell(sim.scene.dim, 6).to(sim.state().position)
        self.out = torch.nn.Linear(6, sim.channels).to(sim.state().position)
        self.hidden = self.last = None

    def forward(self, state, time):
        now = (state.position.square() + state.velocity).mean(1)  # whose gradient needs the whole state
        if time == 0.0:
            self.hidden = self.last = None
        self.hidden = self.cell(now if self.last is None else now - self.last, self.hidden)
        self.last = now
        return torch.tanh(self.out(self.hidden))


class Remembering(torch.nn.Module):
    """A control from this state and the one five intervals ago, which is longer than a segment of three."""

    def __init__(self, sim: Simulation):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(sim.channels).to(sim.state().position))
        self.seen = []

    def forward(self, state, time):
        self.seen = [*(self.seen if time else []), state]
        before = self.seen[max(0, len(self.seen) - 6)]
        return torch.tanh(self.weight * (state.velocity * before.velocity).mean((1, 2)).unsqueeze(-1))


def simulation(schedule: Checkpoints, solver: str = "mpm") -> Simulation:
    scene = busy(least(solver), solver=solver)
    return Simulation(scene, SOLVERS[solver](1 / 8), 6e-3, SUBSTEPS, worlds=2, checkpoints=schedule)


def loss_of(sim: Simulation, policy: torch.nn.Module, **parameters: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(5)
    start = sim.state(velocity=torch.tensor([1.0, 0.0, -0.5][:: 4 - sim.scene.dim]))
    t = sim.rollout(policy, INTERVALS, start, observe=lambda s: s.velocity.square().mean((1, 2)), **parameters)
    return t.final.position.square().sum() + t.observation.sum() + t.control.square().sum()


@pytest.mark.parametrize(
    ("kind", "solver"),
    [(kind, solver) for kind in (Noisy, Recurrent, Remembering) for solver in ("mpm", "springs")]
    + [(Recurrent, "projective")]
    + [pytest.param(kind, "projective", marks=pytest.mark.slow) for kind in (Noisy, Remembering)],
)
def test_every_schedule_gives_the_gradient_of_all(kind, solver):
    """Bitwise, to the weights and to a parameter."""
    found = {}
    for name, schedule in SCHEDULES.items():
        sim = simulation(schedule, solver)
        torch.manual_seed(1)
        policy, parameter = kind(sim), next(iter(sim.parameters()))
        value = sim.parameter(parameter).requires_grad_()
        wanted = [*policy.parameters(), value]
        found[name] = torch.autograd.grad(loss_of(sim, policy, **{parameter: value}), wanted)
        for gradient, expected in zip(found[name], found["all"], strict=True):
            assert (expected != 0).any()
            assert torch.equal(gradient, expected), name


@pytest.mark.verification
@pytest.mark.parametrize("kind", [Noisy, Recurrent])
def test_the_gradient_is_that_of_differences(kind):
    """Under the default schedule, along a random direction of all weights: 1e-6, in float64."""
    sim = simulation(Checkpoints.sqrt())
    policy = kind(sim)
    gradient = torch.autograd.grad(loss_of(sim, policy), list(policy.parameters()))
    torch.manual_seed(2)
    direction = [torch.randn_like(w) for w in policy.parameters()]

    def moved(h: float) -> float:
        with torch.no_grad():
            for w, d in zip(policy.parameters(), direction, strict=True):
                w += h * d
            value = loss_of(sim, policy).item()
            for w, d in zip(policy.parameters(), direction, strict=True):
                w -= h * d
        return value

    slope = sum((g * d).sum().item() for g, d in zip(gradient, direction, strict=True))
    assert slope == pytest.approx((moved(1e-5) - moved(-1e-5)) / 2e-5, rel=1e-6)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_controller_is_called_once(schedule):
    """For each interval, the gradient included."""
    sim = simulation(SCHEDULES[schedule])
    policy, times = Noisy(sim), []
    loss_of(sim, lambda state, time: times.append(time) or policy(state, time)).backward()
    assert times == pytest.approx([i * sim.dt for i in range(INTERVALS)])


def test_a_state_that_a_controller_changes_in_place_is_the_one_that_moves_on():
    """As without a schedule: the next interval starts from what the controller left, and the gradient knows."""

    def push(state, time):
        state.velocity.mul_(0.9)
        return state.velocity.mean((1, 2)).tanh().unsqueeze(-1).expand(-1, 3)

    found = []
    for schedule in (Checkpoints.all(), Checkpoints.every(3)):
        sim = simulation(schedule)
        E = sim.parameter("youngs_modulus").requires_grad_()
        final = sim.rollout(push, INTERVALS, sim.state(velocity=torch.tensor([1.0, -0.5])), youngs_modulus=E).final
        found += torch.autograd.grad(final.position.square().sum(), E)
    assert (found[0] != 0).any()
    assert torch.equal(*found)


def test_a_controller_may_fill_the_same_tensor_again():
    """The trajectory has the controls that were given, not the last one of them ten times."""
    sim = simulation(Checkpoints.sqrt())
    hand = torch.zeros(2, sim.channels)

    def controller(state, time):
        return hand.fill_(time / (INTERVALS * sim.dt))

    control = sim.rollout(controller, INTERVALS).control
    assert control[0, :, 0].tolist() == pytest.approx([i / INTERVALS for i in range(INTERVALS)])
