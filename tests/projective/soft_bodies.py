"""Small soft bodies of tetrahedra, and the energy of a step written anew in NumPy."""

import dataclasses

import numpy as np
import torch
from cases import lame, rotation_of

from warpbots.scene import Box, Constraint, HalfSpace, Load, Material, Muscle, Obstacle, Pressure, Scene, SoftBody
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

CELL = 0.04
DT = 0.005


def beam(law: str = "corotated", nu: float = 0.3, youngs_modulus: float = 1e5) -> Scene:
    """A bar of 16 cm that is fixed at one end, with a muscle and a chamber in its upper half and a load on it."""
    body = SoftBody(
        "beam",
        Box((0, 0, 0), (0.16, 0.08, 0.08)),
        Material(youngs_modulus, nu, 1000.0, law),
        regions={"root": HalfSpace((1e-6, 0, 0), (1, 0, 0)), "top": HalfSpace((0, 0, 0.04), (0, 0, -1))},
    )
    actuators = (Muscle("muscle", "top", (1, 0.2, 0), 2e4), Pressure("chamber", "top", 5e3))
    return Scene((body,), actuators, constraints=(Constraint("root"),), loads=(Load("top", (1.0, 2.0, 0.5)),))


def sliding(law: str, obstacles: tuple[Obstacle, ...], velocity: tuple[float, ...] = (1.0, 0.0, -0.1)) -> Scene:
    """A cube of 8 cm that begins on the plane z = 0, in motion."""
    body = SoftBody(
        "cube",
        Box((0, 0, 0), (0.08, 0.08, 0.08)),
        Material(1e5, 0.3, 1000.0, law),
        regions={"top": HalfSpace((0, 0, 0.04), (0, 0, -1))},
        velocity=velocity,
    )
    return Scene((body,), (Muscle("muscle", "top", (1, 0.2, 0), 2e4),), obstacles)


def simulation(scene: Scene, **options) -> Simulation:
    """Steps of 5 ms that are solved as well as double precision can, without contact of bodies unless asked for."""
    return Simulation(scene, ProjectiveDynamics(CELL, **{"tolerance": 1e-13, "collisions": False, **options}), DT)


def stirred(sim: Simulation, rng: np.random.Generator, intervals: int) -> dict[str, torch.Tensor]:
    """Everything that a rollout can be differentiated by, at random."""

    def noise(value: torch.Tensor, scale: float) -> torch.Tensor:
        return scale * torch.as_tensor(rng.uniform(-1, 1, value.shape))

    inputs = {n: sim.parameter(n) for n in sim.parameters()}
    for name, share in (("youngs_modulus", 0.2), ("poissons_ratio", 0.05), ("density", 0.2)):
        inputs[name] = inputs[name] * (1.0 + noise(inputs[name], share))
    for name in ("rest_position", "anchor", "position"):
        if name in inputs:
            inputs[name] = inputs[name] + noise(inputs[name], 1e-3)
    rest = sim.state()
    inputs["load"] = inputs["load"] + noise(inputs["load"], 0.05)
    inputs["position"] = rest.position + noise(rest.position, 1e-3) + torch.tensor([0.0, 0.0, 2e-3])
    inputs["velocity"] = rest.velocity + noise(rest.velocity, 0.1)
    control = torch.zeros(sim.worlds, intervals, sim.channels)
    inputs["control"] = control + noise(control, 0.8)
    return inputs


def rolled(sim: Simulation, inputs: dict[str, torch.Tensor]):
    """Where a rollout with these inputs ends."""
    state = sim.state(position=inputs["position"], velocity=inputs["velocity"])
    parameters = {n: v for n, v in inputs.items() if n in sim.parameters()}
    return sim.rollout(inputs["control"], inputs["control"].shape[1], state, **parameters).final


def contact_forces(sim: Simulation) -> np.ndarray:
    """Forces of all obstacles on the nodes that may touch in the last step [N], of world 0, shape (n, 3)."""
    scratch = sim.model.scratch
    z = scratch.matrix(sim.dt / sim.substeps).forward.history.z.numpy()
    return z[scratch.count : scratch.count + len(scratch.touching) * scratch.solids, :3]


def iterations(sim: Simulation) -> int:
    """Corrections of the last step of world 0."""
    return int(sim.model.scratch.matrix(sim.dt / sim.substeps).forward.progress.iterations.numpy()[0])


@dataclasses.dataclass
class IncrementalPotential:
    """Phi(x) = 1/(2 h^2) |x - s|_M^2 - load . x + E(x) of a step without actuators, and its gradient.

    Written from eq. 2 of the soft multi-body paper and the definitions of the laws, sharing nothing with the solver.
    """

    x: np.ndarray
    v: np.ndarray
    tets: np.ndarray
    law: str
    E: np.ndarray
    nu: np.ndarray
    rho: np.ndarray
    gravity: np.ndarray
    load: np.ndarray
    h: float
    rest: np.ndarray

    def __post_init__(self):
        edges = np.swapaxes(self.rest[self.tets[:, 1:]] - self.rest[self.tets[:, :1]], 1, 2)
        self.volume = np.linalg.det(edges) / 6.0
        self.inverse = np.linalg.inv(edges)
        share = np.repeat(self.rho * self.volume / 4.0, 4)
        self.mass = np.bincount(self.tets.reshape(-1), share, len(self.x))[:, None]
        self.mu, self.lam = lame(self.E, self.nu)

    def elastic(self, y: np.ndarray) -> tuple[float, np.ndarray]:
        F = np.swapaxes(y[self.tets[:, 1:]] - y[self.tets[:, :1]], 1, 2) @ self.inverse
        mu, lam = self.mu, self.lam
        if self.law == "neo_hookean":
            J = np.linalg.det(F)
            if (J <= 0.0).any():
                return 1e6, np.zeros_like(y)  # far above all that matters, and finite, for SciPy's line search
            Ft = np.swapaxes(np.linalg.inv(F), 1, 2)
            psi = mu / 2 * ((F**2).sum((1, 2)) - 3) - mu * np.log(J) + lam / 2 * np.log(J) ** 2
            P = mu[:, None, None] * (F - Ft) + (lam * np.log(J))[:, None, None] * Ft
        else:
            R = rotation_of(F)
            growth = np.einsum("eij,eij->e", R, F) - 3.0
            psi = mu * ((F - R) ** 2).sum((1, 2)) + lam / 2 * growth**2
            P = 2 * mu[:, None, None] * (F - R) + (lam * growth)[:, None, None] * R
        H = self.volume[:, None, None] * P @ np.swapaxes(self.inverse, 1, 2)
        g = np.zeros_like(y)
        for k in range(3):
            np.add.at(g, self.tets[:, k + 1], H[:, :, k])
            np.add.at(g, self.tets[:, 0], -H[:, :, k])
        return float((self.volume * psi).sum()), g

    def __call__(self, y: np.ndarray) -> tuple[float, np.ndarray]:
        s = self.x + self.h * self.v + self.h**2 * self.gravity
        energy, slope = self.elastic(y)
        inertia = self.mass / self.h**2 * (y - s)
        return energy + 0.5 * (inertia * (y - s)).sum() - (self.load * y).sum(), slope + inertia - self.load
