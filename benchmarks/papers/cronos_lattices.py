"""Cronos figure 4: lattices of masses and springs in the surface of a femur, voxel and random, in two resolutions each.

    python benchmarks/papers/cronos_lattices.py [--seed N]

The paper takes a scanned femur; this one is made by code, of the usual dimensions: a bowed shaft, head, neck, greater
trochanter and two condyles, joined and smoothed, and written to an STL file, from which `wb.shapes.load_mesh` reads it.
All four lattices have the mass of the bone. They are compared by their lowest frequencies with the condyles clamped.
Writes ``cronos_lattices.png`` beside this file.
"""

import argparse
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fast import figures, sized

import warpbots as wb
from warpbots.contact import sampled_surface
from warpbots.solvers.mass_spring import MassSpringModel, natural_modes

BONE = wb.Material(15e9, 0.25, 1900.0)
"""Solid bone; a lattice has a Poisson's ratio of 1/4."""
PARTS = (
    ((-0.020, 0.000, 0.024), (-0.020, -0.012, 0.024), 0.024),  # condyles
    ((0.020, 0.000, 0.024), (0.020, -0.012, 0.024), 0.024),
    ((0.000, 0.000, 0.030), (0.000, 0.004, 0.070), 0.021),
    ((0.000, 0.004, 0.070), (0.006, 0.014, 0.230), 0.014),  # the shaft is bowed forwards
    ((0.006, 0.014, 0.230), (0.012, 0.002, 0.370), 0.014),
    ((0.012, 0.002, 0.370), (0.016, 0.000, 0.405), 0.018),  # greater trochanter
    ((0.012, 0.002, 0.380), (-0.038, 0.000, 0.420), 0.015),  # neck
    ((-0.040, 0.000, 0.420), (-0.039, 0.000, 0.421), 0.023),  # head
)
"""Ends [m] and radius [m] of the capsules of which the bone is made."""
CLAMPED = 0.03
"""Height up to which the condyles are clamped [m]."""
SPACINGS = sized((8e-3, 5e-3), (14e-3, 12e-3))
LATTICES = ("voxel", "random")


def femur(cell: float) -> wb.shapes.TriangleMesh:
    """The bone along z, 0.44 m long; its surface is sampled in cells of the given size [m]."""
    import trimesh

    union = wb.shapes.Union([wb.shapes.Capsule(*part) for part in PARTS])
    mesh = trimesh.Trimesh(*sampled_surface(union, *union.bounds, cell))
    trimesh.smoothing.filter_taubin(mesh, iterations=10)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "femur.stl"
        mesh.export(file)
        return wb.shapes.load_mesh(file)


def lattice(bone: wb.shapes.TriangleMesh, kind: str, spacing: float, seed: int) -> MassSpringModel:
    """A lattice in the bone, clamped at its condyles."""
    low, high = bone.bounds
    held = wb.shapes.Box((*(low[:2] - 0.01), low[2] - 0.01), (*(high[:2] + 0.01), CLAMPED))
    body = wb.SoftBody("femur", bone, BONE, {"condyles": held})
    scene = wb.Scene([body], constraints=[wb.Constraint("condyles")], gravity=(0.0, 0.0, 0.0))
    return wb.MassSpring(spacing, kind, seed=seed).build(scene)


def draw(bone: wb.shapes.TriangleMesh, made: dict[str, MassSpringModel]) -> None:
    """Draw the surface and the springs of all lattices, seen from the front; springs farther back are paler."""
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 7.5), dpi=110, layout="constrained")
    axes = figure.subplots(1, 1 + len(made), sharey=True)
    faces = bone.vertices[bone.faces]
    normal = np.cross(faces[:, 1] - faces[:, 0], faces[:, 2] - faces[:, 0])
    light = -normal[:, 1] / np.linalg.norm(normal, axis=1)
    seen = np.flatnonzero(light > 0.0)
    seen = seen[np.argsort(-faces[seen, :, 1].mean(axis=1))]
    shade = np.clip(0.35 + 0.6 * light[seen], 0.0, 1.0)[:, None] * (1.0, 0.97, 0.9)
    axes[0].add_collection(PolyCollection(1e3 * faces[seen][:, :, [0, 2]], facecolors=shade, edgecolors=shade))
    axes[0].set_title(f"surface\n{len(faces)} triangles", fontsize="medium")
    for ax, (name, model) in zip(axes[1:], made.items(), strict=True):
        ends = model.lattice.position[model.lattice.ends]
        order = np.argsort(-ends[:, :, 1].mean(axis=1))
        depth = np.interp(ends[order, :, 1].mean(axis=1), (-0.03, 0.03), (0.0, 0.75))[:, None]
        color = depth + (1.0 - depth) * (0.12, 0.3, 0.55)
        ax.add_collection(LineCollection(1e3 * ends[order][:, :, [0, 2]], colors=color, linewidths=0.4))
        ax.set_title(f"{name}\n{len(model.lattice)} masses, {len(ends)} springs", fontsize="medium")
    for ax in axes:
        ax.autoscale_view()
        ax.set(aspect="equal", xlabel="x [mm]")
    axes[0].set_ylabel("z [mm]")
    figure.savefig(figures(__file__) / "cronos_lattices.png")


def main() -> None:
    """Make the lattices, print the table and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="of the random lattices (%(default)s)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    bone, made = femur(sized(2.5e-3, 8e-3)), {}
    weight = BONE.density * bone.volume
    print(f"femur: {len(bone.faces)} triangles, {1e6 * bone.volume:.1f} cm^3, {weight:.3f} kg")
    print("| lattice | masses | springs | closest masses [spacings] | mass / bone | lowest frequencies [Hz] | CPU s |")
    print("|---|---|---|---|---|---|---|")
    for kind in LATTICES:
        for spacing in SPACINGS:
            begun = time.process_time()
            model = lattice(bone, kind, spacing, options.seed)
            seconds = time.process_time() - begun
            x = model.lattice.position
            closest = cKDTree(x).query(x, k=2)[0][:, 1].min() / spacing
            frequencies = ", ".join(f"{f:.1f}" for f in natural_modes(model, 2)[0])
            name = f"{kind}, {1e3 * spacing:g} mm"
            made[name] = model
            print(
                f"| {name} | {len(x)} | {len(model.lattice.ends)} | {closest:.2f} | "
                f"{model.lattice.mass.sum() / weight:.3f} | {frequencies} | {seconds:.1f} |",
                flush=True,
            )
    draw(bone, made)


if __name__ == "__main__":
    main()
