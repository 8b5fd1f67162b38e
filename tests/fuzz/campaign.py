"""Random scenes and spoilt files by the thousand: ``python tests/fuzz/campaign.py build 0 10000 results.jsonl``.

``build`` builds scenes, ``step`` takes steps of valid and nearly valid ones with a gradient, ``gradient`` compares such
gradients with differences (``WARPBOTS_PRECISION=float64``), ``minimise`` solves small problems by every method, ``usd``
and ``mesh`` read spoilt files. Each line of the results has a seed, a verdict, a time and what was said. The last line
of a run that ended early has the seed at which the process died.
"""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import fuzz_files
import fuzz_optimize
import fuzz_scenes
import numpy as np
import torch
from verdict import verdict

from warpbots.scene import memory_limit
from warpbots.solvers import ProjectiveDynamics

MEMORY = 5e8
"""What scenes may take [bytes], so that those refused for it are refused within seconds."""


def described(seed: int, faults: int | None = None) -> fuzz_scenes.Part:
    """A description of a simulation with so many accidents; None for none to three."""
    draw = fuzz_scenes.Draw(seed)
    tree = draw.simulation()
    for _ in range(draw.rng.integers(4) if faults is None else faults):
        fuzz_scenes.spoil(draw.rng, tree)
    return tree


def build(seed: int) -> str | None:
    """Build a scene; None, for it is well."""
    described(seed)()


def moving(state: Any) -> tuple[list[str], list[str]]:
    """Names of the fields of a state that hold places, and of those that hold velocities."""
    return [n for n in ("position", "q") if hasattr(state, n)], [n for n in ("velocity", "qd") if hasattr(state, n)]


def step(seed: int) -> str | None:
    """Two control intervals of a scene with at most one accident, and the gradient to whatever there is."""
    sim = described(seed, faults=seed % 2)()
    if sim.substeps > 100:
        return None
    rng = np.random.default_rng(seed)
    rest = sim.state()
    places, rates = moving(rest)
    velocities = {n: getattr(rest, n).clone().requires_grad_() for n in rates}
    names = [n for n in sim.parameters() if sim.parameter(n).numel()]
    parameters = {n: sim.parameter(n).requires_grad_() for n in rng.permutation(names)[:3]}
    control = torch.as_tensor(rng.uniform(-1, 1, (sim.worlds, 2, sim.channels))).to(rest.time).requires_grad_()
    final = sim.rollout(control, 2, sim.state(**velocities), **parameters).final
    inputs = velocities | {"control": control} | parameters
    loss = sum(getattr(final, n).square().sum() for n in (*places, *rates))
    gradient = torch.autograd.grad(loss, list(inputs.values()), allow_unused=True)
    wild = [n for n, t in vars(final).items() if not torch.isfinite(t).all()]
    wild += [n for n, g in zip(inputs, gradient, strict=True) if g is not None and not torch.isfinite(g).all()]
    return f"not finite: {', '.join(wild)}" if wild else None


INTERVALS, EPSILON, AGREE = 2, (1e-4, 1e-5, 1e-6), 1e-4
"""Control intervals, relative changes of inputs for differences, and by how much these may differ from a gradient."""


def gradient(seed: int) -> str | None:
    """The gradient of a random loss of two control intervals of a valid scene, against differences along directions.

    Where the differences to the two sides of an input disagree by as much as the gradient is off, there is a kink.
    """
    tree = described(seed, faults=0)
    if tree.fields["solver"].make is ProjectiveDynamics:
        tree.fields["solver"].fields["tolerance"] = 1e-11  # differences of small effects see what is left of a step
    sim = tree()
    if sim.substeps > 100:
        return None
    rng = np.random.default_rng(seed)
    rest = sim.state()
    places, rates = moving(rest)
    names = [n for n in sim.parameters() if sim.parameter(n).numel()]
    at = {n: sim.parameter(n) for n in rng.permutation(names)[:3]}
    at |= {"control": torch.as_tensor(rng.uniform(-0.7, 0.7, (sim.worlds, INTERVALS, sim.channels)))}
    at |= {n: getattr(rest, n) + 0.01 * torch.as_tensor(rng.normal(size=getattr(rest, n).shape)) for n in rates}
    at = {n: t.to(getattr(rest, rates[0])) for n, t in at.items()}
    weights = {n: torch.as_tensor(rng.normal(size=getattr(rest, n).shape)) for n in (*places, *rates)}

    def loss(values: dict) -> torch.Tensor:
        parameters = {n: t for n, t in values.items() if n not in ("control", *rates)}
        start = sim.state(**{n: values[n] for n in rates})
        final = sim.rollout(values["control"], INTERVALS, start, **parameters).final
        moved = {n: getattr(final, n) - getattr(rest, n) for n in places} | {n: getattr(final, n) for n in rates}
        return sum((w * moved[n]).sum() for n, w in weights.items())

    inputs = {n: t.clone().requires_grad_() for n, t in at.items()}
    gradients = torch.autograd.grad(loss(inputs), list(inputs.values()), allow_unused=True)
    for (name, value), slope in zip(at.items(), gradients, strict=True):
        if not value.numel():
            continue
        size = torch.where(value == 0.0, 0.0 if name in sim.parameters() else 1.0, value.abs())
        direction = torch.as_tensor(rng.uniform(-1.0, 1.0, value.shape)) * size
        expected = 0.0 if slope is None else float((slope * direction).sum())
        with torch.no_grad():
            middle = float(loss(at))
            rows = []
            for e in EPSILON:
                ahead, back = (float(loss(at | {name: value + s * e * direction})) for s in (1.0, -1.0))
                rows.append(((ahead - back) / (2.0 * e), (ahead - middle) / e, (middle - back) / e))
        scale = max(abs(expected), abs(rows[0][0]), 1e-6 * abs(middle))
        off = min(abs(found - expected) for found, _, _ in rows)
        kinked = max(abs(ahead - back) for _, ahead, back in rows) > off
        if off > AGREE * scale and not kinked:
            return (
                f"gradient by {name}: {expected:.6g}, differences {', '.join(f'{found:.6g}' for found, _, _ in rows)}"
            )
    return None


def usd(seed: int) -> str | None:
    """Read a spoilt file."""
    with tempfile.TemporaryDirectory() as folder:
        fuzz_files.read(Path(folder), seed)


def mesh(seed: int) -> None:
    """Read a spoilt mesh."""
    with tempfile.TemporaryDirectory() as folder:
        fuzz_files.read_mesh(Path(folder), seed)


def minimise(seed: int) -> str | None:
    """Minimise by a random method."""
    with tempfile.TemporaryDirectory() as folder:
        return fuzz_optimize.minimise(seed, Path(folder))


KINDS = {"build": build, "step": step, "gradient": gradient, "minimise": minimise, "usd": usd, "mesh": mesh}


def main(kind: str, first: str, last: str, results: str) -> None:
    memory_limit.available_memory = lambda: MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (int(16 * MEMORY), int(16 * MEMORY)))
    with Path(results).open("a", buffering=1) as file:
        for seed in range(int(first), int(last)):
            file.write(f'{{"seed": {seed}}}\n')
            start = time.perf_counter()
            what, said = verdict(lambda: KINDS[kind](seed))  # noqa: B023 (called at once)
            spent = round(time.perf_counter() - start, 3)
            file.write(json.dumps({"seed": seed, "verdict": what, "seconds": spent, "said": said}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
