"""A cantilever of length 1 m and height h = 1/8 m under its own weight, against finite elements that we did not write.

Suddenly loaded, it swings about its static shape with its first frequency, so one period gives both: the tip moves as
d (1 - cos(2 pi f t)) plus higher modes, whose mean over a period is d. In g = 0.01 m/s^2 everything is linear. As in
`test_bar`, the held end makes it too long: f -1.7 % (3 % are allowed) and d +3.7 % (4 %) with 4 cells over the height,
-1.0 % (2 %) and +2.1 % (2.5 %) with 6. Clamped by a constraint instead of a wall, at a face through nodes, it is f -1.7 %
and d +3.4 %; at other places of the face on the grid between -3.3 and +1.4 %, and +7.4 and -2.6 %.
"""

import dataclasses

import numpy as np
import pytest
import torch
from cases import CONTINUA, to_numpy
from scipy.optimize import curve_fit
from scipy.sparse.linalg import eigsh

from warpbots.scene import Box, Constraint, HalfSpace, Material, Obstacle, Scene, SoftBody
from warpbots.simulation import Simulation

E, NU, RHO, L, H, G = 1e5, 0.3, 1000.0, 1.0, 0.125, 0.01


def finite_elements(dim: int, x: float) -> tuple[float, float]:
    """First frequency [Hz] and static deflection at `x` [m] by scikit-fem: quadratic elements, plane strain in 2D.

    Two quadratic elements over the height are within 0.3 % of four.
    """
    fem = pytest.importorskip("skfem")
    from skfem.helpers import dot
    from skfem.models.elasticity import lame_parameters, linear_elasticity

    along, across = np.linspace(0, L, 17), np.linspace(0, H, 3)
    if dim == 2:
        mesh, element = fem.MeshQuad.init_tensor(along, across), fem.ElementQuad2()
    else:
        mesh, element = fem.MeshHex.init_tensor(along, across, across), fem.ElementHex2()
    basis = fem.Basis(mesh, fem.ElementVector(element))
    K = linear_elasticity(*lame_parameters(E, NU)).assemble(basis)
    M = fem.BilinearForm(lambda u, v, w: RHO * dot(u, v)).assemble(basis)
    load = fem.LinearForm(lambda v, w: -RHO * G * v[dim - 1]).assemble(basis)
    held = basis.get_dofs(lambda x: np.isclose(x[0], 0.0))
    free = basis.complement_dofs(held)
    omega2 = eigsh(K[free][:, free], k=1, M=M[free][:, free], sigma=0.0)[0][0]
    u = fem.solve(*fem.condense(K, load, D=held))
    return np.sqrt(omega2) / (2 * np.pi), float((basis.probes(np.array([[x], *[[H / 2]] * (dim - 1)])) @ u)[-1])


def swing(solver: str, dim: int, cells: int, clamp: str, f_expected: float) -> tuple[float, float]:
    """First frequency [Hz] and mean deflection of the last column of cells [m]."""
    dx = H / cells
    root = Box((-2 * dx, *(0.0,) * (dim - 1)), (0.0, *(H,) * (dim - 1)))
    shape = Box((0.0,) * dim if clamp == "wall" else root.lower, (L, *(H,) * (dim - 1)))
    beam = SoftBody("beam", shape, Material(E, NU, RHO), regions={} if clamp == "wall" else {"root": root})
    gravity = (*(0.0,) * (dim - 1), -G)
    domain = ((-0.1,) * dim, (1.1, *(0.25,) * (dim - 1)))
    scene = Scene((beam,), gravity=gravity, domain=domain)
    if clamp == "wall":
        wall = Obstacle(HalfSpace((0.0,) * dim, (1.0, *(0.0,) * (dim - 1))), "sticky", name="wall")
        scene = dataclasses.replace(scene, obstacles=(wall,))
    else:
        scene = dataclasses.replace(scene, constraints=(Constraint("root"),))
    interval = 20 * 0.5 * dx / np.sqrt(E * (1 - NU) / ((1 + NU) * (1 - 2 * NU)) / RHO)
    sim = Simulation(scene, CONTINUA[solver](dx), interval, substeps=20)
    rest = sim.state().position
    end = rest[0, :, 0] > L - dx
    steps = int(1.25 / f_expected / interval)
    with torch.no_grad():
        trajectory = sim.rollout(None, steps, observe=lambda s: (s.position - rest)[:, end, -1].mean(1))
    t, u = interval * np.arange(steps + 1), np.append(0.0, to_numpy(trajectory.observation)[0])
    (_, f), _ = curve_fit(lambda t, d, f: d * (1 - np.cos(2 * np.pi * f * t)), t, u, p0=[u.mean(), f_expected])
    period = t <= 1 / f
    return f, np.trapezoid(u[period], t[period]) / t[period][-1]


@pytest.mark.parametrize(
    ("dim", "cells", "clamp", "f_allowed", "d_allowed"),
    [
        pytest.param(2, 4, "wall", 0.03, 0.04),
        pytest.param(2, 4, "constraint", 0.03, 0.04),
        pytest.param(2, 6, "wall", 0.02, 0.025, marks=pytest.mark.slow),
        pytest.param(3, 4, "wall", 0.03, 0.04, marks=pytest.mark.slow),
        pytest.param(3, 4, "constraint", 0.03, 0.04, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("solver", CONTINUA)
def test_cantilever(solver, dim, cells, clamp, f_allowed, d_allowed):
    f_expected, d_expected = finite_elements(dim, L - H / cells / 2)
    f, d = swing(solver, dim, cells, clamp, f_expected)
    print(f"{dim}D, {cells} cells, {clamp}: f {f / f_expected - 1:+.4f}, d {d / d_expected - 1:+.4f}")
    assert f == pytest.approx(f_expected, rel=f_allowed)
    assert d == pytest.approx(d_expected, rel=d_allowed)
