"""Marchal's silicone cylinder at its Poisson's ratio of 0.49: linear and quadratic tetrahedra, against its CT scan.

    python benchmarks/papers/marchal_cylinder.py DATA [--cells N ...]

DATA is the folder of SOFA's accuracy benchmark with ``truthCylinder-Deformed.obj`` (LGPL-2.1, not part of this
repository). Young's modulus is identified from the measured tip, by differences of equilibria. The error is the same as
in ``cronos_cylinder.py``: the mean distance between the surface of the body and the scanned surface.
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
ELEMENTS = ("tetrahedra", "quadratic_tetrahedra")


def simulation(elements: str, cells: int) -> wb.Simulation:
    """Simulation of the cylinder along z with `cells` over its diameter, clamped at z = 0, with gravity along -y."""
    root = wb.shapes.HalfSpace((0.0, 0.0, 1e-6), (0.0, 0.0, 1.0))
    tip = wb.shapes.HalfSpace((0.0, 0.0, LENGTH - 1e-6), (0.0, 0.0, -1.0))
    material = wb.Material(7.9e4, POISSONS_RATIO, DENSITY, law="neo_hookean")
    shape = wb.shapes.Cylinder((0.0, 0.0, 0.0), (0.0, 0.0, LENGTH), RADIUS)
    body = wb.SoftBody("cylinder", shape, material, regions={"root": root, "tip": tip})
    scene = wb.Scene([body], constraints=[wb.Constraint("root")], gravity=(0.0, -9.81, 0.0))
    solver = wb.ProjectiveDynamics(2.0 * RADIUS / cells, tolerance=1e-6, collisions=False, elements=elements)
    return wb.Simulation(scene, solver, 0.1)


def at_rest(sim: wb.Simulation, youngs_modulus: float, near: np.ndarray | None = None) -> np.ndarray:
    """Positions of the nodes in equilibrium under gravity [m], shape (n, 3).

    The search starts from the positions `near`, or from the undeformed positions if `near` is None.
    """
    E = torch.full_like(sim.parameter("youngs_modulus"), youngs_modulus)
    state = sim.state() if near is None else sim.state(position=torch.as_tensor(near)[None])
    with torch.no_grad():
        return sim.equilibrium(None, state, dt=0.05, tolerance=1e-4, youngs_modulus=E).position[0].double().numpy()


def identified(sim: wb.Simulation, youngs_modulus: float, iterations: int) -> tuple[float, np.ndarray]:
    """Young's modulus [Pa] that brings the tip nearest to the measured tip, and the positions of the nodes [m].

    The method is the Gauss-Newton method on the logarithm of the modulus.
    """
    end = sim.region("tip").numpy()

    def tip(x: np.ndarray) -> np.ndarray:
        return x[end].mean(axis=0)[1:]

    E, x = youngs_modulus, at_rest(sim, youngs_modulus)
    for _ in range(iterations):
        slope = (tip(at_rest(sim, 1.02 * E, x)) - tip(x)) / np.log(1.02)
        E *= float(np.exp(-slope @ (tip(x) - TIP[1:]) / (slope @ slope)))
        x = at_rest(sim, E, x)
    return E, x


def main() -> None:
    """Identify, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--cells", type=int, nargs="+", default=sized([2, 3, 4], [2]), help="cells over the diameter")
    parser.add_argument("--iterations", type=int, default=sized(2, 1))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    import trimesh

    scan = trimesh.load(options.data / "truthCylinder-Deformed.obj", force="mesh")
    scan = trimesh.sample.sample_surface(scan, sized(600_000, 1000), seed=0)[0]
    for cells in options.cells:
        for elements in ELEMENTS:
            begin = time.process_time()
            sim = simulation(elements, cells)
            E, x = identified(sim, 7.9e4, options.iterations)
            error = surface_error(sim.model.matter.position, x, scan)
            tip = np.linalg.norm(x[sim.region("tip").numpy()].mean(axis=0) - TIP)
            print(
                f"{sim.model.summary()}: E {E / 1e3:.1f} kPa, tip {1e3 * tip:.2f} mm, surface {1e3 * error:.2f} mm, "
                f"{time.process_time() - begin:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
