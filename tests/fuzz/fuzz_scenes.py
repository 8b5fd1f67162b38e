"""Random scenes: valid ones as trees of plain descriptions, and what people, programs and accidents make of them."""

import dataclasses
import math
from typing import Any

import numpy as np

import warpbots as wb
from warpbots.scene import CONDITIONS, JOINTS
from warpbots.solvers import MPM, Articulated, Coupled, MassSpring, ProjectiveDynamics

CELL = 0.1
"""Size of a cell [m] of bodies of a few of them."""


@dataclasses.dataclass
class Part:
    """A constructor and its arguments, of which some are parts themselves."""

    make: Any
    fields: dict[str, Any]

    def __call__(self) -> Any:
        return self.make(**{name: made(value) for name, value in self.fields.items()})


def made(value: Any) -> Any:
    """A description as the thing itself."""
    if isinstance(value, Part):
        return value()
    if type(value) in (list, tuple):
        return type(value)(made(v) for v in value)
    if type(value) is dict:
        return {k: made(v) for k, v in value.items()}
    return value


class Draw:
    """Random descriptions in `dim` dimensions for one kind of solver."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.kind = self.one(["mpm", "springs", "projective", "articulated"])
        self.dim = int(self.rng.integers(2, 4)) if self.kind in ("mpm", "springs") else 3
        self.composed = self.dim == 3 and self.kind != "articulated" and self.chance(0.4)

    # numbers

    def one(self, options: Any) -> Any:
        options = list(options)
        return options[self.rng.integers(len(options))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def number(self, low: float, high: float) -> float:
        return float(self.rng.uniform(low, high))

    def power(self, low: float, high: float) -> float:
        """Between two powers of ten."""
        return float(10.0 ** self.rng.uniform(low, high))

    def vector(self, low: float, high: float, dim: int | None = None) -> tuple[float, ...]:
        return tuple(self.rng.uniform(low, high, dim or self.dim).tolist())

    def some(self, **fields: Any) -> dict[str, Any]:
        """Each of the fields with a probability of a third."""
        return {name: value() for name, value in fields.items() if self.chance(1 / 3)}

    def rotation(self) -> tuple:
        q, _ = np.linalg.qr(self.rng.normal(size=(self.dim, self.dim)))
        q[:, 0] *= np.sign(np.linalg.det(q))
        return tuple(map(tuple, q.tolist()))

    # shapes

    def box(self, lower: float = 0.0, upper: float = 0.4) -> Part:
        corner = np.array(self.vector(lower, lower + 0.1))
        return Part(wb.shapes.Box, {"lower": tuple(corner), "upper": tuple(corner + self.vector(0.2, upper))})

    def solid(self, depth: int = 0) -> Part:
        """A bounded shape in the quadrant of positive coordinates."""
        s, a, b = wb.shapes, self.vector(0.1, 0.2), self.vector(0.3, 0.5)
        kinds = {
            "box": self.box,
            "sphere": lambda: Part(s.Sphere, {"center": self.vector(0.2, 0.4), "radius": self.number(0.1, 0.3)}),
            "capsule": lambda: Part(s.Capsule, {"start": a, "end": b, "radius": self.number(0.1, 0.2)}),
            "cylinder": lambda: Part(s.Cylinder, {"start": a, "end": b, "radius": self.number(0.1, 0.2)}),
            "points": lambda: Part(
                s.Points, {"positions": self.rng.uniform(0.0, 0.4, (30, self.dim)), "volumes": np.full(30, CELL**3 / 8)}
            ),
            "distance": lambda: Part(
                s.DistanceGrid,
                {"values": _ball(self.dim, self.number(0.1, 0.2)), "lower": (0.0,) * self.dim, "spacing": 0.1},
            ),
            "truss": lambda: Part(
                s.Truss, {"joints": np.array([a, b, self.vector(0.5, 0.7)]), "bars": [[0, 1], [1, 2]], "radius": 0.05}
            ),
        }
        if depth < 2:
            kinds["union"] = lambda: Part(s.Union, {"shapes": [self.solid(depth + 1), self.solid(depth + 1)]})
            kinds["posed"] = lambda: Part(
                s.Posed,
                {"shape": self.solid(depth + 1), "translation": self.vector(0.0, 0.2), "rotation": self.rotation()},
            )
        if self.dim == 2:
            mask = self.rng.random((6, 5)) < 0.8
            kinds["silhouette"] = lambda: Part(s.Silhouette, {"mask": mask, "lower": (0.0, 0.0), "pixel": 0.08})
        else:
            x, tets = _tetrahedra(self.number(0.2, 0.5))
            kinds["tets"] = lambda: Part(s.TetMesh, {"vertices": x, "tets": tets})
            kinds["mesh"] = lambda: Part(s.TriangleMesh, {"vertices": x, "faces": _FACES})
        return kinds[self.one(kinds)]()

    def cheap(self) -> Part:
        """A shape whose elements are no work to find."""
        if self.chance(0.15):
            return Part(
                wb.shapes.Sheet.rectangle,
                {"lower": (0.0, 0.0), "upper": (0.4, 0.3), "thickness": 1e-3, "cells": (3, 2), "height": 0.2},
            )
        if self.chance(0.2):
            x, tets = _tetrahedra(self.number(0.2, 0.5))
            return Part(wb.shapes.TetMesh, {"vertices": x, "tets": tets})
        return self.box()

    def obstacle_shape(self) -> Part:
        s, up = wb.shapes, (0.0,) * (self.dim - 1) + (1.0,)
        down = (0.0,) * (self.dim - 1) + (self.number(-0.3, -0.02),)
        if self.chance(0.5):
            return Part(s.HalfSpace, {"point": down, "normal": up})
        if self.chance(0.3) and self.kind in ("mpm", "springs"):
            shape = (4,) * (self.dim - 1)
            heights = self.rng.uniform(-0.3, -0.1, shape)
            return Part(s.Heightfield, {"origin": (-1.0,) * (self.dim - 1), "spacing": 1.0, "heights": heights})
        turn = tuple(map(tuple, np.eye(self.dim).tolist()))
        below = (0.0,) * (self.dim - 1) + (-1.1,)
        return Part(s.Posed, {"shape": self.solid(1), "translation": below, "rotation": turn})

    # parts of soft scenes

    def material(self) -> Part:
        springs = self.kind == "springs"
        fields = {"youngs_modulus": self.power(3.5, 5.0), "poissons_ratio": 0.25 if springs else self.number(0.0, 0.45)}
        laws = ("neo_hookean", "fixed_corotated", "corotated", "linear", "st_venant_kirchhoff", "hencky")
        fields |= self.some(density=lambda: self.power(2.5, 3.5))
        if not springs:
            fields |= self.some(law=lambda: self.one(laws), incompressibility=lambda: self.one([0, 2]))
        elif self.chance(0.2):
            fields |= self.some(damping=lambda: 1e-3, yield_strain=lambda: 0.1, breaking_strain=lambda: 1.0)
        return Part(wb.Material, fields)

    def soft_body(self, name: str, aside: float) -> Part:
        shape = self.solid() if self.kind in ("mpm", "springs") and self.chance(0.7) else self.box()
        if self.kind == "projective":
            shape = self.cheap()
        elif self.composed:
            shape = self.box()
        everything = Part(wb.shapes.Box, {"lower": (-9.0,) * self.dim, "upper": (9.0,) * self.dim})
        half = Part(
            wb.shapes.HalfSpace, {"point": (0.35 + aside,) * self.dim, "normal": (1.0,) + (0.0,) * (self.dim - 1)}
        )
        return Part(
            wb.SoftBody,
            {"name": name, "shape": shape, "material": self.material(), "regions": {"all": everything, "half": half}}
            | self.some(velocity=lambda: self.vector(-0.3, 0.3), friction=lambda: self.number(0.0, 1.0))
            | self.some(color=lambda: self.vector(0.0, 1.0, 3)),
        )

    def actuator(self, name: str) -> Part:
        region, along = {"name": name, "region": self.one(["all", "half"])}, {"direction": self.vector(0.1, 1.0)}
        kinds = {
            "pressure": lambda: Part(wb.actuators.Pressure, region | {"max_pressure": self.power(0, 2.5)}),
            "muscle": lambda: Part(wb.actuators.Muscle, region | along | {"max_stress": self.power(0, 2.5)}),
            "cable": lambda: Part(
                wb.actuators.Cable,
                {"name": name, "waypoints": [self.vector(0.1, 0.2), self.vector(0.2, 0.3)], "stiffness": 10.0},
            ),
        }
        if self.kind == "projective" or self.chance(0.05):
            kinds["fibre"] = lambda: Part(
                wb.actuators.Fibre, region | along | {"stiffness": 2e3, "max_contraction": 0.3}
            )
            kinds["cell"] = lambda: Part(wb.actuators.PneumaticCell, region | {"stiffness": 2e3, "max_expansion": 0.3})
        if self.kind != "mpm" or self.chance(0.05):
            kinds["expansion"] = lambda: Part(
                wb.actuators.Expansion, region | {"max_strain": 0.1} | self.one([{}, along])
            )
        if self.kind == "springs" or self.chance(0.05):
            kinds["oscillation"] = lambda: Part(wb.actuators.Oscillation, region | {"amplitude": 0.1, "frequency": 5.0})
        return kinds[self.one(kinds)]()

    def soft_fields(self) -> dict[str, Any]:
        count = int(self.rng.integers(1, 3))
        bodies = [self.soft_body(f"body {k}", 1.2 * k) for k in range(count)]
        for k, body in enumerate(bodies[1:], 1):
            turn = tuple(map(tuple, np.eye(self.dim).tolist()))
            aside = (1.2 * k,) + (0.0,) * (self.dim - 1)
            body.fields["shape"] = Part(
                wb.shapes.Posed, {"shape": body.fields["shape"], "translation": aside, "rotation": turn}
            )
        fields = {
            "bodies": bodies,
            "actuators": [self.actuator(f"actuator {k}") for k in range(self.rng.integers(0, 3))],
            "obstacles": [self.obstacle(f"obstacle {k}") for k in range(self.rng.integers(0, 3))],
        }
        if self.kind != "mpm":
            fields |= self.some(
                constraints=lambda: [Part(wb.Constraint, {"region": "half"})],
                loads=lambda: [Part(wb.Load, {"region": "all", "force": self.vector(-1.0, 1.0)})],
            )
            if count == 2 and self.chance(0.3):
                point = (0.9,) + (0.2,) * (self.dim - 1)
                fields["attachments"] = [
                    Part(wb.Attachment, {"name": "hinge", "first": "body 0", "second": "body 1", "points": [point]})
                ]
        if self.kind == "projective":
            fields |= {} if self.composed else self.some(fluid=lambda: Part(wb.Fluid, {"density": 1000.0}))
            if self.chance(0.2):
                fields |= {"bodies": [*bodies, self.rigid_body("bone", (0.2, 0.2, 0.2), 0.12)]}
        low, high = (-1.2,) * self.dim, (2.2,) * self.dim
        fields |= self.some(domain=lambda: (low, high), gravity=lambda: self.vector(-9.0, 9.0), task=self.task)
        return fields

    def obstacle(self, name: str) -> Part:
        fields = {"shape": self.obstacle_shape(), "name": name, "condition": self.one(CONDITIONS)}
        return Part(wb.Obstacle, fields | self.some(friction=lambda: 0.3, static_friction=lambda: 0.8))

    def task(self) -> Part:
        fields = {"cell_size": CELL, "control_interval": 0.01, "substeps": 4, "steps": 10}
        return Part(wb.Task, fields | {"direction": self.vector(-1.0, 1.0)} | self.some(clock=lambda: 0.5))

    # rigid scenes

    def rigid_body(self, name: str, position: tuple[float, ...], size: float = 0.1) -> Part:
        s = wb.shapes
        box = Part(s.Box, {"lower": (-size,) * 3, "upper": (size,) * 3})
        ball = Part(s.Sphere, {"center": (0.0,) * 3, "radius": size})
        pole = Part(s.Capsule, {"start": (0.0,) * 3, "end": (0.0, 0.0, size), "radius": size / 3})
        inertia = Part(wb.Inertia, {"mass": 1.0, "center": (0.0,) * 3, "moments": (0.01, 0.01, 0.01)})
        return Part(
            wb.RigidBody,
            {"name": name, "shape": self.one([box, ball, pole]), "position": position}
            | self.some(density=lambda: 500.0, inertia=lambda: inertia, rotation=self.rotation),
        )

    def rigid_fields(self) -> dict[str, Any]:
        count = int(self.rng.integers(1, 4))
        bodies = [self.rigid_body(f"body {k}", (0.0, 0.0, 0.5 + 0.3 * k)) for k in range(count)]
        joints, motors = [], []
        for k in range(count):
            kind = self.one(JOINTS)
            parent = None if k == 0 else self.one([None, f"body {k - 1}"])
            fields = {"name": f"joint {k}", "kind": kind, "parent": parent, "child": f"body {k}"}
            fields |= {"position": (0.0, 0.0, 0.5 + 0.3 * k)} | self.some(
                axis=lambda: self.vector(0.1, 1.0), stiffness=lambda: 1.0, damping=lambda: 0.1, armature=lambda: 0.01
            )
            freedom = JOINTS[kind].freedom
            if freedom and kind not in ("ball", "free"):
                fields |= self.some(start=lambda: 0.1, start_velocity=lambda: 0.1, lower=lambda: -1.0)
            joints.append(Part(wb.Joint, fields))
            if freedom and self.chance(0.5):
                make = self.one(
                    [wb.actuators.Torque] if kind in ("ball", "free") else [wb.actuators.Torque, wb.actuators.Servo]
                )
                gain = {"max_torque": 1.0} if make is wb.actuators.Torque else {"stiffness": 5.0, "damping": 0.1}
                motors.append(Part(make, {"name": f"motor {k}", "joint": f"joint {k}"} | gain))
        fields = {"bodies": bodies, "joints": joints[: int(self.rng.integers(0, count + 1))], "actuators": motors}
        names = {j.fields["name"] for j in fields["joints"]}
        fields["actuators"] = [m for m in motors if m.fields["joint"] in names]
        if self.chance(0.5):
            bodies[0].fields["points"] = 8
            fields["obstacles"] = [self.obstacle("ground")]
            law = {"points": "body 0", "solid": "ground", "stiffness": 1e6}
            law |= self.some(damping=lambda: 1e6, friction=lambda: 0.5) | {"viscosity": 1e4}
            fields["contacts"] = [Part(wb.Contact, law)]
        return fields | self.some(gravity=lambda: self.vector(-9.0, 9.0, 3))

    # rigid and soft bodies

    def composed_fields(self) -> dict[str, Any]:
        """A soft scene whose first body rises against one or two rigid bodies, by a joint to the world or without."""
        fields = self.soft_fields()
        bodies, joints = [], []
        fields["bodies"][0].fields["velocity"] = (0.0, 0.0, self.number(0.0, 9.0))
        upper = fields["bodies"][0].fields["shape"].fields.get("upper", ())
        top = upper[2] if len(upper) == 3 else 0.2
        for k in range(self.rng.integers(1, 3)):
            size = self.number(0.1, 0.2)
            place = (self.number(0.1, 0.3), self.number(0.1, 0.3), top + self.number(0.9, 1.1) * size + 0.5 * k)
            bodies.append(self.rigid_body(f"link {k}", place, size))
            bodies[k].fields |= self.some(friction=lambda: self.number(0.0, 1.0))
            if self.chance(0.7):
                kind = self.one([name for name in JOINTS if JOINTS[name].freedom])
                ends = {"parent": self.one([None, *(b.fields["name"] for b in bodies[:k])]), "child": f"link {k}"}
                options = self.some(axis=lambda: self.vector(0.1, 1.0), stiffness=lambda: 1.0, damping=lambda: 0.1)
                speed = self.vector(-8.0, 2.0, JOINTS[kind].freedom)
                joints.append(Part(wb.Joint, {"name": f"joint {k}", "kind": kind, "position": place,
                                              "start_velocity": speed} | ends | options))  # fmt: skip
                if self.chance(0.5):
                    motor = {"name": f"motor {k}", "joint": f"joint {k}", "max_torque": 1.0}
                    fields["actuators"].append(Part(wb.actuators.Torque, motor))
        fields["bodies"] = [*fields["bodies"], *bodies]
        return fields | {"joints": joints}

    # all together

    def scene(self) -> Part:
        if self.composed:
            return Part(wb.Scene, self.composed_fields())
        return Part(wb.Scene, self.rigid_fields() if self.kind == "articulated" else self.soft_fields())

    def solver(self) -> Part:
        if self.composed and self.kind != "projective":
            bodies = Part(Articulated, self.some(integrator=lambda: self.one(["bdf1", "sdirk2"])))
            return Part(Coupled, {"matter": self.matter_solver(), "bodies": bodies})
        return self.matter_solver()

    def matter_solver(self) -> Part:
        if self.kind == "mpm":
            return Part(MPM, {"dx": CELL} | self.some(particles_per_cell=lambda: 2**self.dim))
        if self.kind == "springs":
            options = self.some(integrator=lambda: "verlet", damping=lambda: 1e-3, collision=lambda: 1.0)
            return Part(MassSpring, {"spacing": CELL} | options | self.some(lattice=lambda: "random"))
        if self.kind == "projective":
            return Part(ProjectiveDynamics, {"cell_size": CELL} | self.some(collisions=lambda: False))
        return Part(Articulated, self.some(integrator=lambda: self.one(["bdf1", "sdirk2"])))

    def simulation(self) -> Part:
        fields = {"scene": self.scene(), "solver": self.solver(), "dt": 2e-3, "substeps": None}
        return Part(wb.Simulation, fields | self.some(worlds=lambda: 2))


def _ball(dim: int, radius: float) -> np.ndarray:
    axes = np.meshgrid(*[np.linspace(-0.2, 0.2, 5)] * dim, indexing="ij")
    return np.linalg.norm(axes, axis=0) - radius


_FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def _tetrahedra(size: float) -> tuple[np.ndarray, np.ndarray]:
    return size * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]]), np.array([[0, 1, 2, 3]])


# what goes wrong

JUNK = (
    None, "", "abc", "1.0", b"x", math.nan, math.inf, -math.inf, 0, 0.0, -0.0, -1, 1, 2, 0.5, 1e-30, 1e-310, 1e30, 1e39,
    1e200, -1e300, 10**400, 2**40, True, 1j, (), [], {}, set(), [None], ["a", "b"], (1.0,), (1.0, 2.0), (0.0, 0.0, 0.0),
    (1.0, 2.0, 3.0, 4.0), ((1.0,), (1.0, 2.0)), (math.nan,) * 3, (math.inf, 0.0, 0.0), object, wb.Material, wb.MPM,
    np.zeros(0), np.zeros((3, 3)), np.ones((2, 2, 2)), np.array(["a"]), np.array(1.0), np.float32(0.1), np.int64(3),
    np.array([1, None]), np.full(3, np.nan), lambda: 0, range(3), wb.shapes.Box((0.0, 0.0), (1.0, 1.0)),
    wb.shapes.Box((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)), wb.Material(1e4), "body 0", "all", "fixed", "ball", "sticky",
)  # fmt: skip
"""What people put where something else belongs."""

FACTORS = (0.0, -1.0, 0.5, 2.0, 1e-3, 1e3, 1e-9, 1e9, 1e-30, 1e30)


def places(value: Any) -> list[tuple[Any, Any]]:
    """All (container, key) in a description."""
    inner = value.fields if isinstance(value, Part) else value
    if type(inner) is dict:
        keys = list(inner)
    elif type(inner) is list:
        keys = list(range(len(inner)))
    else:
        return []
    return [p for k in keys for p in [(inner, k), *places(inner[k])]]


def spoil(rng: np.random.Generator, tree: Part) -> None:
    """One accident somewhere in a description."""
    found = places(tree)
    container, key = found[rng.integers(len(found))]
    value, kind = container[key], rng.integers(6)
    if kind == 0 and type(container) is list:  # twice, or not at all
        container.append(value) if rng.random() < 0.5 else container.pop(key)
    elif kind == 1 and type(container) is dict and rng.random() < 0.5:
        del container[key]
    elif kind == 2:  # what belongs elsewhere
        other, at = found[rng.integers(len(found))]
        container[key] = None if isinstance(other[at], Part | dict | list) else other[at]
    elif kind <= 4 and type(value) in (float, int, tuple, np.ndarray):
        container[key] = _scaled(rng, value)
    else:
        container[key] = JUNK[rng.integers(len(JUNK))]


def _scaled(rng: np.random.Generator, value: Any) -> Any:
    factor = FACTORS[rng.integers(len(FACTORS))]
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "if":
            return value
        value = value.astype(float) if value.dtype.kind == "f" or rng.random() < 0.5 else value.copy()
        if value.size:
            at = np.unravel_index(rng.integers(value.size), value.shape)
            value[at] = int(np.clip(factor * 3, -9, 9)) if value.dtype == int else value[at] * factor
        return value
    if isinstance(value, tuple) and value:
        k = int(rng.integers(len(value)))
        if rng.random() < 0.2:
            return value[:k]
        return (*value[:k], _scaled(rng, value[k]), *value[k + 1 :])
    return value * factor if isinstance(value, float) or type(value) is int and abs(value) < 1e300 else value
