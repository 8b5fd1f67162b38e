"""Marchal's silicone cylinder at its Poisson's ratio of 0.49: tetrahedra and hexahedra, against its CT scan.

    python benchmarks/papers/marchal_cylinder.py DATA [--cells N ...] [--elements NAME ...] [--law corotated]

DATA is the folder of SOFA's accuracy benchmark with ``truthCylinder-Deformed.obj`` (LGPL-2.1, not part of this
repository). Young's modulus is identified from the measured tip, by differences of equilibria. The error is the same as
in ``cronos_cylinder.py``: the mean distance between the surface of the body and the scanned surface. Hexahedra are the
cells of a bar with a square section, whose nodes are moved so that the section becomes a disc.
"""

import os

os.environ.setdefault("WARPBOTS_PRECISION", "float64")  # near a Poisson's ratio of 1/2 steps need all its digits

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from cronos_cylinder import DENSITY, LENGTH, RADIUS, TIP, sized, surface_error, wb

POISSONS_RATIO = 0.49
ELEMENTS = ("tetrahedra", "quadratic_tetrahedra", "hexahedra")
LAWS = ("neo_hookean", "corotated")


def disc(points: torch.Tensor) -> torch.Tensor:
    """Map a bar along z with the section [-R, R]^2 to the cylinder of radius R (Nowell's map of a square to a disc)."""
    x, y, z = points.unbind(1)
    return torch.stack([x * (1.0 - 0.5 * (y / RADIUS) ** 2).sqrt(), y * (1.0 - 0.5 * (x / RADIUS) ** 2).sqrt(), z], 1)


def simulation(elements: str, cells: int, law: str) -> wb.Simulation:
    """Simulation of the cylinder along z with `cells` over its diameter, clamped at z = 0, with gravity along -y.

    Hexahedra fill the bar that `disc` maps to the cylinder.
    """
    root = wb.shapes.HalfSpace((0.0, 0.0, 1e-6), (0.0, 0.0, 1.0))
    tip = wb.shapes.HalfSpace((0.0, 0.0, LENGTH - 1e-6), (0.0, 0.0, -1.0))
    material = wb.Material(7.9e4, POISSONS_RATIO, DENSITY, law=law)
    shape = wb.shapes.Cylinder((0.0, 0.0, 0.0), (0.0, 0.0, LENGTH), RADIUS)
    if elements == "hexahedra":
        shape = wb.shapes.Box((-RADIUS, -RADIUS, 0.0), (RADIUS, RADIUS, LENGTH))
    body = wb.SoftBody("cylinder", shape, material, regions={"root": root, "tip": tip})
    scene = wb.Scene([body], constraints=[wb.Constraint("root")], gravity=(0.0, -9.81, 0.0))
    solver = wb.ProjectiveDynamics(2.0 * RADIUS / cells, tolerance=1e-6, collisions=False, elements=elements)
    return wb.Simulation(scene, solver, 0.1)


def identified(sim: wb.Simulation, youngs_modulus: float, iterations: int) -> tuple[float, np.ndarray, np.ndarray]:
    """Identify Young's modulus by the Gauss-Newton method on its logarithm.

    Returns the modulus [Pa] that brings the tip nearest to the measured tip, and the positions of the nodes of the
    undeformed body and in equilibrium under gravity [m], each of shape (n, 3).
    """
    end = sim.region("tip").numpy()
    start, shape = sim.state(), {}
    if sim.solver.elements == "hexahedra":
        start, shape = wb.morphology.shaped(sim, disc)

    def at_rest(youngs_modulus: float, near: np.ndarray | None = None) -> np.ndarray:
        E = torch.full_like(sim.parameter("youngs_modulus"), youngs_modulus)
        state = start if near is None else sim.state(position=torch.as_tensor(near)[None])
        with torch.no_grad():
            found = sim.equilibrium(None, state, dt=0.05, tolerance=1e-4, youngs_modulus=E, **shape)
        return found.position[0].double().numpy()

    def tip(x: np.ndarray) -> np.ndarray:
        return x[end].mean(axis=0)[1:]

    E, x = youngs_modulus, at_rest(youngs_modulus)
    for _ in range(iterations):
        slope = (tip(at_rest(1.02 * E, x)) - tip(x)) / np.log(1.02)
        E *= float(np.exp(-slope @ (tip(x) - TIP[1:]) / (slope @ slope)))
        x = at_rest(E, x)
    return E, start.position[0].double().numpy(), x


def main() -> None:
    """Identify, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--cells", type=int, nargs="+", default=sized([2, 3, 4], [2]), help="cells over the diameter")
    parser.add_argument("--elements", nargs="+", default=ELEMENTS, choices=ELEMENTS)
    parser.add_argument("--law", default=LAWS[0], choices=LAWS)
    parser.add_argument("--iterations", type=int, default=sized(2, 1))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    import trimesh

    scan = trimesh.load(options.data / "truthCylinder-Deformed.obj", force="mesh")
    scan = trimesh.sample.sample_surface(scan, sized(600_000, 1000), seed=0)[0]
    for cells in options.cells:
        for elements in options.elements:
            begin = time.process_time()
            sim = simulation(elements, cells, options.law)
            E, rest, x = identified(sim, 7.9e4, options.iterations)
            error = surface_error(rest, x, scan)
            tip = np.linalg.norm(x[sim.region("tip").numpy()].mean(axis=0) - TIP)
            print(
                f"{sim.model.summary()}: E {E / 1e3:.1f} kPa, tip {1e3 * tip:.2f} mm, surface {1e3 * error:.2f} mm, "
                f"{time.process_time() - begin:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
