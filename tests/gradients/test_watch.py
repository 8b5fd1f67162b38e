"""What went wrong is read together, once in a while: the same is said as if it were read at once, and nothing is lost."""

import collections
import math
import weakref

import numpy as np
import pytest
import torch
import warp as wp
from cases import CONTINUA, SOLVERS, block, busy, least

import warpbots.gradients.captured
import warpbots.numerics.threads
import warpbots.simulation.rollouts
import warpbots.simulation.solver_operations
from warpbots.gradients import Checkpoints, finite_checks
from warpbots.scene import Muscle
from warpbots.simulation import Simulation, SimulationError
from warpbots.solvers import Grows

DX, DT, SUBSTEPS, STEPS = 1 / 16, 5e-3, 4, 12
MUSCLE = (Muscle("biceps", "root", (1.0, 0.0), 100.0),)
FAST = (20.0, 0.0)
"""A velocity [m/s] at which matter leaves the grid within a few intervals."""


def simulation(monkeypatch, unread: int | None, checkpoints: Checkpoints | None = None, worlds: int = 1) -> Simulation:
    """A block with a muscle whose faults are read every `unread` intervals, or as a CPU reads them."""
    if unread is not None:
        for module in (warpbots.simulation.rollouts, warpbots.simulation.solver_operations):
            monkeypatch.setattr(module, "parallel", lambda device: True)
        monkeypatch.setattr(warpbots.simulation.rollouts, "_UNREAD", unread)
    scene = block(2, gravity=(0.0, 0.0), actuators=MUSCLE)
    solver = CONTINUA["mpm"](DX)
    return Simulation(scene, solver, DT, SUBSTEPS, worlds=worlds, checkpoints=checkpoints or Checkpoints.all())


def like(sim: Simulation, u: float) -> torch.Tensor:
    return torch.full((sim.worlds, 1), u)


def escapes(sim: Simulation, controller) -> None:
    sim.rollout(controller, STEPS, sim.state(velocity=torch.tensor(FAST)))


def blind(sim: Simulation) -> None:
    """Matter leaves the grid under a controller that does not look."""
    escapes(sim, torch.zeros(STEPS, 1))


def follows(sim: Simulation) -> None:
    """The same, and the controller hands a nan on."""
    escapes(sim, lambda state, time: state.velocity[:, :, 0].mean(1, keepdim=True).tanh())


def refuses(sim: Simulation) -> None:
    """The same, and the controller does not take a nan."""

    def controller(state, time):
        if torch.isnan(state.velocity).any():
            raise ZeroDivisionError("no control for a nan")
        return like(sim, 0.1)

    escapes(sim, controller)


def shapeless(sim: Simulation) -> None:
    """The same, and what the controller makes of a nan has no shape of a control."""
    escapes(sim, lambda state, time: torch.zeros(3) if torch.isnan(state.velocity).any() else like(sim, 0.1))


def observed(sim: Simulation) -> None:
    """The same, and an observer fails on a nan."""

    def observe(state):
        if torch.isnan(state.velocity).any():
            raise ZeroDivisionError("nothing to see")
        return state.position

    sim.rollout(None, STEPS, sim.state(velocity=torch.tensor(FAST)), observe=observe)


def reused(sim: Simulation) -> None:
    """A control out of its range in a tensor that the controller fills again."""
    u = like(sim, 0.0)
    sim.rollout(lambda state, time: u.fill_(0.3 * round(time / DT)), STEPS)


def table(sim: Simulation) -> None:
    """A nan in a table, after a control that is too large, in the second of two channels' worlds."""
    controls = torch.zeros(sim.worlds, STEPS, 1)
    controls[-1, 7] = torch.nan
    controls[-1, 5] = -1.5
    sim.rollout(controls, STEPS)


def backwards(sim: Simulation) -> None:
    """A loss without a finite gradient, through all intervals."""
    control = torch.zeros(STEPS, 1, requires_grad=True)
    (sim.rollout(control, STEPS).final.position * torch.inf).sum().backward()


def partly(sim: Simulation) -> None:
    """The same for a part of the graph: neither the first interval nor the last one is in it."""
    control = torch.zeros(1, requires_grad=True)
    state = sim.state()
    for _ in range(3):
        state = sim.step(state, control)
    middle = state.velocity
    for _ in range(3):
        state = sim.step(state, control)
    torch.autograd.grad((state.position * torch.nan).sum(), middle)


SAYS = {
    blind: (SimulationError, r"control step \d+, substep \d .* left the grid"),
    follows: (SimulationError, r"control step \d+, substep \d .* left the grid"),
    refuses: (SimulationError, r"control step \d+, substep \d .* left the grid"),
    shapeless: (SimulationError, r"control step \d+, substep \d .* left the grid"),
    observed: (SimulationError, r"control step \d+, substep \d .* left the grid"),
    reused: (ValueError, r"control\[0, 0\] of actuator 'biceps' is 1\.2 at control step 4"),
    table: (ValueError, r"control\[0, 0\] of actuator 'biceps' is -1\.5 at control step 5"),
    backwards: (FloatingPointError, r"to position is (nan|inf) at index \[0, 0, 0\]"),
    partly: (FloatingPointError, r"to position is nan at index \[0, 0, 0\]"),
}


@pytest.mark.parametrize("unread", [2, 5, 100])
@pytest.mark.parametrize("fault", SAYS)
def test_the_same_is_said_however_late_it_is_read(fault, unread, monkeypatch):
    kind, pattern = SAYS[fault]
    with pytest.raises(kind, match=pattern) as expected:
        fault(simulation(monkeypatch, None))
    sim = simulation(monkeypatch, unread)
    for _ in range(2):  # a fault leaves nothing behind that the next run would be blamed for
        with pytest.raises(kind) as found:
            fault(sim)
        assert str(found.value) == str(expected.value)
    control = torch.zeros(STEPS, 1, requires_grad=True)
    sim.rollout(control, STEPS).final.position.sum().backward()


class Reads:
    """Counts how often the host waits for the device, were there one: reads of torch and of Warp."""

    def __init__(self, monkeypatch):
        self.where: collections.Counter[str] = collections.Counter()
        self.within = False
        names = ("item", "__bool__", "__int__", "__float__", "__index__", "tolist", "cpu", "numpy", "nonzero")
        for owner, name in [(torch.Tensor, name) for name in names] + [(wp.array, "numpy")]:
            monkeypatch.setattr(owner, name, self.counting(getattr(owner, name), name))

    def counting(self, original, name: str):
        def counted(*args, **options):
            self.where[name] += not self.within  # torch comes here twice where a default device is set
            within, self.within = self.within, True
            try:
                return original(*args, **options)
            finally:
                self.within = within

        return counted

    def during(self, run) -> tuple[int, object]:
        """Reads during a call, and what it returns."""
        self.where.clear()
        result = run()
        return sum(self.where.values()), result


@pytest.mark.parametrize("name", SOLVERS)
def test_the_host_reads_once_in_a_block_and_once_in_a_backward_pass(name, monkeypatch):
    """And once in a step. Of parameters that were judged before nothing is read.

    A model whose room a motion may outgrow is read once more in each interval that runs forward: its worlds would stay
    where they were, and a controller must not see that. Recomputed intervals had enough room, so nothing is read.
    """
    for module in (
        warpbots.simulation.rollouts, warpbots.simulation.solver_operations, warpbots.gradients.captured,
    ):  # fmt: skip
        monkeypatch.setattr(module, "parallel", lambda device: True)
    scene = busy(least(name), solver=name)
    sim = Simulation(scene, SOLVERS[name](1 / 8), 6e-3, 3, checkpoints=Checkpoints.every(4))
    parameters = {n: sim.parameter(n).requires_grad_() for n in sim.parameters()}
    control = torch.full((10, sim.channels), 0.2, requires_grad=True)

    def rollout():
        return sim.rollout(control, 10, **parameters).final

    def backward():
        return torch.autograd.grad(sum(t.square().sum() for t in vars(final).values()), control)

    def step():
        return sim.step(final, control[0], **parameters)

    reads = Reads(monkeypatch)
    for _ in range(2):  # the first time, a model reads what it is made of
        found, final = reads.during(rollout)
        backwards, _ = reads.during(backward)
        step()
    growth = int(isinstance(sim.solver, Grows))
    assert found == 3 + 10 * growth, reads.where  # blocks of 4, 4 and 2 intervals
    assert backwards == 1, reads.where
    assert reads.during(step)[0] == 1 + growth, reads.where


def test_parameters_that_changed_are_judged_again(monkeypatch):
    """In place, too."""
    sim = simulation(monkeypatch, None)
    E = sim.parameter("youngs_modulus")
    sim.step(sim.state(), torch.zeros(1), youngs_modulus=E)
    E[0, 3] = -1.0
    with pytest.raises(ValueError, match=r"'youngs_modulus' must be in .* got -1 at index \[0, 3\]"):
        sim.step(sim.state(), torch.zeros(1), youngs_modulus=E)


def test_of_several_bad_parameters_the_first_is_named(monkeypatch):
    sim = simulation(monkeypatch, None)
    with pytest.raises(ValueError, match=r"'density' must be in .* got nan at index \[0, 0\]"):
        sim.step(sim.state(), torch.zeros(1), youngs_modulus=1e4, density=torch.nan, poissons_ratio=0.7)


def test_states_that_nobody_reads_are_few(monkeypatch):
    """A rollout without gradients holds the states of one block, however long it is."""
    sim = simulation(monkeypatch, 3)
    alive, most = weakref.WeakSet(), [0]

    def controller(state, time):
        alive.add(state.position)
        most[0] = max(most[0], len(alive))
        return like(sim, 0.1)

    sim.rollout(controller, STEPS)
    assert most[0] <= 3 + 1


def test_a_fault_that_does_not_come_again_is_not_lost(monkeypatch):
    """A motion at the edge, computed again in another order of sums, may stay finite."""
    sim = simulation(monkeypatch, None)
    make, rest = sim._operations.diagnosis._one_substep, vars(sim.state())

    def healed(names):
        run = make(names)
        return lambda given: run(given | rest)

    monkeypatch.setattr(sim._operations.diagnosis, "_one_substep", healed)
    with pytest.raises(
        SimulationError, match=r"control step \d+, substep 3 .*, but it is finite when the interval is computed"
    ):
        blind(sim)


def test_a_pass_that_was_broken_off_is_not_blamed_on_the_next(monkeypatch):
    """Nor does it hide what that one finds."""
    sim = simulation(monkeypatch, 100)
    control = torch.zeros(STEPS, 1, requires_grad=True)
    final = sim.rollout(control, STEPS).final

    def broken(gradient):
        raise ZeroDivisionError("enough")

    hook = control.register_hook(broken)
    with pytest.raises(ZeroDivisionError):
        (final.position * torch.nan).sum().backward(retain_graph=True)
    hook.remove()
    final.position.sum().backward(retain_graph=True)
    with pytest.raises(FloatingPointError, match="to position is nan"):
        (final.position * torch.nan).sum().backward()


@pytest.mark.parametrize("scalar", [wp.float32, wp.float64])
def test_marks_compile_for_a_gpu(scalar, tmp_path):
    _, kernel = finite_checks._kernel(scalar)
    wp.compile_aot_module(kernel.module, arch=90, module_dir=tmp_path, use_ptx=True)
    (path,) = tmp_path.glob("*.ptx")
    assert "min.s32" in path.read_text()


@pytest.mark.parametrize("always", [False, True], ids=["one thread", "many threads"])
def test_marks_are_of_the_first_bad_entry(always, rng, as_gpu):
    """Of arrays of vectors and numbers, of both precisions, however many threads look."""
    if always:
        as_gpu()
    values = [rng.normal(size=(700, 3)), rng.normal(size=900), rng.uniform(-1, 1, 50), np.zeros((0, 3))]
    values[0][500, 2], values[0][600, 0], values[0][400, 1] = np.nan, np.inf, -np.inf
    values[2][30], values[2][20] = 1.5, -1.5
    kinds = [wp.vec3f, wp.float64, wp.float64, wp.vec3d]
    arrays = [wp.array(v, dtype=k, device="cpu") for v, k in zip(values, kinds, strict=True)]
    found = finite_checks.Marks(arrays[0].device, 0, list(zip(arrays, [math.inf, math.inf, 1.0, 1.0], strict=True)))
    for _ in range(2):
        found.clear()
        found.look()
        rows = found.taken().tolist()
        assert rows[0] == [1502, 1800, 1201]
        assert rows[2][1:] == [30, 20]
        assert [finite_checks.flaw(row) for row in rows] == [(1201, "-inf"), None, (20, "-inf"), None]
