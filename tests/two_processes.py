"""What two processes compute together, for `test_processes.py`: ``torchrun --nproc-per-node 2 two_processes.py FOLDER``."""

import json
import os
import re
import sys
from pathlib import Path

import torch
import torch.distributed as dist

import warpbots as wb
from warpbots import cli
from warpbots.optimize import methods

DATA = torch.linspace(-1.0, 2.0, 12, dtype=torch.float64).reshape(4, 3)
"""Worlds of a problem: the loss is a mean over its rows."""

METHODS = {
    "adam": lambda: methods.Torch(lr=0.1, max_norm=0.5),
    "lbfgs": lambda: methods.Torch(torch.optim.LBFGS, lr=0.5),
    "augmented": lambda: methods.Torch(lr=0.05, constraints=methods.AugmentedLagrangian(every=3)),
    "smoothed": lambda: methods.Torch(lr=0.1, smoothing=methods.Smoothing(0.1, samples=2)),
    "smoothed-0": lambda: methods.Torch(lr=0.1, smoothing=methods.Smoothing(0.1, samples=2, order=0)),
    "slsqp": lambda: methods.SciPy("SLSQP"),
    "cma": lambda: methods.CMA(0.3, population=4),
    "starts": lambda: methods.MultiStart(methods.SciPy("L-BFGS-B"), 2),
}


def solve(name: str, data: torch.Tensor, group=None, **options) -> tuple[list[float], list[float], int]:
    """Unknowns at the end, losses and episodes of a problem whose constraint, too, is a mean over the rows."""
    torch.manual_seed(1)
    x = torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64, requires_grad=True)
    method = METHODS[name]()

    def outcome():
        loss = (torch.sin(data @ x) + (x - data).square().sum(1)).mean()
        return wb.Outcome(loss, {"mean": (data @ x).mean() - 0.4}) if method.constrained else loss

    history = wb.minimize(outcome, x, method, iterations=6, progress=False, group=group, **options)
    return x.tolist(), history.loss, history.episodes[-1]


class FailsAbove(torch.autograd.Function):
    """The identity, whose backward pass fails above an edge."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, edge: float) -> torch.Tensor:
        ctx.fails = bool(x.max() > edge)
        return x.clone()

    @staticmethod
    def backward(ctx, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        if ctx.fails:
            raise FloatingPointError("the adjoint of a step did not converge")
        return gradient, None


def turned_back(group, edge: float) -> list:
    """Unknowns at the end, losses and failures of a search whose first whole step has no gradient above `edge`."""
    x = torch.tensor([0.0, 0.5], dtype=torch.float64, requires_grad=True)
    loss = lambda: (FailsAbove.apply(x, edge) - 3.0).square().sum()
    slsqp = methods.SciPy("SLSQP")
    history = wb.minimize(loss, wb.Unknown(x, scale=9.0), slsqp, iterations=60, progress=False, group=group)
    return [x.tolist(), history.loss, history.failures[-1]]


def robot() -> wb.Scene:
    """A bar on a sticky floor; a muscle contracts one of its halves, which moves the centre of mass."""
    right = wb.shapes.Box((0.15, 0.05), (0.2, 0.1))
    bar = wb.SoftBody("bar", wb.shapes.Box((0.1, 0.05), (0.2, 0.1)), wb.Material(1e4), {"right": right})
    return wb.Scene(
        [bar], [wb.actuators.Muscle("pull", "right", (1, 0), 1e3)], [wb.floor(0.05, dim=2)], domain=((0, 0), (0.3, 0.3)),
        task=wb.Task(0.025, 2e-3, 1, 20, (1.0, 0.0), clusters=2), name="bar",
    )  # fmt: skip


def worlds_of_a_robot(group, rank: int) -> list[float]:
    """Weights after three steps in a batch of four worlds, of which each process simulates two."""
    count = 4 if group is None else 2
    sim = wb.Simulation(robot(), wb.MPM(dx=0.025), dt=2e-3, substeps=1, worlds=count)
    gain = torch.linspace(0.5, 1.0, 4)[2 * rank : 2 * rank + count, None, None]
    signal = torch.full((6, 1), 0.2, requires_grad=True)
    loss = lambda: 1e4 * sim.rollout(gain * signal, 6).final.velocity.square().mean()
    wb.fit([signal], loss, lr=0.05, iterations=3, progress=False, group=group)
    return signal.flatten().tolist()


def noisy(folder: Path, rank: int, group, iterations: int, resume: bool) -> list[float]:
    """A loss with noise from the global generator of each process, stopped and resumed."""
    torch.manual_seed(rank)
    x = torch.ones(3, requires_grad=True)
    loss = lambda: (x * (1.0 + torch.randn(3))).square().sum()
    best = wb.fit([x], loss, lr=0.1, iterations=iterations, progress=False, group=group,
                  checkpoint=folder / "run.pt", resume=resume)  # fmt: skip
    return best.loss


def the_page_on_optimisation() -> list[float]:
    """Results of the example on the page, which starts the group of processes; or of the same in one process."""
    page = (Path(__file__).resolve().parents[1] / "docs" / "optimisation.md").read_text()
    problem, example = (part.split("```python\n")[1].split("```")[0] for part in page.split("## Several processes"))
    if "RANK" not in os.environ:
        example = re.sub(r"dist\.init_process_group.*|\.chunk\(.*", "", example).replace("dist.group.WORLD", "None")
    names: dict = {}
    bounded = "bounded = wb.Unknown(signal, -1.0, 1.0)\n"
    exec(compile(problem.split("def outcome")[0] + bounded + example, "optimisation.md", "exec"), names)
    return names["signal"].flatten().tolist()


def main(folder: Path) -> None:
    """Write a file of results for each process."""
    found = {"page": the_page_on_optimisation()}
    rank, group = dist.get_rank(), dist.group.WORLD
    file = folder / f"robot{rank}.usda"
    wb.usd.write(file, robot())
    train = lambda worlds: cli.main(
        ["train", str(file), "--worlds", str(worlds), "--iterations", "2", "--out", str(folder / "out")]
    )
    assert train(2) == 0  # a process that fails here must not leave the other one waiting
    refused = train(3)
    found |= {name: solve(name, DATA[2 * rank : 2 * rank + 2], group) for name in METHODS}
    found["refused"] = refused
    found["turned back"] = turned_back(group, (9.0, 3.1)[rank])
    found["robot"] = worlds_of_a_robot(group, rank)
    whole = noisy(folder, rank, group, 6, False)
    noisy(folder, rank, group, 3, False)
    found["resumed"] = whole, noisy(folder, rank, group, 6, True)
    calls: list[str] = []
    stop = lambda history: calls.append("callback") or len(history.loss) == 2
    found["stopped"] = len(solve("adam", DATA, group, callback=stop, on_best=lambda _: calls.append("best"))[1]), calls
    apart = torch.full((1,), float(rank), requires_grad=True)
    try:
        wb.fit([apart], lambda: apart.square().sum(), progress=False, group=group)
    except RuntimeError as fault:
        found["apart"] = str(fault)
    (folder / f"{rank}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
