"""A step ends where the incremental potential is least: found by SciPy from an energy that shares no code with ours."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from soft_bodies import (
    Driven,
    IncrementalPotential,
    Strung,
    Thin,
    beam,
    cloth,
    driven,
    mixed,
    simulation,
    strung,
    truss,
)

pytestmark = pytest.mark.verification


SOLIDS = {
    f"{law}-{nu}": lambda law=law, nu=nu: beam(law, nu)
    for law in ("corotated", "neo_hookean")
    for nu in (0.0, 0.3, 0.45)
}
CASES = SOLIDS | {"cloth": cloth, "truss": truss, "mixed": mixed, "driven": driven, "strung": strung}


@pytest.mark.parametrize("case", CASES)
def test_a_step_ends_at_the_minimum(case, rng):
    """To 1e-6 of the largest displacement, with all parameters and the shape at rest different in every element."""
    scene = CASES[case]()
    sim = simulation(scene)
    mesh, n = sim.model.matter, len(sim.model.matter)
    names = ("youngs_modulus", "poissons_ratio", "density", "thickness", "bending", "section")
    names += ("fibre_stiffness", "cell_stiffness", "cable_stiffness", "cable_length")
    spread = {f: sim.parameter(f) for f in names if f in sim.parameters()}
    spread = {f: v * (1 + 0.3 * torch.as_tensor(rng.uniform(-1, 0.2, v.shape))) for f, v in spread.items()}
    rest = mesh.position + 1e-3 * rng.uniform(-1, 1, (n, 3))
    start = mesh.position + 2e-3 * rng.uniform(-1, 1, (n, 3))
    velocity = rng.uniform(-0.5, 0.5, (n, 3))
    state = sim.state(position=torch.as_tensor(start), velocity=torch.as_tensor(velocity))
    controls = {"driven": [0.75, -0.625], "strung": [0.0, 0.0, 0.25, -0.25]}
    control = torch.tensor(controls[case]) if case in controls else torch.zeros(sim.channels)
    end = sim.step(state, control, rest_position=torch.as_tensor(rest), **spread)
    end = end.position[0].numpy()

    own = {f: spread[f][0].numpy() if f in spread else np.zeros(0) for f in names}
    E, nus, rho = (own[f] for f in names[:3])
    load = sim.parameter("load")[0].numpy()
    law = scene.bodies[0].material.law
    actuated = None
    if case == "driven":
        actuated = Driven(rest, mesh, own["fibre_stiffness"], own["cell_stiffness"], control.double().numpy())
    if case == "strung":
        routes = [nodes_at(mesh.position, a.waypoints) for a in scene.actuators[2:]]
        actuated = Strung(routes, own["cable_stiffness"], own["cable_length"] * (1.0 - control[2:].double().numpy()))
    phi = IncrementalPotential(
        start, velocity, mesh.tets, law, E, nus, rho, np.array(sim.scene.gravity), load, sim.dt, rest,
        Thin(rest, mesh, *(own[f] for f in names[:6])),
        actuated,
    )  # fmt: skip
    free = ~sim.model.topology.fixed
    y = mesh.position.copy()  # fixed nodes are at their anchors

    def of_free(z: np.ndarray) -> tuple[float, np.ndarray]:
        x = y.copy()
        x[free] = z.reshape(-1, 3)
        value, slope = phi(x)
        return value, slope[free].reshape(-1)

    scale = of_free(start[free].reshape(-1))[0]
    found = minimize(
        lambda z: tuple(v / scale for v in of_free(z)), start[free].reshape(-1), jac=True, method="L-BFGS-B",
        options={"maxiter": 20000, "maxfun": 20000, "ftol": 0.0, "gtol": 1e-12, "maxcor": 50},
    )  # fmt: skip
    moved = np.abs(end - start).max()
    assert moved > 1e-3
    np.testing.assert_allclose(end[~free], y[~free], rtol=0.0, atol=1e-15)
    # SciPy stops where rounding of the energy of the solid hides what the sheet could still gain
    assert np.abs(end[free].reshape(-1) - found.x).max() < (5e-6 if case == "mixed" else 1e-6) * moved
    _, slope = of_free(end[free].reshape(-1))
    assert np.abs(slope).max() < 1e-8 * np.abs(of_free(start[free].reshape(-1))[1]).max()


def nodes_at(x: np.ndarray, places) -> np.ndarray:
    """Nodes nearest to some places."""
    return np.linalg.norm(x[None] - np.array(places)[:, None], axis=2).argmin(axis=1)


def test_the_end_does_not_depend_on_the_way_there():
    """Memory of the acceleration, and whether matter is stiffer or softer than the matrix was factored for."""
    ends = []
    for memory in (1, 5, 20):
        sim = simulation(beam(), memory=memory)
        ends.append(sim.step(sim.state(), torch.zeros(2), youngs_modulus=3e5).position)
    stiff = simulation(beam(youngs_modulus=3e5))
    soft = simulation(beam(youngs_modulus=1e6))
    ends += [stiff.step(stiff.state(), torch.zeros(2)).position]
    ends += [soft.step(soft.state(), torch.zeros(2), youngs_modulus=3e5).position]
    for end in ends[1:]:
        torch.testing.assert_close(end, ends[0], rtol=0.0, atol=1e-11)
