"""The model of projective dynamics."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Self

import numpy as np
import warp as wp

from warpbots.actuation_laws import ActiveLaw
from warpbots.contact.solid import Solids
from warpbots.numerics.parameters import ANY, NOT_NEGATIVE, Parameter, parameter, parameters_of, parametric, shared
from warpbots.scene import RigidBody, Scene, SoftBody
from warpbots.solvers.articulated.model import NEVER, ArticulatedModel
from warpbots.solvers.articulated.robot import ArticulatedRobot
from warpbots.solvers.law_constants import HasLawConstants
from warpbots.solvers.law_groups import LawGroup
from warpbots.solvers.motion_parameters import MotionParameters, with_motions
from warpbots.solvers.moving_frames import MovingFrames
from warpbots.solvers.parameters import (
    AMPLITUDE,
    DENSITY,
    FREQUENCY,
    FRICTION,
    GRAVITY,
    LOAD,
    PHASE,
    SPEED,
    TORQUE,
)
from warpbots.solvers.places import Places, element_places
from warpbots.solvers.projective.contact_structs import HasContacts
from warpbots.solvers.projective.elements.element import Kind
from warpbots.solvers.projective.elements.nodes import NodeArrays
from warpbots.solvers.projective.elements.oscillations import element_strains
from warpbots.solvers.projective.elements.reference_elements import SOLIDS
from warpbots.solvers.projective.global_matrix import GlobalMatrices
from warpbots.solvers.projective.mesh import Mesh, MeshConstants
from warpbots.solvers.projective.receivers import receivers_of
from warpbots.solvers.projective.recorded import with_records
from warpbots.solvers.projective.topology import MeshTopology, constant_array
from warpbots.solvers.projective.workspace import ProjectiveWorkspace
from warpbots.solvers.projective.wrenches import Receivers
from warpbots.solvers.records import with_friction, with_materials
from warpbots.solvers.rest_strains import RestStrains

__all__ = ["SKELETON", "ProjectiveModel"]


@parametric
class ProjectiveModel(HasContacts, MotionParameters, HasLawConstants, MeshConstants[wp.array]):
    """A scene as arrays. `dataclasses.replace` makes a changed copy.

    Attributes:
        scene: The scene.
        worlds: Number of independent copies of the scene.
        device: Device of all arrays.
        mesh: All soft bodies of one world at rest, on the host; its points are the nodes. Without soft bodies it is
            empty.
        groups: Which solid elements follow which law.
        law_constants: Constants of the laws by name [1, or the unit that the law declares], each of shape (worlds,
            n_elements).
        activation: Stress actuators of solid elements, as a Warp struct.
        active_laws: Laws of the stress actuators.
        growth: Actuators that change rest lengths of solid elements, as a Warp struct; with oscillations, its channels
            refer to `signals`.
        signals: The signals that the actuators of `growth` follow, as a Warp struct.
        solids: Solids of the obstacles.
        obstacle: Obstacle of each solid, shape (n_solids,), int.
        frames: Frames of obstacles and constraints that move.
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
    mesh: Mesh
    groups: tuple[LawGroup, ...]
    density: wp.array = shared(DENSITY)
    amplitude: wp.array = shared(AMPLITUDE)
    frequency: wp.array = shared(FREQUENCY)
    phase: wp.array = shared(PHASE)
    torque: wp.array = shared(TORQUE)
    speed: wp.array = shared(SPEED)
    rest_position: wp.array = parameter("m", ANY, "node", "shape at rest", entry="vector", meaning="position at rest")
    anchor: wp.array = parameter(
        "m", ANY, "fixed node", "where fixed nodes are held", axes="n_anchored", entry="vector",
        meaning="position at which fixed regions hold a node; nodes that three planes hold stay where they are",
    )  # fmt: skip
    load: wp.array = shared(LOAD, "node", doc="steady forces")
    friction: wp.array = shared(FRICTION)
    body_friction: wp.array = parameter(
        "1", NOT_NEGATIVE, "surface", "Coulomb coefficient of bodies", axes="n_bodies",
        meaning="Coulomb coefficient of soft bodies, then of bones with a surface",
    )  # fmt: skip
    contact_friction: wp.array = parameter(
        "1", NOT_NEGATIVE, "contact", "Coulomb coefficient", meaning="Coulomb coefficient of each `Contact` law",
        axes="n_contacts",
    )  # fmt: skip
    gravity: wp.array = shared(GRAVITY)
    fluid_density: wp.array = parameter(
        "kg/m^3", NOT_NEGATIVE, "world", "density of the fluid", axes="1",
        meaning="density of the fluid; (worlds, 0) without a fluid",
    )  # fmt: skip
    fluid_velocity: wp.array = parameter(
        "m/s", ANY, "component", "velocity of the fluid", axes="1", entry="vector",
        meaning="velocity of the fluid; (worlds, 0) without a fluid",
    )  # fmt: skip
    drag: wp.array = parameter(
        "1", ANY, "entry", "coefficients of drag over the angle of attack", axes="n",
        meaning="coefficients of drag at the angles of `Scene.fluid`",
    )  # fmt: skip
    thrust: wp.array = parameter(
        "1", ANY, "entry", "coefficients of thrust over the angle of attack", axes="n",
        meaning="coefficients of thrust at the angles of `Scene.fluid`",
    )  # fmt: skip
    law_constants: Mapping[str, wp.array]
    activation: object
    active_laws: tuple[ActiveLaw, ...]
    growth: object
    signals: object
    solids: Solids
    obstacle: wp.array
    frames: MovingFrames
    condition: wp.array
    extra: wp.array
    skeleton: ArticulatedModel | None
    topology: MeshTopology
    matrices: GlobalMatrices
    workspace: ProjectiveWorkspace

    @property
    def matter(self) -> Mesh | None:
        """The mesh; None without soft bodies."""
        return self.mesh if self.scene.soft else None

    @property
    def robot(self) -> ArticulatedRobot | None:
        """The bones and their joints; None without bones. `SkeletalSupportReadings` have their contact forces."""
        return dataclasses.replace(self.skeleton.robot, contact_points=None) if self.skeleton else None

    def summary(self) -> str:
        """Text with the number of nodes and elements, the mean edge length, and the number of rigid bodies."""
        counts = *((name, e.title) for name, e in SOLIDS.items()), ("triangles", "triangles"), ("bars", "bars")
        parts = [f"{len(table)} {name}" for kind, name in counts if len(table := getattr(self.mesh, kind))]
        if self.scene.soft:
            parts.insert(0, f"{len(self.mesh)} nodes")
        if self.robot:
            parts.append(f"{len(self.robot.bodies)} rigid bodies")
        return ", ".join(parts) + f", edges of {self.mesh.edge:.3g} m on average"

    @property
    def tables(self) -> dict[str, np.ndarray]:
        """Node indices of nodes, elements, triangles, hinges, bars, fibres and cells, shape (n, n_vertices), int."""
        if not self.scene.soft:
            return {}
        mesh, node = self.mesh, np.arange(len(self.mesh))[:, None]
        return {
            "node": node, "fixed node": node[self.topology.anchored], "element": mesh.elements,
            "triangle": mesh.triangles, "hinge": mesh.hinges, "bar": mesh.bars,
            "fibre": mesh.fibres, "cell": mesh.pneumatic,
        }  # fmt: skip

    @property
    def measured_elements(self) -> dict[str, str]:
        """Kinds of elements to which the readings of stress and strain belong; empty without solids."""
        return {"stress": "solid", "strain": "solid"} if self.scene.soft and len(self.mesh.solids) else {}

    def places(self, per: str) -> Places | None:
        """Places at rest of nodes, elements, whole surfaces or parts of the skeleton; None for any other `per`."""
        if per == "surface":
            return self._surfaces()
        if per == "solid":
            return element_places(self.scene, self.mesh, self.mesh.solids)
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
        return self.skeleton.parameter(name) if name in SKELETON else super().parameter(name)

    def with_parameters(self, arrays: dict[str, wp.array]) -> Self:
        """A copy with new `arrays` by names of parameters; parameters of bones go to the skeleton."""
        bones = {name: array for name, array in arrays.items() if name in SKELETON}
        own = {name: array for name, array in arrays.items() if name not in SKELETON}
        if bones:
            own["skeleton"] = self.skeleton.with_parameters(bones)
        return super().with_parameters(own)

    def recorded(self, values: Mapping[str, np.ndarray]) -> Scene:
        """The scene with its meshes, and with all parameters that do not enter the matrix of the global step."""
        scene = with_friction(super().recorded(values), values)
        shapes = iter(self.mesh.shapes)
        bodies = [dataclasses.replace(b, shape=next(shapes)) if isinstance(b, SoftBody) else b for b in scene.bodies]
        scene = dataclasses.replace(scene, bodies=bodies)
        constants = {name: value for name, value in values.items() if name in self.law_constants}
        scene = with_materials(scene, self.mesh.element_body, self.mesh.element_regions, constants)
        robot = self.skeleton and self.skeleton.robot
        scene = with_motions(scene, values)
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
        absent = {n for n in parameters_of(ProjectiveModel) if not getattr(self, n).size} | self.frames.absent
        if not any(o.condition == "friction" for o in self.scene.obstacles):
            absent.add("friction")
        if not self.topology.sizes.capacity:
            absent.add("body_friction")
        own = {name: spec for name, spec in parameters_of(ProjectiveModel).items() if name not in absent}
        own |= self.law_parameters("element")
        bones = self.skeleton.parameters() if self.skeleton else {}
        return own | {name: spec for name, spec in bones.items() if name in SKELETON}

    @functools.cached_property
    def rest_strains(self) -> RestStrains:
        """Strains of elements at rest by actuators."""
        return element_strains(self.scene, self.mesh.element_regions).distinct()

    @property
    def carries(self) -> bool:
        """Whether a constraint moves."""
        return bool((self.frames.of_constraint >= 0).any())

    @functools.cached_property
    def anchor_frame(self) -> wp.array:
        """Index of the frame of each anchor, -1 for one that does not move, shape (n_anchored,), int."""
        return constant_array(self.topology.frame[self.topology.anchored], int, self.device)

    @functools.cached_property
    def edge_frame(self) -> wp.array:
        """Index of the frame of each end of an edge of an obstacle, -1 for none, shape (edge_ends,), int."""
        return constant_array(self.frames.of_obstacle[self.topology.obstacle_edges.obstacle], int, self.device)

    @property
    def edges_move(self) -> bool:
        """Whether an edge of an obstacle moves."""
        return bool((self.frames.of_obstacle[self.topology.obstacle_edges.obstacle] >= 0).any())

    @property
    def may_close(self) -> bool:
        """Whether an obstacle may meet another obstacle, or nodes that a constraint holds."""
        return bool(self.frames.names) and self.topology.sizes.solids > 0

    @functools.cached_property
    def elements(self) -> tuple[tuple[Kind, object], ...]:
        """Kinds of elements, each with its elements as a Warp struct."""
        pairs = tuple((kind, self.workspace.struct(kind)) for kind in self.topology.kinds)
        for kind, elements in pairs:
            for name in parameters_of(ProjectiveModel).keys() & kind.arrays.vars.keys():
                setattr(elements, name, getattr(self, name).flatten())
            if self.workspace.constants and kind.matter is not None and kind.matter.lawful:
                elements.constants = self.workspace.law_constants
        return pairs

    def of_kind(self, name: str) -> object:
        """Elements of the kind `name` as a Warp struct."""
        return next(elements for kind, elements in self.elements if kind.name == name)

    @functools.cached_property
    def nodes(self) -> object:
        """Nodes as a Warp struct."""
        nodes = self.workspace.nodes()
        nodes.anchor = self.workspace.anchor if self.carries else self.anchor.flatten()
        nodes.load, nodes.gravity = self.load.flatten(), self.gravity
        return nodes

    @functools.cached_property
    def unheld(self) -> object:
        """Nodes as a Warp struct in which no node is fixed: their residual is the force on constraints, too."""
        nodes = NodeArrays()
        for name in NodeArrays.vars:
            setattr(nodes, name, getattr(self.nodes, name))
        nodes.held = constant_array(np.full(len(self.mesh), -1), int, self.device)
        return nodes

    @functools.cached_property
    def receivers(self) -> Receivers:
        """Obstacles, constraints and rigid bodies on which a step exerts wrenches, as a Warp struct."""
        return receivers_of(self.scene, self.topology)

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


def _numbers(scene: Scene, kind: type) -> np.ndarray:
    """Indices of the bodies of a kind in a scene, shape (n,), int."""
    return np.array([i for i, body in enumerate(scene.bodies) if isinstance(body, kind)], dtype=int)


SKELETON = tuple(
    name
    for name in parameters_of(ArticulatedModel)
    if name not in parameters_of(ProjectiveModel) and not name.startswith(("contact_", "solid_"))
)
"""Parameters of bones: the parameters of articulated bodies except for contacts, motion of obstacles and gravity."""
