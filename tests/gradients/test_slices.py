"""One body that threads share: the same bits as with one thread, and no thread waits for one that has failed."""

import threading

import pytest
import torch
import warp as wp
from cases import fields_of
from designs import DESIGNS, designed, varied
from torch.utils.data import DataLoader

from warpbots.gradients import Share, interval
from warpbots.gradients.thread_team import together
from warpbots.numerics import slices
from warpbots.scene import (
    Box,
    Constraint,
    FibreReinforcement,
    Material,
    MaxwellBranch,
    Muscle,
    Scene,
    SoftBody,
    VonMises,
)
from warpbots.simulation import Simulation, SimulationError
from warpbots.solvers import MPM, MassSpring

EXPLICIT = [n for n in DESIGNS if n.startswith(("springs", "mpm", "coupled"))]
SPRINGS = {"stage", "pull", "end", "adj_end", "adj_pull"}
PARTICLES = {"clear", "p2g", "move_grid", "move", "adj_move", "adj_p2g"}


@pytest.fixture(autouse=True)
def all_divided(monkeypatch):
    """Small launches are divided, too."""
    monkeypatch.setattr(slices, "_LEAST", 2)


@pytest.fixture
def divided(monkeypatch) -> list[str]:
    """The names of the kernels that have been divided."""
    names, divide = [], slices.Slices.divide

    def noted(self, kernel, *words):
        names.append(kernel.func.__name__)
        return divide(self, kernel, *words)

    monkeypatch.setattr(slices.Slices, "divide", noted)
    return names


def everything(sim: Simulation, leaves: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """End, readings and the gradients by `leaves` of a rollout, once its kernels are captured."""
    _everything(sim, leaves)
    return _everything(sim, leaves)


def _everything(sim: Simulation, leaves: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    parameters = {n: v for n, v in leaves.items() if n != "control"}
    end = sim.rollout(leaves.get("control"), 3, **parameters).final
    found = {n: t for n, t in (fields_of(end) | vars(sim.sense(end, **parameters))).items() if t.numel()}
    loss = sum((t.double() * torch.linspace(-1, 1, t.numel()).view(t.shape)).sum() for t in found.values())
    gradients = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
    named = {f"d {n}": g for n, g in zip(leaves, gradients, strict=True) if g is not None}
    return {n: t.detach() for n, t in (found | named).items()}


def leaves_of(sim: Simulation, parameters: bool) -> dict[str, torch.Tensor]:
    """Controls, and all parameters if wanted."""
    leaves = varied(sim) if parameters else {}
    leaves["control"] = torch.linspace(-0.5, 0.5, 3 * sim.channels).view(3, -1).to(wp.dtype_to_torch(sim.model.scalar))
    return {n: v.requires_grad_() for n, v in leaves.items() if v.numel()}


@pytest.mark.parametrize("parameters", [False, True], ids=["control", "all"])
@pytest.mark.parametrize("name", EXPLICIT)
def test_bits_do_not_depend_on_the_number_of_threads(name, parameters, divided):
    """State, readings and gradients of one world, for one, two and three threads."""
    sim = designed(name, 1, 1)
    alone = everything(sim, leaves_of(sim, parameters))
    assert not divided
    for threads in (2, 3):
        sim = designed(name, 1, threads)
        shared = everything(sim, leaves_of(sim, parameters))
        differing = [n for n, t in alone.items() if not torch.equal(t.nan_to_num(7e7), shared[n].nan_to_num(7e7))]
        assert not differing, (threads, differing)
    kernels = SPRINGS if "springs" in name else PARTICLES
    assert kernels <= set(divided)
    assert "springs" not in name or ("adj_stage" in divided) != parameters  # gradient by gravity: one sum


def lattice(threads: int = 1, solver: type = MassSpring, **options) -> Simulation:
    """A damped block with a muscle, as a lattice or by another solver."""
    box = Box((0.0, 0.0), (0.5, 0.3))
    body = SoftBody("block", box, Material(1e4, 0.25, damping=1e-3), regions={"all": box})
    scene = Scene([body], [Muscle("muscle", "all", (1.0, 0.0), 500.0)])
    return Simulation(scene, solver(0.05, **options), 1.6e-3, 4, threads=threads)


@pytest.mark.parametrize("options", [{"lattice": "random"}, {"integrator": "rk4"}, {"integrator": "verlet"}], ids=str)
def test_bits_of_other_lattices(options):
    """Springs between masses without order, and several stages; more threads than some slices have masses."""
    alone = everything(lattice(**options), leaves_of(lattice(), False))
    for threads in (2, 50):
        shared = everything(lattice(threads, **options), leaves_of(lattice(), False))
        assert not [n for n, t in alone.items() if not torch.equal(t, shared[n])], threads


def test_bits_of_particles(divided):
    """Planes of the grid, of which some threads have none; control signals of all particles in one sum."""
    alone = everything(lattice(solver=MPM), leaves_of(lattice(), False))
    for threads in (2, 3, 50):
        shared = everything(lattice(threads, MPM), leaves_of(lattice(), False))
        assert not [n for n, t in alone.items() if not torch.equal(t, shared[n])], threads
    assert set(divided) >= PARTICLES


@pytest.mark.parametrize("kind", ["metal", "fluid", "fibres"])
def test_bits_of_matter_that_flows_and_is_held(kind, divided):
    """Plastic flow, fluids, fibres with branches, and held nodes: one item of each kernel writes to itself alone."""
    box = Box((0.0, 0.0), (0.5, 0.3))
    material = {
        "metal": Material(1e4, 0.25, law="hencky", plasticity=VonMises(50.0)),
        "fluid": Material(1e4, 1 / 3, law="weakly_compressible", damping=1e-3),
        "fibres": Material(
            1e4, 0.25, fibres=(FibreReinforcement((1.0, 0.0), 1e4),), branches=(MaxwellBranch(1e4, 0.1),)
        ),
    }[kind]
    body = SoftBody("block", box, material, regions={"end": Box((0.0, 0.0), (0.1, 0.3))})
    scene = Scene([body], constraints=[Constraint("end")])
    sims = [Simulation(scene, MPM(0.05), 1.6e-3, 4, threads=n) for n in (1, 2, 3)]
    alone, *others = (everything(sim, leaves_of(sim, True)) for sim in sims)
    for shared in others:
        assert not [n for n, t in alone.items() if not torch.equal(t, shared[n])]
    assert set(divided) >= {"hold_grid", "load_particles" if kind == "fibres" else "flow_particles"}


def test_bits_of_several_worlds(divided):
    """Slices end within worlds and between them."""
    sim = lattice()
    model, names = sim.solver.build(sim.scene, 3, "cpu"), frozenset({"position", "velocity"})
    inputs = {n: wp.to_torch(a, requires_grad=False).clone() for n, a in vars(sim.solver.state(model)).items()}
    inputs["velocity"] += 0.1 * torch.linspace(-1, 1, inputs["velocity"].numel()).view_as(inputs["velocity"])
    inputs["control"] = torch.tensor([[0.5], [-0.5], [0.2]], dtype=inputs["position"].dtype)
    found = []
    for threads in (1, 2, 3, 7):
        replay = interval(sim.solver, model, 4e-4, 10, frozenset(), names, share=Share(threads=threads))
        for _ in range(3):  # launches, then a capture, then a graph
            ends = replay.run(inputs)[0]
            gradients = replay.backward({n: t.cos() for n, t in ends.items()})[0]
        found.append(ends | {f"d {n}": t for n, t in gradients.items()})
    assert divided
    for other in found[1:]:
        assert not [n for n, t in found[0].items() if not torch.equal(t, other[n])]


def test_small_launches_stay_with_one_thread(monkeypatch):
    """Nothing waits for another thread, and no thread is asked."""
    monkeypatch.setattr(slices, "_LEAST", 10**6)
    monkeypatch.setattr("warpbots.gradients.captured.together", None)
    sim = lattice(2)
    assert torch.equal(sim.rollout(None, 4).final.position, lattice().rollout(None, 4).final.position)


def failing(monkeypatch, thread: int, fault: type[BaseException]) -> threading.Event:
    """Replays of one of two threads raise an exception from now on, until the event is set."""
    replay, calls, over = wp.capture_launch, [], threading.Event()

    def failed(graph, stream=None):
        main = threading.current_thread() is threading.main_thread()
        calls.append(main)
        if main == (thread == 0) and not over.is_set():
            raise fault("test")
        return replay(graph, stream) if stream else replay(graph)

    monkeypatch.setattr(wp, "capture_launch", failed)
    return over


@pytest.mark.parametrize("thread", [0, 1])
def test_an_interrupt_in_one_thread_ends_the_others(monkeypatch, thread):
    """And later steps are right."""
    sim, expected = lattice(2), lattice().rollout(None, 4).final.position
    sim.rollout(None, 2)
    over = failing(monkeypatch, thread, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        sim.rollout(None, 4)
    over.set()
    assert torch.equal(sim.rollout(None, 4).final.position, expected)


@pytest.mark.parametrize("thread", [0, 1])
def test_a_graph_that_fails_is_replaced_by_launches(monkeypatch, thread):
    """With the same bits."""
    sim, expected = lattice(2), lattice().rollout(None, 4).final.position
    sim.rollout(None, 2)
    failing(monkeypatch, thread, RuntimeError)
    monkeypatch.setattr("warpbots.gradients.captured._said", threading.Event())
    with pytest.warns(UserWarning, match="cannot be captured on cpu .RuntimeError: test"):
        assert torch.equal(sim.rollout(None, 4).final.position, expected)


def test_a_fault_in_the_last_slice_names_the_mass():
    """The same error as with one thread."""
    messages = []
    for threads in (1, 3):
        sim = lattice(threads)
        velocity = sim.state().velocity
        velocity[0, -1] = 0.9 * torch.finfo(velocity.dtype).max
        with pytest.raises(SimulationError, match="of mass [0-9]+ of 'block'") as fault:
            sim.rollout(None, 2, sim.state(velocity=velocity))
        messages.append(str(fault.value))
    assert messages[0] == messages[1]


def test_tasks_that_wait_for_one_another_all_have_a_thread():
    """Also more of them than cores, and from several threads at once."""
    ended = []

    def meet() -> None:
        barrier = threading.Barrier(9, timeout=60.0)
        together([barrier.wait] * 9, barrier.abort)
        ended.append(True)

    threads = [threading.Thread(target=meet) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ended) == 3


def test_tasks_wait_no_longer_for_one_that_fails():
    """Whichever it is, also if it fails before the others have begun."""
    for fault in (KeyboardInterrupt, ValueError):
        for place in range(3):
            barrier = threading.Barrier(3, timeout=60.0)

            def fail(fault=fault) -> None:
                raise fault

            tasks = [barrier.wait] * 2
            tasks.insert(place, fail)
            with pytest.raises((fault, threading.BrokenBarrierError)):
                together(tasks, barrier.abort)


class Ends:
    """A dataset of the ends of rollouts."""

    def __init__(self, sim: Simulation):
        self.sim = sim

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.sim.rollout(torch.full((2, self.sim.channels), 0.1 * index), 2).final.position


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")
def test_processes_that_begin_as_copies_have_threads_of_their_own():
    """Of one in which threads have shared a body."""
    ends = Ends(lattice(2))
    expected = [ends[0], ends[1]]
    found = list(DataLoader(ends, batch_size=None, num_workers=1, timeout=120, multiprocessing_context="fork"))
    assert all(map(torch.equal, found, expected))
