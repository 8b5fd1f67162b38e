"""Random problems for every method of `minimize`, with up to two accidents in unknowns, losses, settings or methods."""

import math
from pathlib import Path

import numpy as np
import torch

import warpbots as wb

methods = wb.methods
QUADRATIC = np.array([0.3, -0.2])
"""Where the loss of a problem without accidents is smallest."""

METHODS = {
    "Adam": (methods.Torch, {"lr": 0.1}),
    "SGD": (methods.Torch, {"optimizer": torch.optim.SGD, "lr": 0.1, "max_norm": 1.0}),
    "LBFGS": (methods.Torch, {"optimizer": torch.optim.LBFGS, "lr": 0.5, "max_iter": 4}),
    "Lagrangian": (methods.Torch, {"lr": 0.1, "constraints": methods.AugmentedLagrangian(every=3)}),
    "smoothed": (methods.Torch, {"lr": 0.1, "smoothing": methods.Smoothing(0.1, samples=2)}),
    "L-BFGS-B": (methods.SciPy, {"name": "L-BFGS-B"}),
    "SLSQP": (methods.SciPy, {"name": "SLSQP"}),
    "trust-constr": (methods.SciPy, {"name": "trust-constr"}),
    "CMA": (methods.CMA, {"step": 0.3, "population": 4}),
    "starts": (methods.MultiStart, {"method": methods.SciPy("L-BFGS-B"), "starts": 2}),
    "batched": (methods.BatchedStarts, {"method": methods.Torch(lr=0.1), "starts": 2}),
}

ODD = (
    None,
    math.nan,
    math.inf,
    -math.inf,
    0,
    -1,
    -0.5,
    2.5,
    True,
    "a",
    [],
    (),
    {},
    b"x",
    1e308,
    1e-308,
    object(),
    1 + 2j,
)

SETTINGS = {
    "iterations": ODD[1:8] + ODD[9:14], "episodes": ODD[1:8] + ODD[9:14], "window": ODD[:8] + ODD[9:14],
    "allowed_violation": ODD, "progress": (None, "a", 3), "callback": ("a", 3, []), "on_best": ("a", 3, []),
    "log": ("a", 3, object(), [3]), "checkpoint": (3, "", "missing/run.pt", "."), "resume": (True, "a", None),
    "about": (3, "a", {"x": object()}, {3: 4}), "group": ("a", 3),
}  # fmt: skip
UNKNOWNS = {
    "lower": (*ODD[1:3], 1.0, "a", [], torch.zeros(3), torch.full((2,), math.nan), -torch.ones(2)),
    "upper": (*ODD[1:3], -1.0, "a", [], torch.zeros(3), torch.full((2,), math.nan), torch.ones(2)),
    "scale": (*ODD, torch.zeros(2), torch.tensor([1.0, -1.0]), torch.full((2,), 1e30)),
}
TENSORS = {
    "not a number": lambda: torch.tensor([math.nan, 0.0]).requires_grad_(),
    "infinite": lambda: torch.tensor([math.inf, 0.0]).requires_grad_(),
    "integers": lambda: torch.zeros(2, dtype=torch.long),
    "complex": lambda: torch.zeros(2, dtype=torch.complex64).requires_grad_(),
    "half": lambda: torch.zeros(2, dtype=torch.float16).requires_grad_(),
    "no gradient": lambda: torch.zeros(2),
    "computed": lambda: torch.zeros(2, requires_grad=True) + 0.0,
    "without numbers": lambda: torch.zeros(0).requires_grad_(),
    "large": lambda: torch.full((2,), 1e30).requires_grad_(),
    "array": lambda: np.zeros(2),
    "list": lambda: [0.0, 0.0],
}
LOSSES = (
    "none", "number", "string", "vector", "nan", "later nan", "infinite", "detached", "no path", "integer", "fails",
    "fails later", "wild gradient", "constraint nan", "constraint list", "constraint changes", "constraint detached",
    "constraint empty", "constraint", "equality", "complex", "half", "constant",
)  # fmt: skip


class Wild(torch.autograd.Function):
    """A number whose gradient is infinite."""

    @staticmethod
    def forward(ctx, value):
        return value.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * math.inf


def losses(kind: str, x: torch.Tensor):
    """A quadratic, and what accidents make of it."""
    calls = [0]

    def loss():
        calls[0] += 1
        later = calls[0] > 2
        value = (x - torch.as_tensor(QUADRATIC).to(x)).square().sum(dim=-1)
        bound = x[..., 0] - 0.1
        answers = {
            "none": None, "number": value.sum().item(), "string": "a", "vector": x, "nan": value * math.nan,
            "later nan": value * math.nan if later else value, "infinite": value * math.inf,
            "detached": value.detach(), "no path": torch.ones(()), "integer": value.long(),
            "wild gradient": Wild.apply(value), "complex": value.to(torch.complex64), "half": value.half(),
            "constant": 0.0 * value,
            "constraint nan": wb.Outcome(value, inequality={"left": bound * math.nan}),
            "constraint list": wb.Outcome(value, inequality={"left": [0.1]}),
            "constraint changes": wb.Outcome(value, inequality={"left": bound.repeat(calls[0])}),
            "constraint detached": wb.Outcome(value, inequality={"left": bound.detach()}),
            "constraint empty": wb.Outcome(value, inequality={"left": bound.reshape(-1)[:0]}),
            "constraint": wb.Outcome(value, inequality={"left": bound}),
            "equality": wb.Outcome(value, equality={"on": bound}),
        }  # fmt: skip
        if kind == "fails" or (kind == "fails later" and later):
            raise wb.SimulationError("step 3 did not converge")
        return answers.get(kind, value)

    return loss


def minimise(seed: int, folder: Path) -> str | None:
    """Minimise; None, or what is wrong with unknowns or history at the end."""
    rng = np.random.default_rng(seed)

    def one(options):
        options = list(options)
        return options[rng.integers(len(options))]

    torch.manual_seed(seed)
    make, options = METHODS[one(METHODS)]
    options, shape = dict(options), ((2, 2) if make is methods.BatchedStarts else (2,))
    tensor = torch.zeros(shape, dtype=one((torch.float32, torch.float64))).requires_grad_()
    fields, kind = {"lower": -1.0, "upper": 1.0, "scale": 0.5}, "well"
    settings = {"iterations": 6, "progress": False}
    if rng.random() < 0.3:
        settings["checkpoint"] = folder / "run.pt"
    for _ in range(rng.integers(3)):
        where = rng.integers(5)
        if where == 0:
            name = one(SETTINGS)
            odd = one(SETTINGS[name])
            settings[name] = folder / odd if name == "checkpoint" and isinstance(odd, str) else odd
        elif where == 1:
            name = one(UNKNOWNS)
            fields[name] = one(UNKNOWNS[name])
        elif where == 2:
            tensor = TENSORS[one(TENSORS)]()
        elif where == 3:
            kind = one(LOSSES)
        else:
            options[one([*options, "seed", "other"])] = one(ODD)
    as_loss = tensor if isinstance(tensor, torch.Tensor) else torch.zeros(2)
    history = wb.minimize(losses(kind, as_loss), wb.Unknown(tensor, **fields), make(**options), **settings)
    if not torch.isfinite(tensor).all():
        return f"unknowns are {tensor.tolist()}"
    for name, beyond in (("lower", torch.lt), ("upper", torch.gt)):
        if fields[name] is not None and beyond(tensor, torch.as_tensor(fields[name]).to(tensor)).any():
            return f"unknowns are {tensor.tolist()}, beyond their {name} bound {fields[name]}"
    if history.loss and not math.isfinite(history.loss[history.best]):
        return f"the best loss is {history.loss[history.best]}"
    if not history.reason:
        return "nobody says why it ended"
    return None
