"""Random scenes and spoilt files by the thousand: ``python tests/fuzz/campaign.py build 0 10000 results.jsonl``.

``build`` builds scenes, ``step`` takes steps of valid and nearly valid ones with a gradient, ``usd`` and ``mesh`` read
spoilt files. Each line of the results has a seed, a verdict, a time and what was said. The last line of a run that ended early
has the seed at which the process died.
"""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import fuzz_files
import fuzz_scenes
import numpy as np
import torch
from verdict import verdict

from warpbots.scene import memory_limit

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


def step(seed: int) -> str | None:
    """Two control intervals of a scene with at most one accident, and the gradient to whatever there is."""
    sim = described(seed, faults=seed % 2)()
    if sim.substeps > 100:
        return None
    rng = np.random.default_rng(seed)
    rest = sim.state()
    place, rate = ("q", "qd") if sim.model.matter is None else ("position", "velocity")
    velocity = getattr(rest, rate).clone().requires_grad_()
    names = [n for n in sim.parameters() if sim.parameter(n).numel()]
    parameters = {n: sim.parameter(n).requires_grad_() for n in rng.permutation(names)[:3]}
    control = torch.as_tensor(rng.uniform(-1, 1, (sim.worlds, 2, sim.channels))).to(velocity).requires_grad_()
    final = sim.rollout(control, 2, sim.state(**{rate: velocity}), **parameters).final
    inputs = [velocity, control, *parameters.values()]
    loss = getattr(final, place).square().sum() + getattr(final, rate).square().sum()
    gradient = torch.autograd.grad(loss, inputs, allow_unused=True)
    wild = [n for n, t in vars(final).items() if not torch.isfinite(t).all()]
    wild += [n for n, g in zip(("velocity", "control", *parameters), gradient, strict=True)
             if g is not None and not torch.isfinite(g).all()]  # fmt: skip
    return f"not finite: {', '.join(wild)}" if wild else None


def usd(seed: int) -> str | None:
    """Read a spoilt file."""
    with tempfile.TemporaryDirectory() as folder:
        fuzz_files.read(Path(folder), seed)


def mesh(seed: int) -> None:
    """Read a spoilt mesh."""
    with tempfile.TemporaryDirectory() as folder:
        fuzz_files.read_mesh(Path(folder), seed)


KINDS = {"build": build, "step": step, "usd": usd, "mesh": mesh}


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
