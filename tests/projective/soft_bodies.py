"""Small soft bodies, sheets and trusses, and the energy of a step written anew in NumPy and torch."""

import dataclasses

import numpy as np
import torch
import warp as wp
from cases import lame, rotation_of
from hollow_bodies import hollow_box

from warpbots.numerics import real_numpy
from warpbots.scene import (
    Attachment,
    Box,
    Cable,
    Cavity,
    Constraint,
    Expansion,
    Fibre,
    Fluid,
    HalfSpace,
    Load,
    Material,
    Motor,
    Muscle,
    Obstacle,
    Oscillation,
    PneumaticCell,
    Pressure,
    Scene,
    Sheet,
    SoftBody,
    Truss,
    Union,
)
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective.elements.element import Point
from warpbots.solvers.projective.forces import evaluate_residual, evaluate_rest
from warpbots.solvers.projective.model import ProjectiveModel

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


def driven(law: str = "corotated") -> Scene:
    """The bar of `beam` with fibres in its upper half and cells in the half at its tip; a quarter has both."""
    scene = beam(law)
    body = dataclasses.replace(
        scene.bodies[0], regions=scene.bodies[0].regions | {"tip": HalfSpace((0.08, 0, 0), (-1, 0, 0))}
    )
    actuators = (Fibre("fibre", "top", (1, 0.2, 0), 2e5, 0.3), PneumaticCell("cell", "tip", 1e5, 0.5))
    return dataclasses.replace(scene, bodies=(body,), actuators=actuators)


def strung() -> Scene:
    """The bar of `beam` with a cable along its top that turns downwards, and a slack one along its edge."""
    scene = beam()
    taut = Cable("taut", ((0, 0, 0.08), (0.08, 0, 0.08), (0.16, 0.04, 0.08), (0.16, 0.08, 0.0)), 2e3, 0.26)
    slack = Cable("slack", ((0, 0, 0), (0.16, 0, 0)), 1e3, 0.4)
    return dataclasses.replace(scene, actuators=(*scene.actuators, taut, slack))


def breathing(obstacles: tuple[Obstacle, ...] = (), held: bool = True) -> Scene:
    """A finger of 12 cm with a chamber of given pressure, and one of given gas at its tip."""
    voids = Box((0.02, 0.02, 0.02), (0.06, 0.04, 0.04)), Box((0.08, 0.02, 0.02), (0.1, 0.04, 0.04))
    body = SoftBody(
        "finger",
        hollow_box((0.12, 0.06, 0.06), voids, 0.02),
        Material(1e5, 0.3, 1000.0, "neo_hookean"),
        regions={"root": HalfSpace((1e-6, 0, 0), (1, 0, 0)), "palm": voids[0], "tip": voids[1]},
        velocity=None if held else (1.0, 0.0, -0.1),
    )
    actuators = Cavity("pump", "palm", 1e4), Cavity("gas", "tip", max_gas_ratio=1.5)
    return Scene((body,), actuators, obstacles, constraints=(Constraint("root"),) if held else ())


def damped(scene: Scene, time: float = 0.01) -> Scene:
    """The scene with Kelvin-Voigt damping of all matter."""
    bodies = [dataclasses.replace(b, material=dataclasses.replace(b.material, damping=time)) for b in scene.bodies]
    return dataclasses.replace(scene, bodies=bodies)


def guided(scene: Scene, tip: HalfSpace, direction: tuple[float, ...] = (1.0, 0.4, 0.3)) -> Scene:
    """The scene with the upper half of its first body in an oblique plane, and its tip on a line; both hold it there."""
    body = dataclasses.replace(scene.bodies[0], regions=scene.bodies[0].regions | {"tip": tip})
    plane, line = Constraint("top", "plane", (0.1, 1.0, 0.2), "plane"), Constraint("tip", "line", direction, "line")
    constraints = (*scene.constraints, plane, line)
    return dataclasses.replace(scene, bodies=(body, *scene.bodies[1:]), constraints=constraints)


def beating() -> Scene:
    """The bar of `beam` whose upper half has a travelling wave and whose tip beats across; a quarter has both."""
    scene = beam()
    body = dataclasses.replace(
        scene.bodies[0], regions=scene.bodies[0].regions | {"tip": HalfSpace((0.08, 0, 0), (-1, 0, 0))}
    )
    wave = Oscillation("wave", "top", 0.1, 7.0, 0.2, wave=(20.0, 5.0, 10.0))
    beat = Oscillation("beat", "tip", 0.05, 12.0, 0.4, direction=(0, 1, 0))
    actuators = (wave, Expansion("growth", "tip", 0.1), beat)
    return dataclasses.replace(scene, bodies=(body,), actuators=actuators)


TORQUE, SPEED = 1.0, 8.0


def machine(law: str = "corotated", youngs_modulus: float = 1e6, held: bool = False, **parts) -> Scene:
    """Two crossed bars on one axle along z, weightless; they pass through one another."""
    matter = Material(youngs_modulus, 0.3, 1000.0, law)
    boxes = {
        "stator": Box((-0.1, -0.04, 0.0), (0.1, 0.04, 0.04)),
        "rotor": Box((-0.04, -0.1, 0.0), (0.04, 0.1, 0.04)),
    }
    bodies = [SoftBody(n, b, matter, regions={n: b}) for n, b in boxes.items()]
    axle = Attachment("axle", "stator", "rotor", ((0.0, 0.0, 0.0), (0.0, 0.0, 0.04)))
    motor = Motor("motor", "axle", "rotor", "stator", TORQUE, SPEED)
    constraints = (Constraint("stator"),) if held else ()
    fields = {"attachments": [axle], "actuators": [motor], "gravity": (0.0,) * 3, "constraints": constraints}
    return Scene(bodies, **fields | parts)


def swimming(scene: Scene) -> Scene:
    """The scene in a slow stream."""
    return dataclasses.replace(scene, fluid=Fluid(1000.0, (0.3, -0.2, 0.1)))


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


def waved(sheet: Sheet, height: float) -> Sheet:
    """The sheet with waves of this height, so that it is folded at rest."""
    x, y, _ = sheet.vertices.T
    lift = height * np.stack([0.2 * y, 0.1 * x, np.sin(40 * x + 25 * y)], axis=-1)
    return Sheet(sheet.vertices + lift, sheet.faces, sheet.thickness, sheet.bending)


def cloth(obstacles: tuple[Obstacle, ...] = (), bending: float | None = 2e-4, held: bool = True) -> Scene:
    """A waved sheet of 16 cm x 12 cm, with a load on its half with large y, held at its edge with the smallest x."""
    sheet = waved(Sheet.rectangle((0, 0), (0.16, 0.12), 2e-3, (4, 3), bending=bending), 0.01)
    regions = {"root": HalfSpace((5e-3, 0, 0), (1, 0, 0)), "side": HalfSpace((0, 0.06, 0), (0, -1, 0))}
    body = SoftBody("cloth", sheet, Material(1e5, 0.3, 800.0), regions=regions)
    constraints = (Constraint("root"),) if held else ()
    return Scene((body,), (), obstacles, constraints=constraints, loads=(Load("side", (0.02, 0.03, 0.05)),))


JOINTS = 0.1 * np.array([[0, 0, 0], [0, 1, 0], [0, 0.5, 1], [1, 0.2, 0.1], [1, 0.9, 0.3], [1, 0.5, 1], [2, 0.5, 0.5]])
BARS = np.array([[0, 3], [1, 4], [2, 5], [0, 4], [1, 5], [2, 3], [3, 4], [4, 5], [5, 3], [3, 6], [4, 6], [5, 6]])


def truss() -> Scene:
    """A mast of bars of two thicknesses that is held at three joints and has a load at its tip."""
    shape = Truss(JOINTS, BARS, np.where(np.arange(len(BARS)) < 6, 4e-3, 3e-3))
    regions = {"root": HalfSpace((1e-6, 0, 0), (1, 0, 0)), "tip": HalfSpace((0.15, 0, 0), (-1, 0, 0))}
    body = SoftBody("mast", shape, Material(1e6, 0.3, 1000.0), regions=regions)
    return Scene((body,), constraints=(Constraint("root"),), loads=(Load("tip", (0.1, 0.3, -0.2)),))


def mixed() -> Scene:
    """The bar of `beam` with a sheet sewn onto its top, and the mast of `truss` beside it."""
    solid, mast = beam().bodies[0], truss().bodies[0]
    sheet = Sheet.rectangle((0.0, 0.0), (0.32, 0.08), 2e-3, (8, 2), height=0.08)
    shape = Union((solid.shape, sheet))
    body = SoftBody("winged", shape, solid.material, regions=solid.regions)
    mast = SoftBody("mast", mast.shape, mast.material, regions={"foot": mast.regions["root"]})
    actuators = (Muscle("muscle", "top", (1, 0.2, 0), 2e4),)
    constraints = (Constraint("root"), Constraint("foot", name="footing"))
    return Scene((body, mast), actuators, constraints=constraints, loads=(Load("top", (1.0, 2.0, 0.5)),))


def simulation(scene: Scene, **options) -> Simulation:
    """Steps of 5 ms that are solved as well as double precision can, without contact of bodies unless asked for."""
    return Simulation(
        scene,
        ProjectiveDynamics(
            CELL, **{"tolerance": 1e-13 if real_numpy is np.float64 else None, "collisions": False, **options}
        ),
        DT,
    )


def stirred(sim: Simulation, rng: np.random.Generator, intervals: int) -> dict[str, torch.Tensor]:
    """Everything that a rollout can be differentiated by, at random."""

    def noise(value: torch.Tensor, scale: float) -> torch.Tensor:
        return scale * torch.as_tensor(rng.uniform(-1, 1, value.shape))

    inputs = {n: sim.parameter(n) for n in sim.parameters()}
    shares = dict.fromkeys(("poissons_ratio", "cable_length", "cavity_gas", "ambient_pressure"), 0.05)
    for name in (
        "youngs_modulus", "poissons_ratio", "density", "thickness", "bending", "section", "fibre_stiffness",
        "cell_stiffness", "cable_stiffness", "cavity_pressure", "cavity_gas", "ambient_pressure", "fluid_density",
        "fluid_velocity", "drag", "thrust", "damping", "amplitude", "frequency", "phase", "torque", "speed",
    ):  # fmt: skip
        if name in inputs:
            inputs[name] = inputs[name] * (1.0 + noise(inputs[name], shares.get(name, 0.2)))
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
    """Forces of all obstacles on the nodes that may be in contact in the last step [N], of world 0, shape (n, 3)."""
    model = sim.model
    z = model.matrices.of(sim.dt / sim.substeps).iteration.history.z.numpy()
    return z[
        model.topology.sizes.nodes : model.topology.sizes.nodes
        + len(model.topology.candidates) * model.topology.sizes.solids,
        :3,
    ]


def iterations(sim: Simulation) -> int:
    """Corrections of the last step of world 0."""
    return int(sim.report().iterations[0])


def forces_at(sim: Simulation, x: np.ndarray, u: float = 0.0, **parameters: np.ndarray) -> np.ndarray:
    """Elastic forces and weights of the nodes of world 0 at x [N], of shape (n_nodes, 3); 0 where they are fixed.

    All actuators have the signal u, and parameters are those of world 0.
    """
    model, point = at_rest(sim, x, u, **parameters)
    evaluate_residual(model, point, wp.zeros_like(point.x))
    return model.workspace.residual.numpy()[: model.topology.sizes.nodes, :3].astype(float)


def at_rest(sim: Simulation, x: np.ndarray, u: float = 0.0, **parameters: np.ndarray) -> tuple[ProjectiveModel, Point]:
    """The model with these parameters, whose shapes at rest have been evaluated, and x as a point."""
    model = sim.model
    given = {n: (np.asarray(v, dtype=real_numpy)[None], model.parameter(n).dtype) for n, v in parameters.items()}
    model = model.with_parameters({n: wp.array(v, dtype=t, device=model.device) for n, (v, t) in given.items()})
    state = sim.solver.state(model)
    state.position.assign(x[None].astype(real_numpy))
    control = wp.full((1, model.channels), u, dtype=model.scalar, device=model.device)
    still = wp.zeros_like(model.workspace.residual)
    x, everywhere = state.position.flatten(), model.workspace.everywhere
    point = Point(everywhere, control, x, still, model.scalar(1.0), state.time)
    evaluate_rest(model, point)
    return model, point


@dataclasses.dataclass
class Thin:
    """Energy of sheets and bars, and its gradient; by torch from singular values, angles and lengths."""

    rest: np.ndarray
    mesh: object
    E: np.ndarray
    nu: np.ndarray
    rho: np.ndarray
    thickness: np.ndarray
    bending: np.ndarray
    section: np.ndarray

    def __post_init__(self):
        t, b = len(self.mesh.tets), len(self.mesh.tets) + len(self.mesh.triangles)
        X = self.rest
        e1, e2 = (X[self.mesh.triangles[:, k]] - X[self.mesh.triangles[:, 0]] for k in (1, 2))
        self.volume = self.thickness * np.linalg.norm(np.cross(e1, e2), axis=1) / 2.0
        self.gram = np.linalg.inv(np.stack([[(a * b).sum(1) for a in (e1, e2)] for b in (e1, e2)]).transpose(2, 0, 1))
        self.mu = self.E[t:b] / (2.0 * (1.0 + self.nu[t:b]))
        self.lam = self.E[t:b] * self.nu[t:b] / (1.0 - self.nu[t:b] ** 2)
        self.length = np.linalg.norm(X[self.mesh.bars[:, 1]] - X[self.mesh.bars[:, 0]], axis=1)
        self.modulus = self.E[b:]
        self.mass = np.zeros(len(X))
        np.add.at(self.mass, self.mesh.triangles, (self.rho[t:b] * self.volume / 3.0)[:, None])
        np.add.at(self.mass, self.mesh.bars, (self.rho[b:] * self.section * self.length / 2.0)[:, None])
        hinge = self.mesh.hinges
        cot = [self._cotangents(X[hinge[:, 0]], X[hinge[:, 1]], X[hinge[:, k]]) for k in (2, 3)]
        (a0, a1), (b0, b1) = cot  # at the ends 0 and 1 of the edge, in the triangles 2 and 3
        self.weight = torch.as_tensor(np.stack([-a1 - b1, -a0 - b0, a0 + a1, b0 + b1], axis=1))
        areas = sum(
            np.linalg.norm(np.cross(X[hinge[:, 1]] - X[hinge[:, 0]], X[hinge[:, k]] - X[hinge[:, 0]]), axis=1) / 2.0
            for k in (2, 3)
        )
        self.spring = self.bending / areas
        v, n = self._fold(torch.as_tensor(X))
        self.at_rest = (v * n).sum(1)

    @staticmethod
    def _cotangents(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        def cot(p, q, r):
            cosine = ((q - p) * (r - p)).sum(1) / np.linalg.norm(q - p, axis=1) / np.linalg.norm(r - p, axis=1)
            return 1.0 / np.tan(np.arccos(cosine))

        return cot(a, b, c), cot(b, c, a)

    def _fold(self, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        p = y[torch.as_tensor(self.mesh.hinges)]
        v = (self.weight[:, :, None] * p).sum(1)
        n = torch.nn.functional.normalize(torch.linalg.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]), dim=1)
        m = torch.nn.functional.normalize(torch.linalg.cross(p[:, 0] - p[:, 1], p[:, 3] - p[:, 1]), dim=1)
        return v, torch.nn.functional.normalize(n + m, dim=1)

    def __call__(self, y: np.ndarray) -> tuple[float, np.ndarray]:
        y = torch.tensor(y, requires_grad=True)
        p = y[torch.as_tensor(self.mesh.triangles)]
        D = torch.stack([p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]], dim=2)
        C = torch.linalg.cholesky(torch.as_tensor(self.gram))
        s = torch.linalg.svdvals(D @ C)  # (D C) (D C)^T = D (D_0^T D_0)^-1 D^T = F F^T
        psi = torch.as_tensor(self.mu) * ((s - 1.0) ** 2).sum(1) + torch.as_tensor(self.lam) / 2 * (s.sum(1) - 2) ** 2
        v, n = self._fold(y)
        bent = torch.as_tensor(self.spring) / 2 * ((v - self.at_rest[:, None] * n) ** 2).sum(1)
        b = y[torch.as_tensor(self.mesh.bars)]
        longer = (b[:, 1] - b[:, 0]).norm(dim=1) - torch.as_tensor(self.length)
        drawn = torch.as_tensor(self.modulus * self.section / self.length) / 2 * longer**2
        total = (torch.as_tensor(self.volume) * psi).sum() + bent.sum() + drawn.sum()
        total.backward()
        return float(total.detach()), y.grad.numpy()


@dataclasses.dataclass
class Driven:
    """Energy of what drives `driven`, and its gradient; that of a cell by Newton's method in r and the multiplier."""

    rest: np.ndarray
    mesh: object
    fibre_stiffness: np.ndarray
    cell_stiffness: np.ndarray
    control: np.ndarray

    def __call__(self, y: np.ndarray) -> tuple[float, np.ndarray]:
        mesh, slope = self.mesh, np.zeros_like(y)
        length = 1.0 - 0.3 * self.control[0]
        F, V, inverse = self._deformation(mesh.fibres, y)
        m = mesh.fibre_direction[:, :, None]
        a = (F @ m)[:, :, 0]
        l = np.linalg.norm(a, axis=1)
        energy = (V * self.fibre_stiffness / 2 * (l - length) ** 2).sum()
        P = (self.fibre_stiffness * (l - length) / l)[:, None, None] * a[:, :, None] * np.swapaxes(m, 1, 2)
        self._spread(mesh.fibres, V, P, inverse, slope)
        F, V, inverse = self._deformation(mesh.pneumatic, y)
        gap = F - nearest(F, np.full(len(F), 1.0 + 0.5 * self.control[1]))
        energy += (V * self.cell_stiffness / 2 * (gap**2).sum((1, 2))).sum()
        self._spread(mesh.pneumatic, V, self.cell_stiffness[:, None, None] * gap, inverse, slope)
        return float(energy), slope

    def _deformation(self, tets: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
        edges, now = (np.swapaxes(x[tets[:, 1:]] - x[tets[:, :1]], 1, 2) for x in (self.rest, y))
        inverse = np.linalg.inv(edges)
        return now @ inverse, np.linalg.det(edges) / 6.0, inverse

    @staticmethod
    def _spread(tets: np.ndarray, V: np.ndarray, P: np.ndarray, inverse: np.ndarray, slope: np.ndarray) -> None:
        H = V[:, None, None] * P @ np.swapaxes(inverse, 1, 2)
        for k in range(3):
            np.add.at(slope, tets[:, k + 1], H[:, :, k])
            np.add.at(slope, tets[:, 0], -H[:, :, k])


@dataclasses.dataclass
class Strung:
    """Energy of cables of which each has its own nodes, spring constant and length, and its gradient."""

    routes: list[np.ndarray]
    stiffness: np.ndarray
    length: np.ndarray

    def __call__(self, y: np.ndarray) -> tuple[float, np.ndarray]:
        x = torch.tensor(y, requires_grad=True)
        energy = sum(
            k / 2 * torch.relu((x[r[1:]] - x[r[:-1]]).norm(dim=1).sum() - R) ** 2
            for r, k, R in zip(self.routes, self.stiffness, self.length, strict=True)
        )
        energy.backward()
        return float(energy.detach()), x.grad.numpy()


def nearest(F: np.ndarray, volume: np.ndarray) -> np.ndarray:
    """The matrix R with det R = `volume` that is nearest to F, shape (n, 3, 3)."""
    U, s, Vt = np.linalg.svd(F)
    flip = np.sign(np.linalg.det(U @ Vt))
    s[:, 2] *= flip
    U[:, :, 2] *= flip[:, None]
    r = np.maximum(s, 0.5)
    multiplier = np.zeros(len(F))
    for _ in range(60):
        others = np.stack([r[:, 1] * r[:, 2], r[:, 2] * r[:, 0], r[:, 0] * r[:, 1]], axis=1)
        left = np.concatenate([r - s - multiplier[:, None] * others, (r.prod(1) - volume)[:, None]], axis=1)
        J = np.zeros((len(F), 4, 4))
        for i in range(3):
            J[:, i, i] = 1.0
            for j in {0, 1, 2} - {i}:
                J[:, i, j] = -multiplier * r[:, 3 - i - j]
        J[:, :3, 3], J[:, 3, :3] = -others, others
        step = np.linalg.solve(J, left[:, :, None])[:, :, 0]
        r, multiplier = r - step[:, :3], multiplier - step[:, 3]
    assert np.abs(left).max(initial=0.0) < 1e-12
    return U * r[:, None, :] @ Vt


@dataclasses.dataclass
class IncrementalPotential:
    """Phi(y) = 1/(2 h^2) |y - s|_M^2 - load . (y - x) + E(y) of a step without active stress, and its gradient.

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
    thin: Thin | None = None
    driven: Driven | Strung | None = None

    def __post_init__(self):
        n = len(self.tets)
        self.E, self.nu, self.rho = self.E[:n], self.nu[:n], self.rho[:n]
        edges = np.swapaxes(self.rest[self.tets[:, 1:]] - self.rest[self.tets[:, :1]], 1, 2)
        self.volume = np.linalg.det(edges) / 6.0
        self.inverse = np.linalg.inv(edges)
        share = np.repeat(self.rho * self.volume / 4.0, 4)
        self.mass = np.bincount(self.tets.reshape(-1), share, len(self.x))[:, None]
        if self.thin is not None:
            self.mass = self.mass + self.thin.mass[:, None]
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
        for part in (self.thin, self.driven):
            if part is not None:
                energy, slope = (a + b for a, b in zip((energy, slope), part(y), strict=True))
        inertia = self.mass / self.h**2 * (y - s)
        return energy + 0.5 * (inertia * (y - s)).sum() - (self.load * (y - self.x)).sum(), slope + inertia - self.load
