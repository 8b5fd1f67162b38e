"""Laws, solvers and actuators under test: one line here adds a new one.

Also the smallest scenes that show an effect, in SI units.
"""

import dataclasses
import sys
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
import warp as wp

from warpbots.actuation_laws import law_and_constants, proportional, stress_law
from warpbots.actuation_laws.stress_checks import evaluated
from warpbots.numerics import precision
from warpbots.scene import (
    Box,
    Cable,
    CamClay,
    Constraint,
    DielectricElastomer,
    DruckerPrager,
    Expansion,
    Fibre,
    FibreReinforcement,
    HalfSpace,
    Load,
    Material,
    MaxwellBranch,
    Muscle,
    Obstacle,
    Oscillation,
    PneumaticCell,
    Pressure,
    Scene,
    SoftBody,
    StressActuator,
    VonMises,
    floor,
)
from warpbots.simulation import Simulation
from warpbots.solvers import MPM, Articulated, MassSpring, ProjectiveDynamics

sys.path.append(str(Path(__file__).resolve().parents[1] / "docs" / "examples"))
from own_solver import ExplicitFEM


class LawCase(NamedTuple):
    """What tests have to know of a law of a solid.

    Attributes:
        constants: `Material.constants` for its tests.
        inverts: Whether it is defined for det F < 0, too.
    """

    constants: dict[str, float] = MappingProxyType({})
    inverts: bool = False


LAW_CASES = {
    "neo_hookean": LawCase(),
    "fixed_corotated": LawCase(inverts=True),
    "corotated": LawCase(inverts=True),
    "linear": LawCase(inverts=True),
    "st_venant_kirchhoff": LawCase(inverts=True),
    "hencky": LawCase(),
    "mooney_rivlin": LawCase({"second_invariant_share": 0.3}),
    "ogden": LawCase({"exponent": 3.1, "second_exponent": -1.7, "second_share": 0.2}),
    "gent": LawCase({"locking_invariant": 17.0}),
}
"""The constitutive laws of solids, the keys of `warpbots.materials.LAWS`: one line here adds a law to all their tests."""

LAWS = tuple(LAW_CASES)
"""Their names."""

FLUIDS = ("weakly_compressible",)
"""Laws of fluids, likewise."""

UPRIGHT_LAWS = (*(name for name, law in LAW_CASES.items() if not law.inverts), *FLUIDS)
"""Laws that are defined for det F > 0 alone."""

ROTATING_LAWS = tuple(law for law in LAWS if law != "linear")
"""Laws that know a rotation from a stretch."""

INCOMPRESSIBILITY = (0, 2, 4)
"""Exponents of the added volumetric energy; 0 for none."""

DIMENSIONS = (2, 3)

CONSTITUTIONS = (("neo_hookean", 0), ("fixed_corotated", 2), ("linear", 0), ("st_venant_kirchhoff", 4))
"""Laws and exponents, every exponent at least once: what whole simulations run with, since each pair has to be compiled."""

CONTINUA = {"mpm": MPM}
"""Solvers that know constitutive laws and deformation gradients: a function of the resolution [m]."""

LATTICES = {
    "springs": lambda dx: MassSpring(dx / 2),
    "springs-verlet-random": lambda dx: MassSpring(
        dx / 2, "random", "verlet", contact_stiffness=2e6, contact_damping=0.3
    ),
    "springs-rk4": lambda dx: MassSpring(dx / 2, integrator="rk4"),
}
"""Mass-spring solvers with every lattice, integrator and kind of surface: a function of the resolution [m]."""

_EXACT = {"float32": None, "float64": 1e-13}[precision]

ELEMENTS = {
    "projective": lambda dx: ProjectiveDynamics(dx, tolerance=_EXACT),
    "projective-quadratic": lambda dx: ProjectiveDynamics(dx, tolerance=_EXACT, elements="quadratic_tetrahedra"),
    "projective-hexahedra": lambda dx: ProjectiveDynamics(dx, tolerance=_EXACT, elements="hexahedra"),
}
"""Implicit solvers of finite elements, in space: a function of the resolution [m]."""

EXPLICIT = CONTINUA | LATTICES
"""Solvers with explicit steps."""

OWN = {"own": ExplicitFEM}
"""The example of a solver in the documentation, which is to be one in every respect: likewise, in space."""

SOLVERS = EXPLICIT | ELEMENTS | OWN
"""All solvers of soft bodies by name."""

STEPPING = tuple(s for s in SOLVERS if s not in ELEMENTS or s == "projective")
"""Solvers that differ in more than their elements: for tests of what is the same code for all elements."""

SPACES = [(s, dim) for s in SOLVERS for dim in DIMENSIONS if dim == 3 or s not in ELEMENTS | OWN]
"""Solvers with the dimensions that they know."""

_ONE_LAW = {*LATTICES, *OWN, *ELEMENTS} - {"projective"}
"""Solvers that do not tell laws apart, or do so in code that another one of these shares."""

WORKING = [(s, law, dim) for s, dim in SPACES for law in CONSTITUTIONS if s not in _ONE_LAW or law == CONSTITUTIONS[0]]
"""Solvers with the laws that they tell apart, a lattice has but one, and the dimensions that they know."""

ACTUATORS = {
    "pressure": lambda dim: Pressure("pressure", "root", 500.0),
    "muscle": lambda dim: Muscle("muscle", "root", (1.0, 0.5, 0.25)[:dim], 500.0),
    "dielectric": lambda dim: DielectricElastomer("dielectric", "root", (1.0, 0.5, 0.25)[:dim], 4e6, 4.7),
    "fibre": lambda dim: Fibre("fibre", "root", (1.0, 0.5, 0.25)[:dim], 2e3, 0.3),
    "pneumatic cell": lambda dim: PneumaticCell("pneumatic cell", "root", 2e3, 0.3),
    "cable": lambda dim: Cable("cable", ((0.28,) * dim, (0.34, 0.3, 0.32)[:dim], (0.47,) * dim), 200.0),
    "expansion": lambda dim: Expansion("expansion", "root", 0.1, (1.0, 0.5, 0.25)[:dim]),
    "oscillation": lambda dim: Oscillation("oscillation", "root", 0.1, 12.0, 0.4),
    "wave": lambda dim: Oscillation("wave", "root", 0.1, 7.0, 0.2, wave=(20.0, 5.0, 10.0)[:dim]),
}
"""One small instance of each actuator, for `block`."""


IDLE = {"body_friction"}
"""Parameters that have no effect on a body alone: it touches no other one, nor itself."""


def knows(solver: str, actuator: str) -> bool:
    """Whether a solver supports an actuator."""
    made = ACTUATORS[actuator](3)
    if isinstance(made, StressActuator):
        return is_proportional(made) or solver in CONTINUA | ELEMENTS
    if solver in OWN:
        return False
    if actuator in {"fibre", "pneumatic cell"}:
        return solver in ELEMENTS
    return solver in LATTICES | ELEMENTS or actuator not in {"expansion", "oscillation", "wave"}


def is_proportional(actuator) -> bool:
    """Whether an actuator is a stress that is proportional to its control."""
    return isinstance(actuator, StressActuator) and stress_law(actuator, 3)[0] is proportional


def is_even(actuator, dim: int) -> bool:
    """Whether an actuator is a stress that is no different for -u: its law has no slope at u = 0."""
    if not isinstance(actuator, StressActuator) or is_proportional(actuator):
        return False
    F, T = np.eye(dim) + 0.02 * np.arange(dim * dim).reshape(dim, dim), np.diag([1.0, 2.0, -4.0][:dim])
    both = (np.stack([A, A]) for A in (F, T))
    stress, _, slope = evaluated(*law_and_constants(actuator, dim), dim, next(both), np.array([0.0, 1.0]), next(both))
    return not slope[0] and bool(stress[1].any())


def least(solver: str) -> int:
    """The smallest dimension that a solver supports."""
    return min(dim for s, dim in SPACES if s == solver)


def block(
    dim: int,
    law: str = "neo_hookean",
    incompressibility: int = 0,
    *,
    actuators: tuple = (),
    obstacles: tuple = (),
    gravity: tuple[float, ...] | None = None,
    velocity: tuple[float, ...] | None = None,
    youngs_modulus: float = 1e4,
    damping: float = 0.0,
) -> Scene:
    """A cube of 0.25 m in a domain of 1 m; its half at small x is the region ``root``."""
    lower, upper = np.full(dim, 0.25), np.full(dim, 0.5)
    middle = np.array([0.375, *upper[1:]])
    constants = LAW_CASES[law].constants if law in LAW_CASES else None
    material = Material(youngs_modulus, 0.3, 1000.0, law, incompressibility, damping, constants=constants)
    body = SoftBody("block", Box(lower, upper), material, regions={"root": Box(lower, middle)}, velocity=velocity)
    return Scene((body,), actuators, obstacles, gravity, domain=((0.0,) * dim, (1.0,) * dim))


def assert_same(found, expected, name: str = "") -> None:
    """Equal to the last bit on a CPU; on a GPU, whose atomic sums have no order, to rounding."""
    found, expected = (to_numpy(v) if isinstance(v, torch.Tensor) else v for v in (found, expected))
    if wp.get_device().is_cuda:
        least = 1e-5 * np.abs(expected).max(initial=0.0)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=least, err_msg=name)
    else:
        np.testing.assert_array_equal(found, expected, err_msg=name)


def busy(dim: int, law: str = "neo_hookean", incompressibility: int = 0, solver: str = "mpm") -> Scene:
    """A block with every actuator that `solver` knows; it slides over a floor with friction into a slippery wall.

    Stresses that are not proportional to a control have kernels of their own, and are left to `test_stress_laws`.

    Matter feels both through the grid. The outer masses of a lattice are inside of them, and slide so easily that none
    is about to stick. The surface of tetrahedra comes to both within a step.
    """
    up, left, mu = (0.23, 0.57, 0.3) if solver in CONTINUA else (0.262, 0.488, 0.1)
    if solver in ELEMENTS:
        up, left, mu = 0.245, 0.505, 0.3
    known = [actuator(dim) for name, actuator in ACTUATORS.items() if knows(solver, name)]
    known = [a for a in known if law not in FLUIDS or not isinstance(a, Muscle)]  # a fluid forgets how it has turned
    actuators = tuple(a for a in known if not isinstance(a, StressActuator) or is_proportional(a))
    if solver in OWN:
        return block(dim, law, incompressibility, actuators=actuators)
    return block(
        dim,
        law,
        incompressibility,
        actuators=actuators,
        damping=1e-3 if solver in LATTICES | ELEMENTS else 0.0,
        obstacles=(
            floor(height=up, dim=dim, friction=mu),
            Obstacle(HalfSpace((left, *(0.0,) * (dim - 1)), (-1.0, *(0.0,) * (dim - 1))), "slip", name="wall"),
        ),
    )


def held(scene: Scene) -> Scene:
    """A busy scene whose block has damping, a load, and slices that stay, move along a line and move in a plane."""
    (body,), dim = scene.bodies, scene.dim
    lower, upper = body.shape.bounds

    def slice_of(first: float, last: float) -> Box:
        """The part of the block between two fractions of its length."""
        start, end = lower.copy(), upper.copy()
        start[0], end[0] = lower[0] + np.array([first, last]) * (upper - lower)[0]
        return Box(start, end)

    slices = {"fixed": slice_of(0.0, 0.24), "line": slice_of(0.26, 0.49), "plane": slice_of(0.51, 0.65)}
    along = {"fixed": None, "line": (1.0, 0.5, 0.25)[:dim], "plane": (0.5, -1.0, 0.0)[:dim]}  # the line is in the plane
    constraints = [Constraint(f, f, along[f], name=f) for f in slices]
    regions = body.regions | slices | {"tip": slice_of(0.8, 1.0)}
    body = dataclasses.replace(body, regions=regions, material=dataclasses.replace(body.material, damping=5e-3))
    load = Load("tip", (3.0, -5.0, 2.0)[:dim])
    return dataclasses.replace(scene, bodies=(body,), constraints=constraints, loads=(load,))


def worn(scene: Scene) -> Scene:
    """The scene with bodies whose springs set at a strain of 0.01 and break at 2."""
    limits = {"yield_strain": 0.01, "breaking_strain": 2.0}
    bodies = [dataclasses.replace(b, material=dataclasses.replace(b.material, **limits)) for b in scene.bodies]
    return dataclasses.replace(scene, bodies=bodies)


def yielding(dim: int) -> Scene:
    """A busy scene whose block, between sand and rubber and beside snow, flows where it is sheared, sooner in its root.

    Rubber has two families of fibres and two Maxwell branches, the block one branch.
    """
    scene = busy(dim, "hencky")
    (body,) = scene.bodies
    branches = MaxwellBranch(3e3, 0.02), MaxwellBranch(2e3, 0.004)
    weak, strong = (
        dataclasses.replace(body.material, plasticity=VonMises(stress, 2e3), branches=branches[:1])
        for stress in (300.0, 400.0)
    )
    clay = dataclasses.replace(body, material=strong, region_materials={"root": weak})
    lower, upper = body.shape.bounds
    below = Box((*lower[:-1], lower[-1] - 0.1), (*upper[:-1], lower[-1]))
    above = Box((*lower[:-1], upper[-1]), (*upper[:-1], upper[-1] + 0.1))
    sand = SoftBody("sand", below, dataclasses.replace(body.material, plasticity=DruckerPrager(25.0)))
    beside = Box((lower[0] - 0.1, *lower[1:]), (lower[0], *upper[1:]))
    snow = SoftBody("snow", beside, dataclasses.replace(body.material, plasticity=CamClay(200.0, 1.1, 0.2, 5.0)))
    fibres = [FibreReinforcement(along, 2e4) for along in ((1.0, *(0.2,) * (dim - 1)), (0.1, *(1.0,) * (dim - 1)))]
    rubber = dataclasses.replace(body.material, fibres=fibres, branches=branches)
    return dataclasses.replace(scene, bodies=[clay, sand, snow, SoftBody("rubber", above, rubber)])


def lame(E, nu):
    """mu = E / (2 (1 + nu)) and lambda = E nu / ((1 + nu) (1 - 2 nu))."""
    return E / (2 * (1 + nu)), E * nu / ((1 + nu) * (1 - 2 * nu))


def rotation_of(F: np.ndarray) -> np.ndarray:
    """The nearest matrix of determinant 1: R = U diag(1, ..., det(U V^T)) V^T, shape (n, dim, dim)."""
    U, _, Vt = np.linalg.svd(F)
    U[..., -1] *= np.linalg.det(U @ Vt)[..., None]
    return U @ Vt


def fields_of(state) -> dict[str, torch.Tensor]:
    """Fields of a state by name, but for those that are empty in this model, or say only what became of its steps."""
    log = ("lost", "shorter_steps")
    return {name: value for name, value in vars(state).items() if value.numel() and name not in log}


def stirred(sim: Simulation, rng: np.random.Generator, intervals: int) -> dict[str, torch.Tensor]:
    """Everything that a rollout can be differentiated by, at random and different in every world.

    The scene is moved, strained, set in motion towards its floor and its wall, and its parameters vary by 5 %, or the
    nodes of a shape at rest by 4 mm.
    """
    rest = {name: to_numpy(value) for name, value in fields_of(sim.state()).items()}
    dim = sim.scene.dim
    inputs = {n: to_numpy(sim.parameter(n)) for n in sim.parameters()}
    inputs = {n: v * (1.0 + 0.05 * rng.uniform(-1, 1, v.shape)) for n, v in inputs.items()}
    if "load" in inputs:
        particles = sim.model.matter
        inputs["load"] += rng.uniform(-1, 1, inputs["load"].shape) * (particles.density * particles.volume)[:, None]
    if "drag" in inputs:
        inputs["drag"] += rng.uniform(1.0, 3.0, inputs["drag"].shape) * inputs["mass"]
    for name in ("hardening", "hardening_coefficient", "cohesion", "fibre_modulus", "branch_modulus"):
        if name in inputs:
            inputs[name] += 0.1  # which is zero, the least it may be, where matter has none
    if "rest_position" in inputs:
        rest_shape = to_numpy(sim.parameter("rest_position"))
        inputs["rest_position"] = rest_shape + 0.004 * rng.uniform(-1, 1, rest_shape.shape)
    if "friction" in inputs:
        inputs["friction"] = np.maximum(inputs["friction"], 0.1)  # which the slippery wall has to ignore
    scale = {
        "position": 0.004, "velocity": 0.3, "velocity_gradient": 1.0, "deformation": 0.05, "time": 0.05,
        "plastic": 0.01, "branch_deformation": 0.05, "broken": 0.1,
    }  # fmt: skip
    inputs |= {n: v + scale[n] * rng.uniform(-1, 1, v.shape) for n, v in rest.items()}
    inputs["velocity"] += [1.5, *(-0.5,) * (dim - 2), -0.8]
    inputs["control"] = rng.uniform(-0.8, 0.8, (sim.worlds, intervals, sim.channels))
    state = sim.state()

    def tensor(name: str, value: np.ndarray) -> torch.Tensor:
        like = getattr(state, name, state.position)
        return torch.as_tensor(value, dtype=like.dtype, device=like.device)

    return {n: tensor(n, v) for n, v in inputs.items()}


def end_of(sim: Simulation, inputs: dict[str, torch.Tensor]):
    """Final state of a rollout from `inputs`, which are named as those of `stirred`."""
    inputs = dict(inputs)
    control = inputs.pop("control")
    state = sim.state(**{n: inputs.pop(n) for n in fields_of(sim.state())})
    return sim.rollout(control, control.shape[1], state, **inputs).final


def dynamics(model, state, control=None):
    """The equations of motion of articulated bodies at a state, as NumPy arrays."""
    solver, none = Articulated(), wp.zeros((model.worlds, model.channels), dtype=wp.float64, device=model.device)
    found = solver.equations(model)
    solver.dynamics(model, state, none if control is None else control, found)
    return found.mapped(lambda array: array.numpy())


def to_numpy(tensor) -> np.ndarray:
    """A tensor of any device as float64."""
    return tensor.detach().cpu().numpy().astype(np.float64)


class Loss:
    """A function of the inputs of a rollout, with random weights of the final state's entries."""

    def __init__(self, sim: Simulation, rng: np.random.Generator):
        self.sim = sim
        self.inputs = stirred(sim, rng, intervals=2)
        final = fields_of(end_of(sim, self.inputs))
        self.weights = {n: torch.as_tensor(rng.normal(size=t.shape)) / t.abs().max() for n, t in final.items()}
        self.size = float(sum((w * final[n]).abs().sum() for n, w in self.weights.items()))

    def __call__(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        final = fields_of(end_of(self.sim, inputs))
        return sum((w * final[n]).sum() for n, w in self.weights.items())

    def gradient(self) -> dict[str, torch.Tensor]:
        inputs = {n: t.clone().requires_grad_() for n, t in self.inputs.items()}
        return dict(zip(inputs, torch.autograd.grad(self(inputs), list(inputs.values())), strict=True))

    def along(self, name: str, direction: torch.Tensor, h: float) -> float:
        """Loss with one input moved by h times a direction."""
        return float(self({**self.inputs, name: self.inputs[name] + h * direction}))


def assert_gradients(sim: Simulation, rng: np.random.Generator, h: float = 1e-6) -> None:
    """Gradients of a stirred rollout to everything are central differences over `h` of each input, to 1e-6; float64.

    Each input moves in one random direction.
    """
    loss = Loss(sim, rng)
    for name, g in loss.gradient().items():
        assert (g != 0).any(), f"{name} has no effect here"
        d = torch.as_tensor(rng.uniform(-1, 1, g.shape)) * loss.inputs[name].abs().clamp(min=1e-3)
        slope = float((g * d).sum())
        difference = (loss.along(name, d, h) - loss.along(name, d, -h)) / (2 * h)
        allowed = 1e-6 * abs(slope) + 1e-9 * float((g * d).abs().sum()) + 1e-15 * loss.size / h
        assert abs(slope - difference) < allowed, name
