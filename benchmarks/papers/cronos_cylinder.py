"""Marchal's silicone cylinder (Cronos table 1): a clamped soft beam that bends under its weight, against its CT scan.

    python benchmarks/papers/cronos_cylinder.py DATA [--spacing S] [--lattice voxel|random]

DATA is the folder of SOFA's accuracy benchmark with ``truthCylinder-Deformed.obj`` (LGPL-2.1, not part of this
repository). Young's modulus is calibrated by gradient so that the tip matches the measured tip. The error is the mean
distance from the surface of the body, which moves with the lattice, to the scanned surface; the paper does not define
its error. Writes ``cronos_cylinder.png`` beside this file: both surfaces over each other, as in figure 6 of the paper,
and the distance all over the surface.
"""

import argparse
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.spatial import cKDTree

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fast import figures, sized

import warpbots as wb

if TYPE_CHECKING:
    import trimesh

LENGTH, RADIUS, DENSITY = 0.178, 0.019, 1070.0
TIP = np.array([0.000851, -0.119383, 0.126842])
"""Measured centre of the free end [m] (``cylinder_PhantomSolution.scn``)."""
SECONDS, INTERVAL = sized(3.0, 0.04), 0.02


def simulation(youngs_modulus: float, spacing: float, lattice: str) -> wb.Simulation:
    """Simulation of the cylinder along z, clamped at z = 0, with gravity along -y as in the scan."""
    shapes = wb.shapes
    root = shapes.Box((-1.0, -1.0, -1e-6), (1.0, 1.0, 1e-6 + (0.3 * spacing if lattice == "random" else 0.0)))
    body = wb.SoftBody(
        "cylinder", shapes.Cylinder((0.0, 0.0, 0.0), (0.0, 0.0, LENGTH), RADIUS),
        wb.Material(youngs_modulus, 0.25, DENSITY), regions={"root": root},
    )  # fmt: skip
    scene = wb.Scene([body], constraints=[wb.Constraint("root")], gravity=(0.0, -9.81, 0.0))
    solver = wb.MassSpring(spacing, lattice, drag=6.0)
    return wb.Simulation(scene, solver, INTERVAL, substeps=None)


def tip_of(sim: wb.Simulation, position: torch.Tensor) -> torch.Tensor:
    """Centre of the free end [m], shape (3,)."""
    x = sim.model.lattice.position
    end = x[:, 2] > x[:, 2].max() - 1e-6 - 0.3 * sim.solver.spacing * (sim.solver.lattice == "random")
    weight = torch.as_tensor(sim.model.lattice.mass * end)
    return (position[0].double() * weight[:, None]).sum(0) / weight.sum()


def at_rest(sim: wb.Simulation, scale: torch.Tensor) -> torch.Tensor:
    """Positions after the motion has decayed [m], shape (1, n, 3); differentiable.

    All stiffnesses are multiplied by `scale`.
    """
    stiffness = scale * sim.parameter("stiffness")
    return sim.rollout(None, round(SECONDS / INTERVAL), stiffness=stiffness).final.position


def calibrate(sim: wb.Simulation, iterations: int) -> float:
    """Stiffness factor that brings the tip nearest to the measured tip, by the Gauss–Newton method on its logarithm."""
    log = torch.zeros((), requires_grad=True)
    for _ in range(iterations):
        tip = tip_of(sim, at_rest(sim, log.exp()))
        jacobian = torch.stack([torch.autograd.grad(c, log, retain_graph=True)[0] for c in tip[1:]]).double()
        residual = tip[1:].detach() - torch.as_tensor(TIP[1:])
        step = -float(jacobian @ residual / (jacobian @ jacobian))
        print(
            f"  stiffness x {float(log.detach().exp()):.4f}: tip off by {1e3 * float(residual.norm()):.2f} mm",
            flush=True,
        )
        with torch.no_grad():
            log += max(-0.3, min(0.3, step))
    return float(log.detach().exp())


def moved_surface(rest: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Points of the lateral surface of the body, which moves with its matter [m], shape (120, 64, 3).

    A point of the surface moves with the affine map that best fits the matter around this point. The points are in 120
    sections along the axis, each with 64 points around the axis.

    Args:
        rest: Positions of points of matter at rest [m], shape (n, 3).
        position: Positions of the same points in the deformed body [m], shape (n, 3).
    """
    angle, z = np.meshgrid(np.linspace(0.0, 2.0 * np.pi, 64, endpoint=False), np.linspace(0.02, 1.0, 120) * LENGTH)
    surface = np.stack([RADIUS * np.cos(angle), RADIUS * np.sin(angle), z], axis=-1).reshape(-1, 3)
    near = cKDTree(rest).query(surface, k=16)[1]
    X = np.concatenate([rest[near] - surface[:, None], np.ones((*near.shape, 1))], axis=-1)
    return np.einsum("pij,pjk->pik", np.linalg.pinv(X), position[near])[:, 3].reshape(*z.shape, 3)


def surface_error(rest: np.ndarray, position: np.ndarray, scan: np.ndarray) -> float:
    """Mean distance from points all over the surface of the body (`moved_surface`) to points of the scan [m]."""
    return float(cKDTree(scan).query(moved_surface(rest, position).reshape(-1, 3))[0].mean())


def draw(surface: np.ndarray, mesh: "trimesh.Trimesh", scan: np.ndarray, title: str) -> None:
    """Draw the scan in white and the simulated surface in red over it, from two sides, and their distance.

    Args:
        surface: The simulated surface, as `moved_surface` returns it.
        mesh: The scanned surface.
        scan: Points all over the scanned surface [m], shape (n_points, 3).
        title: Text above the picture.
    """
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure

    sections, around, _ = surface.shape
    k, a = np.meshgrid(np.arange(sections - 1), np.arange(around), indexing="ij")
    corners = ((k, a), (k, (a + 1) % around), (k + 1, (a + 1) % around), (k + 1, a))
    quads = np.stack([surface[i, j] for i, j in corners], axis=2).reshape(-1, 4, 3)
    figure = Figure(figsize=(11.0, 4.2), dpi=110, layout="constrained")
    figure.suptitle(title, fontsize="medium")
    axes = figure.subplots(1, 3, width_ratios=(1.25, 0.7, 1.5))
    views = ("from the side", (2, 1), 0, -1.0), ("towards the clamp", (0, 1), 2, 1.0)
    for ax, (name, plane, depth, sign) in zip(axes, views, strict=False):
        ax.set_facecolor("0.55")
        for faces, color, alpha in ((mesh.vertices[mesh.faces], (1.0, 1.0, 1.0), 1.0), (quads, (0.85, 0.1, 0.1), 0.55)):
            normal = np.cross(faces[:, 1] - faces[:, 0], faces[:, 2] - faces[:, 0])
            normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-30)
            order = np.argsort(sign * faces[:, :, depth].mean(axis=1))
            order = order[sign * normal[order, depth] > 0.0]  # faces that are turned away are hidden
            light = np.clip(0.55 + 0.45 * sign * normal[order, depth], 0.0, 1.0)[:, None]
            shades = np.hstack([light * color, np.full_like(light, alpha)])
            ax.add_collection(PolyCollection(1e3 * faces[order][:, :, plane], facecolors=shades, edgecolors="none"))
        ax.autoscale_view()
        ax.set(aspect="equal", title=name, xlabel=f"{'xyz'[plane[0]]} [mm]", ylabel="y [mm]")
    away = 1e3 * cKDTree(scan).query(surface.reshape(-1, 3))[0].reshape(sections, around)
    image = axes[2].imshow(away.T, origin="lower", aspect="auto", extent=(0.02e3 * LENGTH, 1e3 * LENGTH, 0.0, 360.0))
    axes[2].set(title="distance from the scan", xlabel="along the axis at rest [mm]", ylabel="around it [degrees]")
    axes[2].set_yticks((0, 90, 180, 270, 360))
    figure.colorbar(image, ax=axes[2], label="[mm]")
    figure.savefig(figures(__file__) / "cronos_cylinder.png")


def main() -> None:
    """Calibrate, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--spacing", type=float, default=sized(4e-3, 9.5e-3), help="spacing of the lattice [m]")
    parser.add_argument("--lattice", default="voxel", choices=("voxel", "random"))
    parser.add_argument("--youngs-modulus", type=float, default=7.6e4, help="where the calibration starts [Pa]")
    parser.add_argument("--iterations", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    import trimesh

    mesh = trimesh.load(options.data / "truthCylinder-Deformed.obj", force="mesh")
    scan = trimesh.sample.sample_surface(mesh, sized(600_000, 1000), seed=0)[0]
    sim = simulation(options.youngs_modulus, options.spacing, options.lattice)
    made = sim.model.lattice
    print(f"{len(made)} masses, {len(made.ends)} springs, {sim.substeps} steps in {INTERVAL} s", flush=True)
    for name, scale in (("start", 1.0), ("calibrated", calibrate(sim, options.iterations))):
        with torch.no_grad():
            position = at_rest(sim, torch.tensor(scale))
        error = surface_error(made.position, position[0].numpy().astype(np.float64), scan)
        tip = np.linalg.norm(tip_of(sim, position).numpy() - TIP)
        E = scale * options.youngs_modulus / 1e3
        print(f"{name}: E {E:.1f} kPa, tip {1e3 * tip:.2f} mm, surface {1e3 * error:.2f} mm", flush=True)
    title = f"scan (white) and {len(made.ends)} springs (red), E = {E:.1f} kPa: mean distance {1e3 * error:.2f} mm"
    draw(moved_surface(made.position, position[0].double().numpy()), mesh, scan, title)


if __name__ == "__main__":
    main()
