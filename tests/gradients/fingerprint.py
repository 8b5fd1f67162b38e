"""One rollout and its gradient, the same in every process: ``python fingerprint.py OUT.npz [--verify-array-access]``.

Fifty steps of a block with every actuator that bounces on a floor with friction, in 3D, from inputs that are float32
numbers in either precision. `in_fresh_process` runs it elsewhere.
"""

import os
import pathlib
import subprocess
import sys

import numpy as np

INTERVALS, SUBSTEPS = 10, 5


def compute() -> dict[str, np.ndarray]:
    """Final state by field name, and gradients of a weighted sum of it by ``d_`` and input name."""
    import torch
    from cases import SOLVERS, busy, end_of, stirred, to_numpy

    from warpbots.gradients import Checkpoints
    from warpbots.simulation import Simulation

    solver = next(iter(SOLVERS.values()))(1 / 8)
    sim = Simulation(busy(3), solver, 1e-2, SUBSTEPS, worlds=2, checkpoints=Checkpoints.every(4))
    inputs = stirred(sim, np.random.default_rng(5), INTERVALS)
    inputs = {n: t.float().to(t.dtype).requires_grad_() for n, t in inputs.items()}
    final = vars(end_of(sim, inputs))
    rng = np.random.default_rng(6)
    loss = sum((torch.as_tensor(rng.normal(size=t.shape)).to(t) * t).sum() for t in final.values())
    gradients = torch.autograd.grad(loss, list(inputs.values()))
    found = {n: to_numpy(t) for n, t in final.items()}
    return found | {f"d_{n}": to_numpy(g) for n, g in zip(inputs, gradients, strict=True)}


def in_fresh_process(folder: pathlib.Path, precision: str, *options: str) -> dict[str, np.ndarray]:
    """`compute` in a process of its own, on the same device and with warnings as errors."""
    import warp as wp

    target = folder / f"{precision}.npz"
    path = os.pathsep.join([*sys.path, str(pathlib.Path(__file__).parents[1])])
    environment = os.environ | {"WARPBOTS_PRECISION": precision, "PYTHONPATH": path, "PYTHONWARNINGS": ""}
    device = str(wp.get_device())
    command = [sys.executable, __file__, str(target), device, *options]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    expected = ("CUDA driver", "first run of kernels", "... took")
    noise = [line for line in run.stderr.splitlines() if not any(words in line for words in expected)]
    assert not noise, "\n".join(noise)
    with np.load(target) as file:
        return dict(file)


if __name__ == "__main__":
    import warnings

    import warp as wp

    wp.config.log_level = wp.LOG_WARNING
    wp.config.verify_autograd_array_access = "--verify-array-access" in sys.argv
    wp.set_device(sys.argv[2])
    warnings.simplefilter("error")
    np.savez(sys.argv[1], **compute())
    warnings.simplefilter("ignore")  # Warp leaves a temporary folder for the interpreter's end to clear
