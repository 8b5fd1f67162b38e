"""Elements of solids compared: sag of a slender cantilever and its cost, and cells with moduli over several decades.

    python benchmarks/elements.py

The cantilever is eight times as long as high and bends under its own weight, in small strain; the reference solution
uses 24 x 3 x 3 quadratic hexahedra of scikit-fem. Times are for one static step on one thread. The second table is for
cells as in topology optimisation (SIMP), each with its own modulus: the compliance is compared with the compliance of
trilinear hexahedra of scikit-fem. Iterations are iterations of the minimal residual method, in the last Newton step and
in the adjoint. Writes ``elements.png`` beside this file.
"""

import os

os.environ.setdefault("WARPBOTS_PRECISION", "float64")  # errors of elements, not of rounding

import itertools
import time

import numpy as np
import torch
from fast import figures, sized
from skfem import Basis, BilinearForm, ElementHex1, ElementHex2, ElementVector, LinearForm, MeshHex, condense, solve
from skfem.helpers import ddot, eye, sym_grad, trace

import warpbots as wb

ELEMENTS = ("tetrahedra", "hexahedra", "quadratic_tetrahedra")
POISSONS_RATIOS = sized((0.0, 0.3, 0.45, 0.49), (0.3,))
CELLS = sized((1, 2, 4), (1,))
"""Numbers of cells over the height."""
HEIGHT, SLENDERNESS, MODULUS, DENSITY, GRAVITY = 0.1, 8, 1e6, 1000.0, 1e-3
FINEST = sized(3, 1)
"""Number of quadratic hexahedra over the height in the reference."""
DECADES = sized((0, 1, 2, 3), (3,))
SPREAD = sized((0.3, 0.49), (0.3,))
"""Poisson's ratios of the second table."""
LINEAR_SOLVERS = ("iterative", "adaptive", "direct")
GRID = sized((16, 4, 4), (4, 2, 2))
"""Cells of the second table."""
AT_REST = 1e3
"""Length of a step that gives the static solution [s]."""


def bar(
    elements: str, counts: tuple[int, ...], size: float, nu: float, how: str = "iterative", **parts
) -> wb.Simulation:
    """A bar of cells that is fixed at x = 0 and has a region at its tip; `how` names the linear solver."""
    upper = tuple(size * n for n in counts)
    half = wb.shapes.HalfSpace
    ends = {"root": half((1e-9, 0, 0), (1, 0, 0)), "tip": half((upper[0] - 1e-9, 0, 0), (-1, 0, 0))}
    material = wb.Material(MODULUS, nu, DENSITY, law="linear")
    body = wb.SoftBody("bar", wb.shapes.Box((0, 0, 0), upper), material, ends)
    scene = wb.Scene([body], constraints=[wb.Constraint("root")], **parts)
    solver = wb.ProjectiveDynamics(size, collisions=False, elements=elements, linear_solver=how)
    return wb.Simulation(scene, solver, AT_REST)


def at_rest(sim: wb.Simulation, **parameters: torch.Tensor) -> tuple[np.ndarray, float, int]:
    """Solve a static step; return the displacements [m], its time [s] and the iterations of the last Newton step."""
    with torch.no_grad():
        for _ in range(2):  # the first compiles kernels and factorises the matrix, the second captures
            sim.step(sim.state(), torch.zeros(0), **parameters)
        begin = time.process_time()
        once = sim.step(sim.state(), torch.zeros(0), **parameters)
        seconds = time.process_time() - begin
        iterations = int(sim.model.workspace.krylov.arrays.iterations.numpy()[0])
        end = sim.step(once, torch.zeros(0), **parameters)
    return (end.position[0] - sim.state().position[0]).numpy(), seconds, iterations


def stiffness(basis: Basis, E: np.ndarray | float, nu: float):
    """Stiffness matrix of Hooke's law; E is one value for all elements, or one for each element, shape (n, 1)."""
    mu, lam = E / (2.0 * (1.0 + nu)), E * nu / ((1.0 + nu) * (1.0 - 2.0 * nu))

    def density(u, v, w):
        strain = sym_grad(u)
        return ddot(2.0 * mu * strain + eye(lam * trace(strain), 3), sym_grad(v))

    return BilinearForm(density).assemble(basis)


def reference_sag(nu: float) -> float:
    """Sag of the midpoint of the tip, computed with quadratic hexahedra [m]."""
    along, across = (np.linspace(0, n * HEIGHT, FINEST * n + 1) for n in (SLENDERNESS, 1))
    basis = Basis(MeshHex.init_tensor(along, across, across), ElementVector(ElementHex2()))
    load = LinearForm(lambda v, w: -DENSITY * GRAVITY * v[2]).assemble(basis)
    held = basis.get_dofs(lambda x: np.isclose(x[0], 0.0))
    u = solve(*condense(stiffness(basis, MODULUS, nu), load, D=held))
    return -float((basis.probes(np.array([[along[-1]], [HEIGHT / 2], [HEIGHT / 2]])) @ u)[-1])


def cantilevers() -> list[tuple[str, float, int, int, float, float]]:
    """Rows of the first table.

    Each row has the kind of elements, Poisson's ratio, the number of cells over the height, the number of nodes, the
    relative error of the sag [1], and the time of a step [s].
    """
    rows = []
    for nu in POISSONS_RATIOS:
        expected = reference_sag(nu)
        for elements in ELEMENTS:
            for n in CELLS:
                sim = bar(elements, (SLENDERNESS * n, n, n), HEIGHT / n, nu, gravity=(0, 0, -GRAVITY))
                u, seconds, _ = at_rest(sim)
                error = -u[sim.region("tip").numpy(), 2].mean() / expected - 1.0
                rows.append((elements, nu, n, len(u), error, seconds))
                print(
                    f"{elements}, nu {nu}, {n} cells, {len(u)} nodes: {100 * error:+.2f} %, {1e3 * seconds:.1f} ms",
                    flush=True,
                )
    return rows


def compliance_of_hexahedra(E: np.ndarray, load: np.ndarray, rest: np.ndarray, size: float, nu: float) -> float:
    """Work of a load on nodes at `rest` [J], from trilinear hexahedra with a modulus for each cell of the grid."""
    axes = [np.linspace(0, n * size, n + 1) for n in E.shape]
    mesh = MeshHex.init_tensor(*axes)
    basis = Basis(mesh, ElementVector(ElementHex1()), intorder=3)
    cell = (mesh.p[:, mesh.t].mean(axis=1).T / size).astype(int)
    where = np.linalg.norm(basis.doflocs[:, ::3].T[:, None] - rest, axis=2).argmin(axis=1)
    force = load[where].reshape(-1)
    held = basis.get_dofs(lambda x: np.isclose(x[0], 0.0))
    u = solve(*condense(stiffness(basis, E[tuple(cell.T)][:, None], nu), force, D=held))
    return float(force @ u)


def decades(elements: str, nu: float, how: str) -> None:
    """Print compliance and iterations of a cantilever of cells whose moduli spread over decades."""
    size = HEIGHT / GRID[1]
    share = np.random.default_rng(0).uniform(size=GRID)
    down = [wb.Load("tip", (0.0, 0.0, -1e-3))]
    sim = bar(elements, GRID, size, nu, how, gravity=(0, 0, 0), loads=down)
    mesh, load = sim.model.matter, sim.parameter("load")[0].numpy()
    cell = (mesh.position[mesh.solids].mean(axis=1) / size).astype(int)
    corner = np.abs(mesh.position / size - np.round(mesh.position / size)).max(axis=1) < 1e-6
    for n in DECADES:
        E = MODULUS * 10.0 ** (-n * share)
        moduli = torch.as_tensor(E[tuple(cell.T)])[None]
        u, seconds, iterations = at_rest(sim, youngs_modulus=moduli)
        backward, time_back = adjoint(sim, moduli)
        at_corners = np.where(corner[:, None], load, 0.0)
        at_corners *= load.sum() / at_corners.sum()
        expected = compliance_of_hexahedra(E, at_corners[corner], mesh.position[corner], size, nu)
        print(
            f"{elements}, nu {nu}, {how}, {n} decades: compliance {100 * ((load * u).sum() / expected - 1):+.2f} %, "
            f"{iterations} and {backward} iterations, {1e3 * seconds:.1f} and {1e3 * time_back:.1f} ms",
            flush=True,
        )


def adjoint(sim: wb.Simulation, moduli: torch.Tensor) -> tuple[int, float]:
    """Iterations for the gradient of the compliance with respect to the moduli, and time of the backward pass [s]."""
    for _ in range(3):  # the first compiles, the second captures
        leaf = moduli.clone().requires_grad_()
        end = sim.step(sim.state(), torch.zeros(0), youngs_modulus=leaf)
        compliance = (sim.parameter("load") * (end.position - sim.state().position)).sum()
        begin = time.process_time()
        compliance.backward()
        seconds = time.process_time() - begin
    return int(sim.model.workspace.krylov.arrays.iterations.numpy()[0]), seconds


def draw(rows: list[tuple]) -> None:
    """Plot the error of the sag against the time of a step."""
    import matplotlib.pyplot as plt

    size = (3.2 * len(POISSONS_RATIOS), 3.2)
    figure, axes = plt.subplots(1, len(POISSONS_RATIOS), figsize=size, sharey=True, squeeze=False)
    for ax, nu in zip(axes[0], POISSONS_RATIOS, strict=True):
        for elements, marker in zip(ELEMENTS, ["o", "s", "^"], strict=True):
            own = [(n, 1e3 * t, 100 * abs(error)) for kind, of, n, _, error, t in rows if (kind, of) == (elements, nu)]
            ax.loglog([t for _, t, _ in own], [e for *_, e in own], marker + "-", label=elements.replace("_", " "))
            for n, t, e in own:
                ax.annotate(str(n), (t, e), textcoords="offset points", xytext=(5, 4), fontsize=8)
        ax.set(title=f"Poisson's ratio {nu}", xlabel="time of a static step [ms]")
        ax.axhline(2.0, color="gray", linewidth=0.8, linestyle=":")
    axes[0, 0].set_ylabel("error of the sag [%]")
    axes[0, -1].legend(fontsize=8, loc="lower left")
    figure.tight_layout()
    figure.savefig(figures(__file__) / "elements.png", dpi=110)


def main() -> None:
    """Print both tables, and draw the figure."""
    for elements, nu, how in itertools.product(ELEMENTS, SPREAD, LINEAR_SOLVERS):
        decades(elements, nu, how)
    draw(cantilevers())


if __name__ == "__main__":
    main()
