"""The model of projective dynamics."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Self

import numpy as np
import warp as wp

from warpbots.actuation_laws import ActiveLaw
from warpbots.contact.solid import Solids
from warpbots.contact.solid_forms import widths
from warpbots.numerics import real
from warpbots.scene import RigidBody, Scene, SoftBody
from warpbots.solvers.array_model import ArrayModel
from warpbots.solvers.articulated.model import NEVER, ArticulatedModel
from warpbots.solvers.articulated.model import PARAMETERS as ARTICULATED
from warpbots.solvers.articulated.robot import ArticulatedRobot
from warpbots.solvers.law_groups import LawGroup
from warpbots.solvers.places import Places
from warpbots.solvers.projective.contact.bone_surface import body_of, never_in_contact
from warpbots.solvers.projective.contact.node_contact import ObstacleArrays
from warpbots.solvers.projective.contact.pair_arrays import CLEARANCE, MARGIN, PairArrays
from warpbots.solvers.projective.contact.surface_search import PAIRS
from warpbots.solvers.projective.elements.element import Kind
from warpbots.solvers.projective.elements.reference_elements import SOLIDS
from warpbots.solvers.projective.global_matrix import GlobalMatrices
from warpbots.solvers.projective.mesh import Mesh
from warpbots.solvers.projective.recorded import with_records
from warpbots.solvers.projective.topology import MeshTopology, constant_array
from warpbots.solvers.projective.workspace import ProjectiveWorkspace
from warpbots.solvers.records import with_friction
from warpbots.solvers.solver import Parameter

__all__ = ["SKELETON", "ProjectiveModel"]

_ANY = (-float("inf"), float("inf"))
_POSITIVE = (0.0, float("inf"))

_PARAMETERS = {
    "youngs_modulus": Parameter("Pa", *_POSITIVE, "element", "Young's modulus", intensive=True),
    "poissons_ratio": Parameter("1", -1.0, 0.5, "element", "Poisson's ratio", intensive=True),
    "density": Parameter("kg/m^3", *_POSITIVE, "element", "density at rest", intensive=True),
    "damping": Parameter("s", *_POSITIVE, "element", "time of Kelvin-Voigt damping", inclusive=True, intensive=True),
    "thickness": Parameter("m", *_POSITIVE, "triangle", "thickness of sheets", intensive=True),
    "bending": Parameter("N m", *_POSITIVE, "hinge", "flexural rigidity of sheets", inclusive=True, intensive=True),
    "section": Parameter("m^2", *_POSITIVE, "bar", "cross-section of bars"),
    "fibre_stiffness": Parameter("Pa", *_POSITIVE, "fibre", "stiffness of fibres", inclusive=True),
    "cell_stiffness": Parameter("Pa", *_POSITIVE, "cell", "stiffness of pneumatic cells", inclusive=True),
    "cable_stiffness": Parameter("N/m", *_POSITIVE, "cable", "spring constant of cables", inclusive=True),
    "cable_length": Parameter("m", *_POSITIVE, "cable", "length of cables paid out at u = 0"),
    "attachment_stiffness": Parameter("N/m", *_POSITIVE, "attachment point", "spring constant", inclusive=True),
    "cavity_pressure": Parameter("Pa", *_POSITIVE, "cavity", "gauge pressure of cavities at u = 1", inclusive=True),
    "cavity_gas": Parameter("J", *_POSITIVE, "cavity with gas", "amount of gas n R T in cavities at u = 0"),
    "ambient_pressure": Parameter("Pa", *_POSITIVE, "cavity with gas", "absolute pressure outside", inclusive=True),
    "amplitude": Parameter("1", -1.0, 1.0, "oscillation", "strain of an oscillation"),
    "frequency": Parameter("Hz", *_POSITIVE, "oscillation", "frequency of an oscillation", inclusive=True),
    "phase": Parameter("rad", *_ANY, "oscillation", "phase of an oscillation"),
    "torque": Parameter("N m", *_POSITIVE, "motor", "torque of a motor at standstill", inclusive=True),
    "speed": Parameter("rad/s", *_POSITIVE, "motor", "speed of a motor without load"),
    "rest_position": Parameter("m", *_ANY, "node", "shape at rest"),
    "anchor": Parameter("m", *_ANY, "fixed node", "where fixed nodes are held"),
    "load": Parameter("N", *_ANY, "node", "steady forces"),
    "friction": Parameter("1", *_POSITIVE, "obstacle", "Coulomb coefficient", inclusive=True),
    "body_friction": Parameter("1", *_POSITIVE, "surface", "Coulomb coefficient of bodies", inclusive=True),
    "gravity": Parameter("m/s^2", *_ANY, "component", "gravitational acceleration"),
    "fluid_density": Parameter("kg/m^3", *_POSITIVE, "world", "density of the fluid", inclusive=True),
    "fluid_velocity": Parameter("m/s", *_ANY, "component", "velocity of the fluid"),
    "drag": Parameter("1", *_ANY, "entry", "coefficients of drag over the angle of attack"),
    "thrust": Parameter("1", *_ANY, "entry", "coefficients of thrust over the angle of attack"),
}

SKELETON = tuple(n for n in ARTICULATED if n not in _PARAMETERS and not n.startswith(("contact_", "solid_")))
"""Parameters of bones: the parameters of articulated bodies except for contacts and gravity."""


@dataclasses.dataclass(frozen=True)
class ProjectiveModel(ArrayModel):
    """A scene as arrays. `dataclasses.replace` makes a changed copy.

    Attributes:
        scene: The scene.
        worlds: Number of independent copies of the scene.
        device: Device of all arrays.
        matter: All soft bodies of one world at rest, on the host; its points are the nodes.
        groups: Which solid elements follow which law.
        youngs_modulus: Young's modulus [Pa], shape (worlds, n_elements).
        poissons_ratio: Poisson's ratio [1], shape (worlds, n_elements).
        density: Density at rest [kg/m^3], shape (worlds, n_elements).
        damping: Time of Kelvin-Voigt damping [s], shape (worlds, n_elements), or (worlds, 0) if no material has any.
        thickness: Thickness of sheets [m], shape (worlds, n_triangles).
        bending: Flexural rigidity of sheets [N m], shape (worlds, n_hinges).
        section: Cross-section of bars [m^2], shape (worlds, n_bars).
        fibre_stiffness: Stiffness of fibres [Pa], shape (worlds, n_fibres).
        cell_stiffness: Stiffness of pneumatic cells [Pa], shape (worlds, n_cells).
        cable_stiffness: Spring constants of cables [N/m], shape (worlds, n_cables).
        cable_length: Lengths of cables paid out at u = 0 [m], shape (worlds, n_cables).
        attachment_stiffness: Spring constants of points of attachments [N/m], shape (worlds, n_points).
        cavity_pressure: Gauge pressures at u = 1 [Pa], shape (worlds, n_cavities of given pressure).
        cavity_gas: Amounts of gas n R T at u = 0 [J], shape (worlds, n_cavities of given gas).
        ambient_pressure: Absolute pressures outside of cavities of given gas [Pa], shape (worlds, n_cavities of given
            gas).
        amplitude: Strains of the oscillations [1], shape (worlds, n_oscillations).
        frequency: Frequencies of the oscillations [Hz], shape (worlds, n_oscillations).
        phase: Phases of the oscillations at time 0 [rad], shape (worlds, n_oscillations).
        torque: Torques of the motors at standstill [N m], shape (worlds, n_motors).
        speed: Speeds of the motors without load [rad/s], shape (worlds, n_motors).
        rest_position: Positions at rest [m], shape (worlds, n_nodes), vector.
        anchor: Positions at which fixed regions hold their nodes [m], shape (worlds, n_anchored), vector; nodes that
            three planes hold stay where they are.
        load: Steady forces on nodes [N], shape (worlds, n_nodes), vector.
        friction: Coulomb coefficients of obstacles [1], shape (worlds, n_obstacles).
        body_friction: Coulomb coefficients of soft bodies, then of bones with a surface [1], shape (worlds, n_bodies).
        gravity: Gravitational acceleration [m/s^2], shape (worlds,), vector.
        fluid_density: Density of the fluid [kg/m^3], shape (worlds, 1), or (worlds, 0) without a fluid.
        fluid_velocity: Velocity of the fluid [m/s], shape (worlds, 1), or (worlds, 0) without a fluid, vector.
        drag: Coefficients of drag at the angles of `Scene.fluid` [1], shape (worlds, n).
        thrust: Coefficients of thrust at the angles of `Scene.fluid` [1], shape (worlds, n).
        activation: Stress actuators of solid elements, as a Warp struct.
        active_laws: Laws of the stress actuators.
        growth: Actuators that change rest lengths of solid elements, as a Warp struct; with oscillations, its channels
            refer to `signals`.
        signals: The signals that the actuators of `growth` follow, as a Warp struct.
        solids: Solids of the obstacles.
        obstacle: Obstacle of each solid, shape (n_solids,), int.
        condition: Code of the contact condition of each obstacle (`warpbots.contact.CODES`), shape (n_obstacles,), int.
        extra: Coefficient of static friction minus coefficient of sliding friction of each obstacle [1], shape
            (n_obstacles,).
        skeleton: The bones, or None; its parameters are also parameters of this model.
        topology: Tables that never change.
        matrices: Matrices of the global step.
        workspace: Arrays that a step fills anew.
    """

    scene: Scene
    worlds: int
    device: wp.Device
    matter: Mesh
    groups: tuple[LawGroup, ...]
    youngs_modulus: wp.array
    poissons_ratio: wp.array
    density: wp.array
    damping: wp.array
    thickness: wp.array
    bending: wp.array
    section: wp.array
    fibre_stiffness: wp.array
    cell_stiffness: wp.array
    cable_stiffness: wp.array
    cable_length: wp.array
    attachment_stiffness: wp.array
    cavity_pressure: wp.array
    cavity_gas: wp.array
    ambient_pressure: wp.array
    amplitude: wp.array
    frequency: wp.array
    phase: wp.array
    torque: wp.array
    speed: wp.array
    rest_position: wp.array
    anchor: wp.array
    load: wp.array
    friction: wp.array
    body_friction: wp.array
    gravity: wp.array
    fluid_density: wp.array
    fluid_velocity: wp.array
    drag: wp.array
    thrust: wp.array
    activation: object
    active_laws: tuple[ActiveLaw, ...]
    growth: object
    signals: object
    solids: Solids
    obstacle: wp.array
    condition: wp.array
    extra: wp.array
    skeleton: ArticulatedModel | None
    topology: MeshTopology
    matrices: GlobalMatrices
    workspace: ProjectiveWorkspace

    @property
    def robot(self) -> ArticulatedRobot | None:
        """The bones and their joints; None without bones. `ProjectiveDynamics.report` has their contact forces."""
        return dataclasses.replace(self.skeleton.robot, contact_points=None) if self.skeleton else None

    def summary(self) -> str:
        """Text with the number of nodes and elements, the mean edge length, and the number of bones."""
        counts = *((name, e.title) for name, e in SOLIDS.items()), ("triangles", "triangles"), ("bars", "bars")
        parts = [f"{len(table)} {name}" for kind, name in counts if len(table := getattr(self.matter, kind))]
        if self.robot:
            parts.append(f"{len(self.robot.bodies)} bones")
        return ", ".join([f"{len(self.matter)} nodes", *parts]) + f", edges of {self.matter.edge:.3g} m on average"

    @property
    def tables(self) -> dict[str, np.ndarray]:
        """Node indices of nodes, elements, triangles, hinges, bars, fibres and cells, shape (n, n_vertices), int."""
        mesh, node = self.matter, np.arange(len(self.matter))[:, None]
        return {
            "node": node, "fixed node": node[self.topology.anchored], "element": mesh.elements,
            "triangle": mesh.triangles, "hinge": mesh.hinges, "bar": mesh.bars,
            "fibre": mesh.fibres, "cell": mesh.pneumatic,
        }  # fmt: skip

    def places(self, per: str) -> Places | None:
        """Places at rest of nodes, elements, whole surfaces or parts of the skeleton; None for any other `per`."""
        if per == "surface":
            return self._surfaces()
        bones = self.skeleton.places(per) if self.skeleton and per not in self.tables else None
        if bones is None:
            return super().places(per)
        return dataclasses.replace(bones, body=_numbers(self.scene, RigidBody)[bones.body])

    def _surfaces(self) -> Places:
        """Corners of the bounding boxes of soft bodies, then of bones with a surface."""
        bones = self.topology.bone_surfaces.bones
        body = np.append(_numbers(self.scene, SoftBody), _numbers(self.scene, RigidBody)[bones])
        boxes = [b.shape.bounds for b in self.scene.soft] + [self.scene.rigid[k].bounds for k in bones]
        return Places(np.array(boxes), body, {})

    def parameter(self, name: str) -> wp.array:
        """The array of a parameter, of this model or of its skeleton, shape (worlds, ...)."""
        return getattr(self.skeleton if name in SKELETON else self, name)

    def with_parameters(self, arrays: dict[str, wp.array]) -> Self:
        """A copy with new `arrays` by names of parameters; parameters of bones go to the skeleton."""
        bones = {name: array for name, array in arrays.items() if name in SKELETON}
        own = {name: array for name, array in arrays.items() if name not in SKELETON}
        if bones:
            own["skeleton"] = self.skeleton.with_parameters(bones)
        return dataclasses.replace(self, **own)

    def recorded(self, values: Mapping[str, np.ndarray]) -> Scene:
        """The scene with its meshes, and with all parameters that do not enter the matrix of the global step."""
        scene = with_friction(super().recorded(values), values)
        shapes = iter(self.matter.shapes)
        bodies = [dataclasses.replace(b, shape=next(shapes)) if isinstance(b, SoftBody) else b for b in scene.bodies]
        scene = dataclasses.replace(scene, bodies=bodies)
        robot = self.skeleton and self.skeleton.robot
        return with_records(scene, robot, self.topology.bone_surfaces.bones, values, NEVER)

    @functools.cached_property
    def bones(self) -> ArticulatedModel:
        """The bones, with the gravity of this model."""
        return dataclasses.replace(self.skeleton, gravity=self.workspace.bones.gravity)

    def parameters(self) -> dict[str, Parameter]:
        """Differentiable parameters: field name -> unit, range and meaning.

        Parameters that the scene does not use are left out. For example, there are no anchors without fixed nodes, no
        thickness and bending without sheets, no sections without bars, no damping if no material has any, no parameters
        of oscillations, motors, fibres, cells, cables, cavities or the fluid if the scene has none, and no friction
        without contacts on which it acts.
        """
        absent = {n for n in _PARAMETERS if not getattr(self, n).size}
        if not any(o.condition == "friction" for o in self.scene.obstacles):
            absent.add("friction")
        if not self.topology.sizes.capacity:
            absent.add("body_friction")
        own = {name: spec for name, spec in _PARAMETERS.items() if name not in absent}
        bones = self.skeleton.parameters() if self.skeleton else {}
        return own | {name: spec for name, spec in bones.items() if name in SKELETON}

    @functools.cached_property
    def elements(self) -> tuple[tuple[Kind, object], ...]:
        """Kinds of elements, each with its elements as a Warp struct."""
        pairs = tuple((kind, self.workspace.struct(kind)) for kind in self.topology.kinds)
        for kind, elements in pairs:
            for name in _PARAMETERS.keys() & kind.arrays.vars.keys():
                setattr(elements, name, getattr(self, name).flatten())
        return pairs

    def of_kind(self, name: str) -> object:
        """Elements of the kind `name` as a Warp struct."""
        return next(elements for kind, elements in self.elements if kind.name == name)

    @functools.cached_property
    def nodes(self) -> object:
        """Nodes as a Warp struct."""
        nodes = self.workspace.nodes()
        nodes.anchor, nodes.load, nodes.gravity = self.anchor.flatten(), self.load.flatten(), self.gravity
        return nodes

    @functools.cached_property
    def obstacles(self) -> ObstacleArrays:
        """Obstacles as a Warp struct."""
        obstacles = ObstacleArrays()
        obstacles.solids, obstacles.solid, obstacles.obstacle = self.topology.sizes.solids, self.solids, self.obstacle
        obstacles.obstacles, obstacles.condition, obstacles.extra = (
            len(self.scene.obstacles),
            self.condition,
            self.extra,
        )
        obstacles.friction = self.friction.flatten()
        topology = self.topology
        obstacles.thinnest = constant_array(widths(self.solids)[:, 0], real, self.device)
        obstacles.across = wp.array(topology.across, dtype=wp.float64, device=self.device)
        obstacles.angular = constant_array(topology.angular, int, self.device)
        obstacles.edge = topology.contact_edge
        return obstacles

    def grown(self) -> Self | None:
        """The model with room for all pairs in contact, at least doubled up to a limit; None if room sufficed."""
        capacity, most = self.topology.sizes.capacity, self.topology.sizes.most
        if not capacity or capacity >= most:
            return None
        needed = int(self.workspace.contact.search.outgrown.numpy()[0])
        if not needed:
            return None
        sizes = dataclasses.replace(self.topology.sizes, capacity=min(max(2 * capacity, needed + needed // 4), most))
        topology = dataclasses.replace(self.topology, sizes=sizes)
        matrices = dataclasses.replace(self.matrices, topology=topology)
        workspace = dataclasses.replace(self.workspace, topology=topology)
        return dataclasses.replace(self, topology=topology, matrices=matrices, workspace=workspace)

    @functools.cached_property
    def sharp(self) -> bool:
        """Whether an obstacle can be inside a face whose corners are outside of it."""
        return bool((widths(self.solids) > 0.0).any())

    @functools.cached_property
    def pairs(self) -> PairArrays:
        """Surfaces that may be in contact, as a Warp struct."""
        pairs, surfaces, sizes = PairArrays(), self.topology.bone_surfaces, self.topology.sizes
        pairs.nodes, pairs.stride, pairs.capacity = sizes.points, sizes.stride, sizes.capacity
        edge = self.topology.point_edge
        pairs.clearance, pairs.margin = (constant_array(k * edge, real, self.device) for k in (CLEARANCE, MARGIN))
        pairs.size = constant_array(self.topology.point_size, int, self.device)
        attached = never_in_contact(self.scene, self.matter, surfaces)
        pairs.movers, obstacles = len(attached), len(self.scene.obstacles)
        pairs.bodies = pairs.movers + obstacles
        attached = np.pad(attached, (0, obstacles))
        attached[pairs.movers :, pairs.movers :] = True
        numbers = body_of(self.scene, self.matter, surfaces)
        numbers = np.append(numbers, pairs.movers + self.topology.obstacle_edges.obstacle)
        pairs.body, pairs.attached = (
            wp.array(a.reshape(-1).astype(np.int32), dtype=int, device=self.device) for a in (numbers, attached)
        )
        pairs.friction, pairs.obstacle_friction = self.body_friction.flatten(), self.friction.flatten()
        pairs.condition = self.condition
        for name in ("vertex", "face", "edge"):
            setattr(pairs, name, getattr(self.topology.surface, name))
        pairs.around, pairs.outer = self.topology.outer_faces
        components = self.topology.components
        component = np.append(components.of, np.full(sizes.edge_ends, -1))
        pairs.component = constant_array(component, int, self.device)
        for name in PAIRS:
            setattr(pairs, name, getattr(self.workspace.contact.search, name))
        return pairs


def _numbers(scene: Scene, kind: type) -> np.ndarray:
    """Indices of the bodies of a kind in a scene, shape (n,), int."""
    return np.array([i for i, body in enumerate(scene.bodies) if isinstance(body, kind)], dtype=int)
