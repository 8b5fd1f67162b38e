"""DiffPD's cantilever (Du et al. 2021): time of a frame forward and backward, compared with the published code.

    python benchmarks/papers/softbody_cantilever.py

A beam of 32 x 8 x 8 cm, E = 1 MPa, nu = 0.45, 1,000 kg/m^3, is fixed at one end, twisted by a quarter turn at the other
and released under gravity with a muscle along one edge: 10 frames of 10 ms. Cells of 2 cm have 425 nodes, or 1,275
degrees of freedom; DiffPD fills them with hexahedra of eight quadrature points each, warpbots with six tetrahedra. The
energy is corotated in both; DiffPD's volumetric term is lambda/2 |F - D|^2 with the nearest D of det D = 1.

DiffPD has converged when |grad Phi| <= 1e-4 |M (x + h v + h^2 f / M) / h^2| over all free nodes, with Phi of eq. 2 and
positions counted from the corner of the beam; its adjoint when the residual is below 1e-4 of the right-hand side. Here
the residual of every frame is computed independently in NumPy and divided by the same norm, and the largest tolerance
of `ProjectiveDynamics` with which all frames are below 1e-4 is timed. The adjoint has the same tolerance, for its
residual in the norm of A^-1; the deviation of the gradient from a gradient solved to 1e-10 is also printed. Single
precision uses the same tolerance, because the rounding of positions alone leaves a residual of 1e-4.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
sys.path.insert(0, str(HERE.parent))

from fast import sized  # noqa: E402

FRAMES, STEP, EDGE = sized(10, 2), 0.01, sized(0.02, 0.04)
E, NU, DENSITY = 1e6, 0.45, 1000.0
TOLERANCES = (1e-5, 5e-6, 2e-6, 1e-6, 5e-7, 2e-7)
"""Tolerances of a step [mean edges]."""
REPEATS = sized(9, 1)
DIFFPD = {"forward": 238.0, "both": 276.0}
"""The published code on one thread of this kind of machine, in double precision [ms a frame]; 157 and 194 on two."""


def simulation(tolerance: float):
    """The beam and its initial state."""
    import torch

    import warpbots as wb
    from warpbots.scene import Box, Constraint, HalfSpace, Material, Muscle, Scene, SoftBody

    regions = {"root": HalfSpace((1e-6, 0, 0), (1, 0, 0)), "edge": Box((0, 0, 0), (0.32, EDGE, EDGE))}
    beam = SoftBody("beam", Box((0, 0, 0), (0.32, 0.08, 0.08)), Material(E, NU, DENSITY, "corotated"), regions=regions)
    scene = Scene((beam,), (Muscle("muscle", "edge", (1, 0, 0), 1e5),), constraints=(Constraint("root"),))
    solver = wb.ProjectiveDynamics(EDGE, tolerance=tolerance, collisions=False)
    sim = wb.Simulation(scene, solver, STEP, checkpoints=wb.Checkpoints.all())
    rest = sim.state().position
    angle = 0.5 * torch.pi * rest[..., 0] / 0.32
    y, z = rest[..., 1] - 0.04, rest[..., 2] - 0.04
    turned = (rest[..., 0], 0.04 + angle.cos() * y - angle.sin() * z, 0.04 + angle.sin() * y + angle.cos() * z)
    return sim, torch.stack(turned, dim=-1)


def rolled(sim, inputs: dict):
    """Simulate ten frames from the given inputs."""
    state = sim.state(position=inputs["position"], velocity=inputs["velocity"])
    return sim.rollout(inputs["control"], FRAMES, state, load=inputs["load"])


def inputs_of(sim, start) -> dict:
    """The variables of DiffPD's gradient: initial state, actuation and forces."""
    import torch

    values = {"position": start, "velocity": 0.0 * start, "load": sim.parameter("load")}
    values["control"] = torch.full((1, FRAMES, sim.channels), 0.5, dtype=start.dtype)
    return {name: v.clone().requires_grad_() for name, v in values.items()}


def residual(sim, x: np.ndarray, v: np.ndarray, end: np.ndarray) -> float:
    """|grad Phi| / |M (x + h v + h^2 g) / h^2| at the end of a frame, over free nodes, independently in NumPy."""
    mesh = sim.model.matter
    tets, rest, free = mesh.tets, mesh.position, mesh.position[:, 0] > 1e-6
    edges = np.swapaxes(rest[tets[:, 1:]] - rest[tets[:, :1]], 1, 2)
    volume, inverse = np.linalg.det(edges) / 6.0, np.linalg.inv(edges)
    F = np.swapaxes(end[tets[:, 1:]] - end[tets[:, :1]], 1, 2) @ inverse
    U, _, Vt = np.linalg.svd(F)
    U[:, :, 2] *= np.linalg.det(U @ Vt)[:, None]
    R = U @ Vt
    mu, lam = E / (2 * (1 + NU)), E * NU / ((1 + NU) * (1 - 2 * NU))
    P = 2 * mu * (F - R) + lam * (np.einsum("eij,eij->e", R, F) - 3.0)[:, None, None] * R
    muscle = mesh.element_regions["edge"][mesh.of("tets")]
    P[muscle, :, 0] += 0.5 * 1e5 * F[muscle, :, 0]
    slope = volume[:, None, None] * P @ np.swapaxes(inverse, 1, 2)
    force = np.zeros_like(rest)
    for k in range(3):
        np.add.at(force, tets[:, k + 1], -slope[:, :, k])
        np.add.at(force, tets[:, 0], slope[:, :, k])
    mass = np.bincount(tets.reshape(-1), np.repeat(DENSITY * volume / 4.0, 4), len(rest))[:, None] / STEP**2
    target = x + STEP * v + STEP**2 * np.array(sim.scene.gravity)
    return np.linalg.norm((mass * (end - target) - force)[free]) / np.linalg.norm((mass * target)[free])


def largest_residual(sim, start) -> float:
    """Largest relative residual of all frames."""
    trajectory = rolled(sim, {n: v.detach() for n, v in inputs_of(sim, start).items()})
    states = [state for _, state in trajectory.states()]
    worst = 0.0
    for before, after in zip(states[:-1], states[1:], strict=True):
        x, v, end = (t[0].double().numpy() for t in (before.position, before.velocity, after.position))
        worst = max(worst, residual(sim, x, v, end))
    return worst


def gradient(sim, start) -> tuple[dict, float, float]:
    """Gradients of a random linear loss, and the times of a frame forward and backward [ms]."""
    import torch

    inputs = inputs_of(sim, start)
    weights = torch.as_tensor(np.random.default_rng(0).normal(size=(2, *start.shape)), dtype=start.dtype)
    begin = time.perf_counter()
    final = rolled(sim, inputs).final
    middle = time.perf_counter()
    ((weights[0] * final.position).sum() + (weights[1] * final.velocity).sum()).backward()
    end = time.perf_counter()
    slopes = {name: v.grad.double().reshape(-1).tolist() for name, v in inputs.items()}
    return slopes, 1e3 * (middle - begin) / FRAMES, 1e3 * (end - middle) / FRAMES


def measure(tolerances: tuple[float, ...]) -> dict:
    """Measure all numbers in the precision of this process, with the first tolerance that suffices, or the last."""
    import torch
    import warp as wp

    wp.config.log_level = wp.LOG_WARNING
    torch.set_num_threads(1)
    for tolerance in tolerances:
        sim, start = simulation(tolerance)
        worst = largest_residual(sim, start)
        if worst <= 1e-4:
            break
    for _ in range(2):  # the first compiles, the second captures
        gradient(sim, start)
    slopes, forward, backward = zip(*(gradient(sim, start) for _ in range(REPEATS)), strict=True)
    row = {"tolerance": tolerance, "residual": worst, "slopes": slopes[0]}
    row |= {"forward": statistics.median(forward), "backward": statistics.median(backward)}
    if start.dtype == torch.float64:
        row["exact"] = gradient(*simulation(1e-10))[0]
    return row


def child(precision: str, tolerances: tuple[float, ...]) -> dict:
    """Call `measure` in a separate process, on one thread."""
    environment = os.environ | {"WARPBOTS_PRECISION": precision, "OMP_NUM_THREADS": "1"}
    words = [sys.executable, __file__, *map(str, tolerances)]
    out = subprocess.run(words, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out.strip().splitlines()[-1])


def main() -> None:
    """Measure in both precisions and print."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(tuple(map(float, sys.argv[1:])))))
        return
    print("precision tolerance residual gradient off by | forward backward  both [ms a frame] backward/forward")
    double = child("float64", TOLERANCES)
    for precision, row in (("float64", double), ("float32", child("float32", (double["tolerance"],)))):
        exact = double["exact"].items()
        off = max(np.linalg.norm(np.subtract(row["slopes"][n], g)) / np.linalg.norm(g) for n, g in exact)
        f, b = row["forward"], row["backward"]
        print(
            f"{precision:>9} {row['tolerance']:9g} {row['residual']:8.1e} {off:15.1e} | {f:7.2f} {b:8.2f} {f + b:5.2f} "
            f"{b / f:29.2f}   DiffPD takes {DIFFPD['forward'] / f:.1f} and {DIFFPD['both'] / (f + b):.1f} times as long"
        )


if __name__ == "__main__":
    main()
