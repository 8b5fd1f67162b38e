"""What is captured: nothing is allocated, compiled or read back in it, and a step that cannot be captured still runs."""

import ast
import contextlib
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import warp as wp
from cases import SOLVERS, busy, least
from torch.utils._python_dispatch import TorchDispatchMode

import warpbots.numerics.threads
from warpbots.gradients import at_turn, captured, streams
from warpbots.gradients.finite_checks import Marks
from warpbots.numerics import if_then, launch, load, preparing, while_loop
from warpbots.scene import Box, Capsule, Contact, Joint, Material, RigidBody, Scene, SoftBody, Torque, floor
from warpbots.simulation import Simulation
from warpbots.solvers import Articulated, MassSpring, ProjectiveDynamics

FLESH = Material(1e5, 0.3, 1000.0)


def cubes(apart: float = 0.004) -> Scene:
    """A cube that falls askew onto another one, on a floor with friction."""
    low = SoftBody("low", Box((0, 0, 0.0005), (0.1, 0.1, 0.1)), FLESH, velocity=(0, 0, -0.2))
    high = Box((0.031, 0.027, 0.1 + apart), (0.131, 0.127, 0.2 + apart))
    return Scene([low, SoftBody("high", high, FLESH, velocity=(0.1, 0, -1.2))], obstacles=[floor(friction=0.5)])


def sled() -> Scene:
    """Flesh on a bone, whose other side is bare and slides over a floor."""
    flesh = SoftBody("flesh", Box((-0.04, -0.04, 0.0705), (0.04, 0.04, 0.1305)), Material(5e4, 0.3, 1000.0))
    bone = RigidBody("bone", Box((-0.06, -0.03, -0.03), (0.06, 0.03, 0.03)), 2000.0, position=(0.0, 0.0, 0.0605))
    return Scene((flesh, bone), obstacles=(floor(height=0.03, friction=0.3),))


def finger() -> Scene:
    """A rigid finger on a hinge with a motor that rests on a floor."""
    body = RigidBody("finger", Capsule((0, 0, 0), (0.3, 0, 0), 0.05), position=(0, 0, 0.049), points=80)
    hinge = Joint("hinge", "revolute", None, "finger", position=(0, 0, 0.049), axis=(0, 1, 0), damping=0.01)
    contact = Contact("finger", "floor", 1e5, 1e4, 0.4, 1e3)
    return Scene((body,), (Torque("motor", "hinge", 0.5),), (floor(),), joints=(hinge,), contacts=(contact,))


SIMULATIONS = {
    **{
        name: lambda name=name: Simulation(busy(least(name), solver=name), SOLVERS[name](1 / 8), 6e-3, 3, worlds=2)
        for name in SOLVERS
    },
    "springs that collide": lambda: Simulation(cubes(0.05), MassSpring(0.05, collision=4.0), 3e-3, 6),
    "cubes": lambda: Simulation(cubes(), ProjectiveDynamics(0.05), 5e-3),
    "cubes apart": lambda: Simulation(cubes(0.5), ProjectiveDynamics(0.05), 5e-3),
    "bones": lambda: Simulation(sled(), ProjectiveDynamics(0.02), 5e-3),
    "finger": lambda: Simulation(finger(), Articulated(), 2e-3, worlds=2),
}
simulations = pytest.mark.parametrize("make", SIMULATIONS.values(), ids=SIMULATIONS)


def gradients(sim: Simulation, steps: int = 2) -> list[torch.Tensor]:
    """A final state, and gradients to controls and a parameter."""
    control = torch.full((steps, sim.channels), 0.2, requires_grad=True)
    name = next(iter(sim.parameters()))
    parameter = sim.parameter(name).requires_grad_()
    final = sim.rollout(control, steps, **{name: parameter}).final
    loss = sum(t.square().sum() for t in vars(final).values())
    return [next(iter(vars(final).values())).detach(), *torch.autograd.grad(loss, (control, parameter))]


class Spy(TorchDispatchMode):
    """Notes what a capture may not do."""

    def __init__(self, monkeypatch):
        super().__init__()
        self.captures, self.seen, self.on = 0, [], False
        context = wp._src.context
        for owner, name in (
            (context.CpuDefaultAllocator, "allocate"),
            (context.ModuleExec, "__init__"),
            (context.KernelHooks, "__init__"),
            (wp.array, "numpy"),
        ):
            monkeypatch.setattr(owner, name, self.noting(getattr(owner, name), f"{owner.__name__}.{name}"))
        enter, leave = wp.ScopedCapture.__enter__, wp.ScopedCapture.__exit__

        def begin(capture):
            self.captures, self.on = self.captures + 1, True
            return enter(capture)

        def end(capture, *fault):
            self.on = False
            return leave(capture, *fault)

        monkeypatch.setattr(wp.ScopedCapture, "__enter__", begin)
        monkeypatch.setattr(wp.ScopedCapture, "__exit__", end)

    def note(self, what: str) -> None:
        if self.on:
            self.seen.append(what)

    def noting(self, original, what):
        def noted(*args, **options):
            self.note(what)
            return original(*args, **options)

        return noted

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.note(str(function))
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("always", [False, True], ids=["one thread", "many threads"])
@simulations
def test_nothing_is_allocated_compiled_or_read_in_a_capture(make, always, as_gpu, monkeypatch):
    """Forwards and backwards, with contact and with contact that is not there yet."""
    if always:
        as_gpu()
    sim = make()
    if sim.model.device.is_cuda and make is SIMULATIONS["springs that collide"]:
        pytest.skip("a hash grid cannot be part of a graph of a GPU")
    with Spy(monkeypatch) as spy:
        gradients(sim)
        assert not spy.captures
        gradients(sim)
    assert spy.captures >= 2
    assert not spy.seen


def counting(name: str) -> wp.Kernel:
    """A kernel that counts, in a module of its own."""

    @wp.kernel(module=wp.get_module(f"tests.{name}"), enable_backward=False)
    def count(times_out: wp.array[int]):
        times_out[0] += 1

    return count


def numbers(count: int = 1) -> wp.array:
    return wp.zeros(count, dtype=int, device="cpu")


def test_kernels_of_a_body_that_is_not_entered_are_loaded():
    """Nor is anything launched in it, however deep."""
    kernel, times, never = counting("not_entered"), numbers(), numbers()

    def work() -> None:
        while_loop(never, lambda: if_then(never, lambda: launch(kernel, 1, [], [times], times.device)))

    work()
    assert not kernel.module.execs
    with preparing() as left:
        work()
    assert len(left) == 1
    assert not kernel.module.execs
    load(left)
    assert kernel.module.execs
    assert times.numpy()[0] == 0
    with preparing() as left:
        if_then(wp.ones(1, dtype=int, device="cpu"), lambda: launch(kernel, 1, [], [times], times.device))
    assert not left
    assert times.numpy()[0] == 1


def test_what_a_body_fills_is_left_alone_where_it_is_not_entered():
    """A search that is made in the first of two rounds: its list is that of the first round in every call."""
    kernel, rounds, found, asked = counting("two_rounds"), numbers(), numbers(3), numbers()
    device = rounds.device

    @wp.kernel(module=kernel.module, enable_backward=False)
    def end(rounds: wp.array[int], again_out: wp.array[int], asked_out: wp.array[int]):
        again_out[0] = 1 - rounds[0] / 2
        asked_out[0] = 0

    again, never = numbers(), numbers()

    def search() -> None:
        found.fill_(7)

    def work() -> None:
        for array, value in ((rounds, 0), (found, 0), (asked, 1), (again, 1)):
            array.fill_(value)

        def correct() -> None:
            launch(kernel, 1, [], [rounds], device)
            if_then(asked, search)
            if_then(never, lambda: found.fill_(-1))
            launch(end, 1, [rounds], [again, asked], device)

        while_loop(again, correct)

    run = captured.Captured(device, work, work, "kernels")
    for _ in range(3):
        run(lambda: None, None)
        assert rounds.numpy()[0] == 2
        assert (found.numpy() == 7).all()


@pytest.mark.parametrize("rest", [0, 1], ids=["odd", "even"])
def test_a_graph_of_many_steps_is_as_long_as_one_of_few(rest, monkeypatch):
    """A forward pass repeats two steps, and its state is that of single steps."""
    noted, own = [], wp.launch
    monkeypatch.setattr(
        wp, "launch", lambda *a, **k: (noted.append(wp.get_device("cpu").is_capturing), own(*a, **k))[1]
    )
    lengths = []
    for substeps in (5 + rest, 9 + rest):
        sims = [Simulation(finger(), Articulated(), n * 2e-3, n) for n in (substeps, 1)]
        noted.clear()
        with torch.no_grad():
            ends = [
                sim.rollout(torch.full((n, 1), 0.2), n).final.q for sim, n in zip(sims, (2, 2 * substeps), strict=True)
            ]
        lengths.append(sum(noted))
        assert torch.equal(*ends)
    assert lengths[0] == lengths[1] > 0


def test_every_launch_and_branch_can_be_loaded():
    """Solvers launch and branch by `warpbots.numerics` alone, which loads kernels where nothing shall run."""
    folder = Path(warpbots.numerics.__file__).parent
    launches = {"launch", "launch_tiled", "capture_while", "capture_if"}

    def calls(path: Path) -> list[ast.Call]:
        text = path.read_text()
        if not any(name in text for name in launches):
            return []
        nodes = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call))
        return [n for n in nodes if ast.unparse(n.func) in {f"wp.{name}" for name in launches}]

    for path in (*folder.parent.glob("solvers/**/*.py"), *folder.parent.glob("gradients/*.py")):
        assert not calls(path), path
    nodes = [n for n in ast.walk(ast.parse((folder / "launch.py").read_text())) if isinstance(n, ast.Call)]
    found = [n for n in nodes if ast.unparse(n.func) == "with_own_settings"]
    assert {ast.unparse(n.args[0]) for n in found} == {"wp.launch", "wp.launch_tiled"}
    assert not calls(folder / "launch.py")
    for call in found:
        assert {"record_tape", "record_cmd"} <= {k.arg for k in call.keywords}, ast.unparse(call)


def test_no_kernel_uses_memory_that_threads_share():
    """Tiles in such memory are of one thread of the process alone: see `warpbots.numerics.lanes`."""
    folder = Path(warpbots.numerics.__file__).parents[1]
    sources = [p for p in folder.glob("**/*.py") if p.name != "lanes.py"]
    assert len(sources) > 100
    for path in sources:
        text = path.read_text()
        if "wp.tile" not in text:
            continue
        attributes = [ast.unparse(n) for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Attribute)]
        assert not [a for a in attributes if a.startswith("wp.tile")], path


@pytest.fixture
def unsaid(monkeypatch):
    """As in a process in which every capture has succeeded."""
    monkeypatch.setattr(captured, "_said", threading.Event())


@pytest.mark.parametrize("groups", [1, 2], ids=["forwards", "backwards"])
@pytest.mark.parametrize("name", ["mpm", "cubes", "finger"])
def test_a_step_that_cannot_be_captured_is_run_all_the_same(name, groups, unsaid, monkeypatch):
    """The last launch of a capture fails: the same bits, no capture is left open, and it is said once."""
    expected = gradients(SIMULATIONS[name]())
    look, on = Marks.look, []

    def failing(marks: Marks, group: int = 0) -> None:
        if wp._src.context.runtime._apic_capture is not None and len(marks._launches) == groups:
            on.append(group)
            raise RuntimeError("there is no room for a graph")
        look(marks, group)

    monkeypatch.setattr(Marks, "look", failing)
    sim = SIMULATIONS[name]()
    gradients(sim)
    with pytest.warns(UserWarning, match=r"cannot be captured on cpu \(RuntimeError: there is no room") as said:
        found = gradients(sim)
    assert on
    assert len(said) == 1
    assert wp._src.context.runtime._apic_capture is None
    for again in (found, gradients(sim)):
        assert all(map(torch.equal, again, expected))


def test_a_graph_that_cannot_be_launched_is_replaced(unsaid, monkeypatch):
    expected = gradients(SIMULATIONS["mpm"]())

    def failing(graph, stream=None):
        raise RuntimeError("no memory for the graph")

    monkeypatch.setattr(wp, "capture_launch", failing)
    sim = SIMULATIONS["mpm"]()
    gradients(sim)
    with pytest.warns(UserWarning, match="no memory for the graph"):
        assert all(map(torch.equal, gradients(sim), expected))


class Stream:
    """A stream that notes who waits for whom."""

    def __init__(self, name: str, log: list):
        self.name, self.log, self.is_capturing, self.device = name, log, False, None

    def wait_stream(self, other: "Stream") -> None:
        self.log.append(f"{self.name} waits for {other.name}")


class Gpu:
    """A device with recorded streams instead of Warp's and torch's."""

    is_cuda, alias = True, "cuda:0"
    __hash__ = None  # as Warp's

    def __init__(self, monkeypatch):
        monkeypatch.setattr(streams, "_own", {})
        self.log: list[str] = []
        self.torch, self.own = Stream("torch", self.log), Stream("own", self.log)
        pairs = {"current": lambda: self.torch, "made": lambda: self.own}
        monkeypatch.setattr(wp, "device_to_torch", lambda device: "current")
        monkeypatch.setattr(torch.cuda, "Stream", lambda device: "made")
        monkeypatch.setattr(wp, "stream_from_torch", lambda which: pairs[which]())
        monkeypatch.setattr(wp, "ScopedStream", self.scope)
        monkeypatch.setattr(wp, "ScopedCapture", self.capture)
        monkeypatch.setattr(wp, "capture_launch", lambda graph, stream: self.log.append(f"{graph} on {stream.name}"))

    @contextlib.contextmanager
    def scope(self, stream, sync_enter=True, sync_exit=False):
        self.log.append(f"{stream.name} waits for warp" if sync_enter else "no wait")
        yield stream
        if sync_exit:
            self.log.append(f"warp waits for {stream.name}")

    @contextlib.contextmanager
    def capture(self, device, stream):
        self.log.append(f"capture on {stream.name}")
        yield SimpleNamespace(graph="graph")
        self.log.append("end")

    def ran(self, work: captured.Captured) -> list[str]:
        """What happens in a call."""
        self.log.clear()
        with at_turn(self) as stream:
            work(lambda: self.log.append("fill"), stream)
        return list(self.log)


def test_captures_have_a_stream_of_their_own_and_graphs_run_on_that_of_torch(monkeypatch):
    """Whoever was current before, what ran there comes first."""
    gpu = Gpu(monkeypatch)
    work = captured.Captured(gpu, lambda: gpu.log.append("work"), lambda: gpu.log.append("first"), "kernels")
    enter = ["torch waits for own", "torch waits for warp", "fill"]
    leave = ["warp waits for torch", "own waits for torch"]
    assert gpu.ran(work) == [*enter, "first", *leave]
    capture = ["own waits for warp", "capture on own", "work", "end"]
    assert gpu.ran(work) == [*enter, *capture, "graph on torch", *leave]
    assert gpu.ran(work) == [*enter, "graph on torch", *leave]
    gpu.torch = Stream("side", gpu.log)
    assert gpu.ran(work) == [line.replace("torch", "side") for line in [*enter, "graph on torch", *leave]]


def test_a_stream_is_never_left_capturing(unsaid, monkeypatch):
    """Whatever Warp left open within a loop is ended, and the work runs on the stream of torch."""
    gpu, ended = Gpu(monkeypatch), []
    gpu.own.device = SimpleNamespace(context=None)
    gpu.own.cuda_stream = 7

    def work() -> None:
        gpu.log.append("work")
        if "capture on own" in gpu.log and not ended:
            gpu.own.is_capturing = True
            raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(wp._src.context.runtime.core, "wp_cuda_graph_end_capture", lambda *a: ended.append(a[1]))
    captured_work = captured.Captured(gpu, work, work, "kernels")
    gpu.ran(captured_work)
    with pytest.warns(UserWarning, match="not permitted when stream is capturing"):
        log = gpu.ran(captured_work)
    assert ended == [7]
    assert log[-4:] == ["fill", "work", "warp waits for torch", "own waits for torch"]
    assert gpu.ran(captured_work)[2:4] == ["fill", "work"]
