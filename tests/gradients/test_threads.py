"""Threads of a user and threads of a simulation: what each gets is what one thread gets alone, bit for bit."""

import dataclasses
import multiprocessing
import os
import pickle
import re
import sys
import threading
import time

import numpy as np
import pytest
import torch
import warp as wp
from cases import SOLVERS, busy, fields_of, least
from designs import DESIGNS, designed, varied
from torch.utils.data import DataLoader

import warpbots as wb
from warpbots.actuation_laws import proportional, stress_law
from warpbots.gradients.streams import replaying
from warpbots.gradients.thread_team import at_once
from warpbots.materials import LAWS, neo_hookean, st_venant_kirchhoff
from warpbots.scene import Box, Material, Scene, SoftBody, StressActuator
from warpbots.simulation import Simulation, world_shares
from warpbots.simulation.world_shares import usual_threads
from warpbots.solvers import MPM

THREADS, ROUNDS = 4, 3


def simulation() -> Simulation:
    return Simulation(busy(least("mpm"), solver="mpm"), SOLVERS["mpm"](1 / 8), dt=6e-3, substeps=3)


def gradient(sim: Simulation, value: float) -> torch.Tensor:
    control = torch.full((6, sim.channels), value, requires_grad=True)
    return torch.autograd.grad(sim.rollout(control, 6).final.position.square().sum(), control)[0]


def test_threads_that_share_a_simulation_do_not_disturb_one_another():
    """Nor those that make one of their own meanwhile; bitwise."""
    values = [0.1 + 0.1 * i for i in range(THREADS)]
    expected = [gradient(simulation(), value) for value in values]
    shared, faults = simulation(), []
    barrier = threading.Barrier(2 * THREADS)

    def work(sim: Simulation | None, i: int) -> None:
        barrier.wait()
        try:
            for _ in range(ROUNDS):
                assert torch.equal(gradient(sim or simulation(), values[i]), expected[i])
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(sim, i)) for i in range(THREADS) for sim in (shared, None)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults


WORLDS = 3


def everything(name: str, threads: int) -> dict[str, torch.Tensor]:
    """End, readings and all gradients of a rollout of worlds that differ in their parameters and controls."""
    sim, rng = designed(name, WORLDS, threads), np.random.default_rng(1)
    assert sim.threads == threads
    leaves = varied(sim) | {"control": torch.as_tensor(rng.uniform(-0.5, 0.5, (WORLDS, 3, sim.channels)))}
    leaves["control"] = leaves["control"].to(wp.dtype_to_torch(sim.model.scalar))
    leaves = {n: v.requires_grad_() for n, v in leaves.items() if v.numel()}
    parameters = {n: v for n, v in leaves.items() if n != "control"}
    end = sim.rollout(leaves.get("control"), 3, **parameters).final
    readings = sim.sense(end, **parameters)
    found = {n: t for n, t in (fields_of(end) | vars(readings)).items() if t.numel()}
    loss = sum((t.double() * torch.linspace(-1, 1, t.numel()).view(t.shape)).sum() for t in found.values())
    gradients = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
    named = {f"d {n}": g for n, g in zip(leaves, gradients, strict=True) if g is not None}
    return {n: t.detach() for n, t in (found | named).items()}


@pytest.mark.parametrize("name", [n for n in DESIGNS if n != "own"])
def test_bits_do_not_depend_on_the_number_of_threads(name):
    """State, readings and gradients by all parameters, for one, two and three threads."""
    alone = everything(name, 1)
    assert len(alone) > 10
    for threads in (2, 3):
        shared = everything(name, threads)
        differing = [n for n, t in alone.items() if not torch.equal(t.nan_to_num(7e7), shared[n].nan_to_num(7e7))]
        assert not differing, (threads, differing)


def test_reports_are_those_of_one_thread():
    """Of all worlds, in their order."""
    reports = []
    for threads in (1, 2):
        sim = designed("projective", WORLDS, threads)
        control = torch.linspace(0.0, 0.5, WORLDS)[:, None].expand(WORLDS, sim.channels)
        sim.step(sim.state(), control)
        reports.append(sim.report())
    for (name, alone), shared in zip(vars(reports[0]).items(), vars(reports[1]).values(), strict=True):
        np.testing.assert_array_equal(alone, shared, err_msg=name)
    assert len(reports[1].iterations) == WORLDS


def shared() -> Simulation:
    return Simulation(
        busy(least("mpm"), solver="mpm"), SOLVERS["mpm"](1 / 8), dt=6e-3, substeps=3, worlds=WORLDS, threads=2
    )


def test_threads_work_at_the_same_time():
    """Shares of worlds, and replays of two models: each waits here for the other."""
    together = threading.Barrier(2, timeout=60.0)
    at_once([together.wait, together.wait])

    def replay() -> None:
        with replaying(wp.get_device("cpu"), threading.RLock()):
            together.wait()

    at_once([replay, replay])


@pytest.mark.parametrize("bad", [0, -1, WORLDS + 1, 1.5])
def test_numbers_of_threads_that_cannot_be(bad):
    with pytest.raises(ValueError, match=rf"threads must be .*{re.escape(str(bad))}"):
        designed("springs", WORLDS, bad)


def test_the_usual_number_of_threads(monkeypatch):
    """The cores that the process may use, or what the environment says, and at most one for each of several worlds."""
    monkeypatch.setenv("WARPBOTS_THREADS", "2")
    assert [designed("springs", worlds).threads for worlds in (1, 2, 3)] == [2, 2, 2]
    monkeypatch.delenv("WARPBOTS_THREADS")
    assert 1 <= usual_threads() <= (os.cpu_count() or 1)
    for bad in ("0", "-2", "many", ""):
        monkeypatch.setenv("WARPBOTS_THREADS", bad)
        with pytest.raises(ValueError, match=f"WARPBOTS_THREADS must be a positive integer, got '{bad}'"):
            usual_threads()


def test_short_intervals_stay_with_one_thread(monkeypatch):
    """Long ones are divided, also in the middle of a rollout, with the same bits."""
    monkeypatch.setenv("WARPBOTS_THREADS", "3")
    control, divisions = torch.full((WORLDS, 6, shared().channels), 0.3), []
    for limit in (1e9, 1e-9):
        monkeypatch.setattr(world_shares, "_LONG", limit)
        sim = Simulation(busy(least("mpm"), solver="mpm"), SOLVERS["mpm"](1 / 8), 6e-3, 3, worlds=WORLDS)
        control.grad = None
        end = sim.rollout(control.requires_grad_(), 6).final.position
        end.square().sum().backward()
        divisions.append((sim._operations.shares.sizes, end.detach(), control.grad))
    assert [d[0] for d in divisions] == [[3], [1, 1, 1]]
    assert torch.equal(divisions[0][1], divisions[1][1])
    assert torch.equal(divisions[0][2], divisions[1][2])


def test_faults_name_the_world_of_the_simulation():
    """Not the world of the share: controls, states and gradients of the last world."""
    sim = shared()
    control = torch.zeros(WORLDS, sim.channels)
    control[2, 1] = 7.0
    with pytest.raises(ValueError, match=r"control\[2, 1\]"):
        sim.step(sim.state(), control)
    velocity = sim.state().velocity
    velocity[2] = 1e6
    with pytest.warns(UserWarning, match="world 2"):
        assert sim.step(sim.state(velocity=velocity), 0.0 * control).lost.tolist() == [0.0, 0.0, 1.0]
    position = sim.state().position.requires_grad_()
    end = sim.step(sim.state(position=position), 0.0 * control)
    weight = torch.ones_like(position)
    weight[2, 3, 1] = torch.nan
    with pytest.raises(FloatingPointError, match=r"at index \[2, "):
        end.position.backward(weight)


@pytest.mark.parametrize(
    "name", ["articulated", *(pytest.param(n, marks=pytest.mark.slow) for n in ("projective", "coupled"))]
)
def test_a_failure_has_the_reason_that_one_thread_finds(name):
    """It is not read from a model that no thread has used."""
    reasons = []
    for threads in (1, 2):
        sim = designed(name, WORLDS, threads)
        field = "qd" if sim.model.matter is None else "velocity"
        fast = getattr(sim.state(), field)
        fast[2] = 1e30
        with pytest.warns(wb.LostWorldWarning, match="world 2") as said:
            sim.rollout(None, 1, sim.state(**{field: fast}))
        reasons.append([str(w.message) for w in said if w.category is wb.LostWorldWarning])
    assert reasons[0] == reasons[1]


def test_an_exception_in_one_share_is_raised_when_the_others_have_ended():
    """And the next call works."""
    ended, begun = [], threading.Event()

    def slow() -> None:
        begun.wait(60.0)
        ended.append(True)

    def interrupted() -> None:
        begun.set()
        raise KeyboardInterrupt

    for tasks in ([slow, interrupted], [interrupted, slow]):
        begun.clear()
        ended.clear()
        with pytest.raises(KeyboardInterrupt):
            at_once(tasks)
        assert ended == [True]
    assert at_once([lambda: 1, lambda: 2, lambda: 3]) == [1, 2, 3]


class Ends:
    """A dataset of the ends of rollouts."""

    def __init__(self, sim: Simulation):
        self.sim = sim

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.sim.rollout(torch.full((2, self.sim.channels), 0.1 * index), 2).final.position


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")
def test_workers_of_a_data_loader_have_threads_of_their_own():
    """Processes that begin as copies of one in which threads ran."""
    ends = Ends(shared())
    expected = [ends[0], ends[1]]
    found = list(DataLoader(ends, batch_size=None, num_workers=1, timeout=120, multiprocessing_context="fork"))
    assert all(map(torch.equal, found, expected))


@pytest.mark.skipif(os.name != "posix", reason="copies a process")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")
def test_a_process_can_be_copied_while_another_thread_simulates():
    """The copy has not this thread, and does not wait for it."""
    sim, over = simulation(), threading.Event()

    def end() -> torch.Tensor:
        return sim.rollout(torch.full((6, sim.channels), 0.1), 6).final.position

    def simulate() -> None:
        while not over.is_set():
            end()

    def compare() -> None:
        sys.exit(0 if torch.equal(end(), expected) else 1)

    expected, other = end(), threading.Thread(target=simulate)
    other.start()
    codes = []
    try:
        for wait in (0.005, 0.01, 0.015, 0.02):
            time.sleep(wait)
            copy = multiprocessing.get_context("fork").Process(target=compare)
            copy.start()
            copy.join(timeout=60.0)
            codes.append(copy.exitcode)
            copy.kill()
    finally:
        over.set()
        other.join()
    assert codes == [0, 0, 0, 0]


def test_copies_have_the_threads_of_the_original():
    assert pickle.loads(pickle.dumps(shared())).threads == 2


@dataclasses.dataclass(frozen=True)
class Swelling(StressActuator):
    """A stress whose law the test registers."""


def test_laws_that_are_registered_later_change_no_simulation(monkeypatch):
    """Threads build models of their own when they are first needed, with the laws that the simulation was made with."""

    def register(law, stress):
        monkeypatch.setitem(LAWS, "registered", law)
        stress_law.register(Swelling, lambda actuator, dim: (proportional, -stress * np.eye(dim)))

    found = {}
    for threads, later in ((1, False), (1, True), (2, True)):
        register(neo_hookean.law, 500.0)
        body = SoftBody("bar", Box((0.0, 0.0), (0.2, 0.1)), Material(1e4, law="registered"))
        body = dataclasses.replace(body, regions={"all": body.shape})
        scene = Scene([body], [Swelling("swell", "all")], gravity=(0.0, 0.0))
        sim = Simulation(scene, MPM(0.05), 1e-3, 4, worlds=2, threads=threads)
        if later:
            register(st_venant_kirchhoff.law, -100.0)
        start = sim.state(deformation=torch.diag(torch.tensor([1.4, 0.9])).to(sim.state().position))
        found[threads, later] = sim.rollout(torch.ones(1), 5, start).final.position
    assert all(torch.equal(x, found[1, False]) for x in found.values())
