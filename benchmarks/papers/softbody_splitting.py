"""Soft multi-body paper, section 5: when the split iteration of contact converges (eq. 19 to 21, proposition 1).

    python benchmarks/papers/softbody_splitting.py

With fixed contact forces, the three splittings are v <- (M + h^2 S)^-1 (f - h^2 (L - S) v) with S = 0 (eq. 19),
S = D, the diagonal of L (eq. 21), and S = D', D'_ii = max(L_ii, sum_j |L_ij| / 2). They converge if the spectral
radius of h^2 (M + h^2 S)^-1 (L - S) is below 1. The paper states that the second one converges for every h. This is so
if all dihedral angles are acute or right, since then 2 D - L is diagonally dominant; 2 D' - L is on every mesh.
Writes ``softbody_splitting.png`` beside this file: all eigenvalues at h = 1/30 s, and the radius over h.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fast import figures, sized
from scipy.linalg import eigh
from scipy.spatial import Delaunay

from warpbots.meshing import tetrahedra
from warpbots.scene import Box

HERE = figures(__file__)
STEP = 1 / 30
MU, DENSITY = 3e5, 1000.0
"""Weight of the elements [Pa], the paper's, and density [kg/m^3]; the paper's 1 has no unit."""
SPLITTINGS = {"eq. 19: none": "none", "eq. 21: diagonal D": "diagonal", "D', diagonally dominant": "dominant"}


def delaunay(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Delaunay mesh of 200 random points in a cube of 10 cm, without flat tetrahedra."""
    x = 0.1 * np.random.default_rng(seed).random((sized(200, 20), 3))
    tets = Delaunay(x).simplices
    edges = x[tets[:, 1:]] - x[tets[:, :1]]
    return x, tets[np.abs(np.linalg.det(edges)) > 1e-3 * np.linalg.norm(edges, axis=2).prod(axis=1)]


def meshes() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """A regular grid, the same with its layers squeezed by ten and sheared by one cell, and random points."""
    grid = tetrahedra(Box((0, 0, 0), (0.1, 0.05, 0.05)), sized(0.0125, 0.05))
    sliver = grid.vertices * [1.0, 1.0, 0.1] + [0.1, 0.0, 0.0] * grid.vertices[:, 2:]
    return {"Kuhn": (grid.vertices, grid.tets), "slivers": (sliver, grid.tets), "random Delaunay": delaunay()}


def laplacian(x: np.ndarray, tets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L = sum mu V G G^T [N/m], shape (n, n), and lumped masses [kg], shape (n,)."""
    D = np.swapaxes(x[tets[:, 1:]] - x[tets[:, :1]], 1, 2)
    volume, inverse = np.abs(np.linalg.det(D)) / 6.0, np.linalg.inv(D)
    G = np.concatenate([-inverse.sum(axis=1, keepdims=True), inverse], axis=1)
    L = np.zeros((len(x), len(x)))
    np.add.at(L, (tets[:, :, None], tets[:, None, :]), MU * volume[:, None, None] * (G @ np.swapaxes(G, 1, 2)))
    mass = np.bincount(tets.reshape(-1), np.repeat(DENSITY * volume / 4.0, 4), len(x))
    used = mass > 0.0
    return L[np.ix_(used, used)], mass[used]


def diagonal(L: np.ndarray, kind: str) -> np.ndarray:
    """The matrix S of a splitting, which is diagonal, shape (n,)."""
    own = np.diag(L)
    return {"none": 0.0 * own, "diagonal": own, "dominant": np.maximum(own, 0.5 * np.abs(L).sum(axis=1))}[kind]


def spectrum(L: np.ndarray, mass: np.ndarray, h: float, kind: str) -> np.ndarray:
    """Eigenvalues of h^2 (M + h^2 S)^-1 (S - L), the map of an error from one iteration to the next, increasing."""
    S = diagonal(L, kind)
    return eigh(h**2 * (np.diag(S) - L), np.diag(mass + h**2 * S), eigvals_only=True)


def main() -> None:
    """Print the radii and draw the figure."""
    import matplotlib.pyplot as plt

    steps = np.geomspace(1e-5, 1e-1, sized(41, 3))
    figure, axes = plt.subplots(2, 3, figsize=(12, 6.5), sharey="row", constrained_layout=True)
    print(
        f"{'mesh':>16} {'nodes':>6} {'lambda_max(D^-1 L)':>19}   radius at h = 1/30 s   h up to which it converges [s]"
    )
    for column, (name, (x, tets)) in zip(axes.T, meshes().items(), strict=True):
        L, mass = laplacian(x, tets)
        ratio = eigh(L, np.diag(np.diag(L)), eigvals_only=True)[-1]
        for label, kind in SPLITTINGS.items():
            values = spectrum(L, mass, STEP, kind)
            radii = [np.abs(spectrum(L, mass, h, kind)[[0, -1]]).max() for h in steps]
            bad = steps[np.array(radii) >= 1.0]
            limit = f"{bad[0]:.2g}" if len(bad) else "all"
            radius = np.abs(values[[0, -1]]).max()
            print(f"{name:>16} {len(mass):>6} {ratio:>19.3f}   {label:<22} {radius:>10.4g}   {limit}")
            column[0].plot(np.linspace(0, 1, len(values)), values, label=label)
            column[1].loglog(steps, radii, label=label)
        column[0].set(title=f"{name}, {len(tets)} tetrahedra", xlabel="share of the spectrum")
        column[0].set_yscale("symlog", linthresh=1.0)
        column[1].set(xlabel="h [s]")
        for ax in column:
            ax.axhline(1.0, color="0.5", lw=0.8, ls=":")
            ax.grid(alpha=0.3)
        column[0].axhline(-1.0, color="0.5", lw=0.8, ls=":")
    axes[0, 0].set_ylabel("eigenvalue at h = 1/30 s")
    axes[1, 0].set_ylabel("spectral radius")
    axes[0, 0].legend(fontsize=8)
    figure.savefig(HERE / "softbody_splitting.png", dpi=110)


if __name__ == "__main__":
    main()
