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
from warpbots.scene import Box, Fibre, Material, Scene, SoftBody
from warpbots.simulation import Simulation
from warpbots.solvers import MassSpring

EXPLICIT = [n for n in DESIGNS if n.startswith(("springs", "coupled-springs"))]


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
    """End, readings and the gradients by `leaves` of a rollout."""
    parameters = {n: v for n, v in leaves.items() if n != "control"}
    end = sim.rollout(leaves["control"], 3, **parameters).final
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
    assert {"stage", "pull", "end", "adj_end", "adj_pull"} <= set(divided)
    assert ("adj_stage" in divided) != parameters  # the gradient by gravity is one sum over all masses


def lattice(threads: int, **options) -> Simulation:
    """A damped block without order among its masses, with a muscle."""
    box = Box((0.0, 0.0, 0.0), (0.4, 0.3, 0.3))
    body = SoftBody("block", box, Material(1e4, 0.25, damping=1e-3), regions={"all": box})
    scene = Scene([body], [Fibre("fibre", "all", (1.0, 0.0, 0.0), 1e3, 0.2)])
    return Simulation(scene, MassSpring(0.06, **options), 4e-3, 8, threads=threads)
