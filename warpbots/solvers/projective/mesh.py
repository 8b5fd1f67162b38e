"""Soft bodies as nodes and elements, on the host: tetrahedra of solids, triangles and hinges of sheets, bars."""

import dataclasses
import itertools
from typing import Generic

import numpy as np

from warpbots.numerics.parameters import NOT_NEGATIVE, POSITIVE, parameter, parametric, shared
from warpbots.scene import Shape
from warpbots.solvers.array_fields import Array
from warpbots.solvers.matter import Matter
from warpbots.solvers.parameters import DAMPING, POISSONS_RATIO, YOUNGS_MODULUS
from warpbots.solvers.projective.elements.reference_elements import SOLIDS, TETRAHEDRON, ReferenceElement

__all__ = ["MATERIAL", "BodySurface", "Mesh", "MeshConstants"]

MATERIAL = (*SOLIDS, "triangles", "bars")
"""Kinds of elements that have a material, in their order."""


@dataclasses.dataclass(frozen=True)
class BodySurface:
    """The surface of a body.

    Attributes:
        body: Index of the body in the scene.
        nodes: Range of the nodes of the body among all nodes.
        faces: Nodes of the faces of the surface, counter-clockwise seen from outside, and of the sheets; indices are
            relative to the first node of the body; shape (n, 3).
    """

    body: int
    nodes: slice
    faces: np.ndarray


@parametric
class MeshConstants(Generic[Array]):
    """Constants of elements: NumPy arrays in a `Mesh`, and Warp arrays with an axis for the worlds in a model."""

    youngs_modulus: Array = shared(YOUNGS_MODULUS)
    poissons_ratio: Array = shared(POISSONS_RATIO)
    damping: Array = shared(DAMPING, meaning="time of Kelvin-Voigt damping; empty in a model if no material has any")
    thickness: Array = parameter("m", POSITIVE, "triangle", "thickness of sheets", intensive=True)
    bending: Array = parameter("N m", NOT_NEGATIVE, "hinge", "flexural rigidity of sheets", intensive=True)
    section: Array = parameter("m^2", POSITIVE, "bar", "cross-section of bars")
    fibre_stiffness: Array = parameter("Pa", NOT_NEGATIVE, "fibre", "stiffness of fibres")
    cell_stiffness: Array = parameter("Pa", NOT_NEGATIVE, "cell", "stiffness of pneumatic cells")
    cable_stiffness: Array = parameter("N/m", NOT_NEGATIVE, "cable", "spring constant of cables")
    cable_length: Array = parameter("m", POSITIVE, "cable", "length of cables paid out at u = 0")
    attachment_stiffness: Array = parameter(
        "N/m", NOT_NEGATIVE, "attachment point", "spring constant", axes="n_points",
        meaning="spring constant of the points of attachments",
    )  # fmt: skip
    cavity_pressure: Array = parameter(
        "Pa", NOT_NEGATIVE, "cavity", "gauge pressure of cavities at u = 1", axes="n_cavities of given pressure"
    )
    cavity_gas: Array = parameter(
        "J", POSITIVE, "cavity with gas", "amount of gas n R T in cavities at u = 0", axes="n_cavities of given gas"
    )
    ambient_pressure: Array = parameter(
        "Pa", NOT_NEGATIVE, "cavity with gas", "absolute pressure outside", axes="n_cavities of given gas",
        meaning="absolute pressure outside of cavities of given gas",
    )  # fmt: skip


@parametric
class Mesh(Matter, MeshConstants[np.ndarray]):
    """All soft matter of a scene; the points of `Matter` are its nodes, each with its share of volume and density.

    Elements are solids, all of one kind, then triangles, then bars. Hinges, fibres, cells, cables, wetted faces and
    walls of cavities have no matter.

    Attributes:
        tets: Nodes of the linear tetrahedra, shape (n_tets, 4), int.
        quadratic_tets: Nodes of the quadratic tetrahedra, corners first, shape (n_quadratic_tets, 10), int.
        hexahedra: Nodes of the hexahedra, shape (n_hexahedra, 8), int.
        triangles: Nodes of the triangles of sheets, shape (n_triangles, 3), int.
        hinges: Nodes of the inner edges of sheets: the two ends, then the tips of both triangles, shape (n_hinges, 4),
            int.
        bars: Nodes of the bars, shape (n_bars, 2), int.
        element_density: Density of the elements [kg/m^3], shape (n_elements,).
        law_constants: Constants of the laws of the elements by name [1, or the unit that the law declares], each of
            shape (n_elements,).
        element_volume: Volume of the elements at rest [m^3], shape (n_elements,).
        element_body: Index of the body of each element in the scene, shape (n_elements,), int.
        element_regions: For every region which elements have their centre in it, each of shape (n_elements,), bool.
        plate: Flexural rigidity that a plate of the same material and thickness has at each hinge [N m], shape
            (n_hinges,).
        bone: Index in `Scene.rigid` of the bone that each node is bound to, -1 for none, shape (n_nodes,), int.
        fibres: Nodes of the solids of fibres, shape (n_fibres, n_nodes), int.
        fibre_direction: Directions of the fibres at rest [1], shape (n_fibres, 3).
        fibre_contraction: Fraction of its length by which a fibre shortens at u = 1 [1], shape (n_fibres,).
        fibre_channel: Control channels of the fibres, shape (n_fibres,), int.
        pneumatic: Nodes of the solids that are pneumatic cells, shape (n_cells, n_nodes), int.
        cell_expansion: Fraction of its volume by which a cell grows at u = 1 [1], shape (n_cells,).
        cell_channel: Control channels of the cells, shape (n_cells,), int.
        cables: Nodes of the pairs of segments of cables, shape (n_pairs, 4), int.
        cable: Cable of each pair, shape (n_pairs,), int.
        cable_first: First pair of each cable, shape (n_cables,), int.
        cable_segments: Number of segments of the cables, shape (n_cables,), int.
        cable_channel: Control channels of the cables, shape (n_cables,), int.
        cable_rounding: Slack up to which a cable counts as just taut in derivatives [m], shape (n_cables,).
        attachments: Nodes of the elements of both bodies at the points of attachments, shape (n_points, 8), int.
        attachment_weight: Weights of the nodes in `attachments`, negative for the second body [1], shape (n_points, 8).
        motors: Nodes of the sides of motors, side after side, shape (n, 1), int.
        motor_side: Side of each entry of `motors`: stator, rotor of the first motor, and so on, shape (n,), int.
        motor_first: First entry of each side in `motors`, and the end of the last side, shape (2 * n_motors + 1,), int.
        motor_end: Nodes of the elements at both ends of each axis, shape (n_motors, 8), int.
        motor_weight: Weights of the nodes in `motor_end`, negative for the first end [1], shape (n_motors, 8).
        motor_channel: Control channels of the motors, shape (n_motors,), int.
        motor_node: Nodes that any motor drives, shape (n_driven,), int.
        motor_row: First entry of each driven node in `motor_item`, and the end of the last node, shape (n_driven + 1,),
            int.
        motor_item: Indices of the driven nodes in `motors`, shape (n,), int.
        motor_slope: Torque at standstill divided by speed without load, of each motor [N m s], shape (n_motors,).
        motor_resistance: Resistance of `motors` in the matrix of the global step [N s/m], shape (n,).
        faces: Nodes of the wetted faces, shape (n_faces, 3), int; sheets have two for each triangle.
        drag_at: Sines of the angles of attack of the table of drag [1], shape (n,).
        thrust_at: Sines of the angles of attack of the table of thrust [1], shape (n,).
        cavities: Nodes of the faces around cavities, cavity after cavity, counter-clockwise seen from outside of the
            cavity, shape (n_walls, 3), int.
        cavity: Cavity of each face, shape (n_walls,), int.
        cavity_run: First face of each run of faces of one cavity, and the face after its last, shape (n_runs, 2), int.
        cavity_runs: First run of each cavity, and the run after its last, shape (n_cavities, 2), int.
        cavity_channel: Control channels of the cavities, shape (n_cavities,), int.
        cavity_number: Index of each cavity among the cavities of given pressure, or among those of given gas, shape
            (n_cavities,), int.
        cavity_gas_ratio: Amount of gas at u = 1 divided by the amount at u = 0 [1], 0 for a given pressure, shape
            (n_cavities,).
        cavity_least_volume: Volume below which the walls of a cavity have passed through one another [m^3], shape
            (n_cavities,).
        shapes: Shape of each soft body, replaced by its mesh of tetrahedra if another machine could mesh it
            differently.
        meshes: Surfaces of the bodies.
        edges: Ends of the edges of linear tetrahedra, triangles and bars, each edge once, shape (n_edges, 2), int.
        edge: Mean length of the edges [m].
    """

    tets: np.ndarray
    quadratic_tets: np.ndarray
    hexahedra: np.ndarray
    triangles: np.ndarray
    hinges: np.ndarray
    bars: np.ndarray
    element_density: np.ndarray
    law_constants: dict[str, np.ndarray]
    element_volume: np.ndarray
    element_body: np.ndarray
    element_regions: dict[str, np.ndarray]
    plate: np.ndarray
    bone: np.ndarray
    fibres: np.ndarray
    fibre_direction: np.ndarray
    fibre_contraction: np.ndarray
    fibre_channel: np.ndarray
    pneumatic: np.ndarray
    cell_expansion: np.ndarray
    cell_channel: np.ndarray
    cables: np.ndarray
    cable: np.ndarray
    cable_first: np.ndarray
    cable_segments: np.ndarray
    cable_channel: np.ndarray
    cable_rounding: np.ndarray
    attachments: np.ndarray
    attachment_weight: np.ndarray
    motors: np.ndarray
    motor_side: np.ndarray
    motor_first: np.ndarray
    motor_end: np.ndarray
    motor_weight: np.ndarray
    motor_channel: np.ndarray
    motor_node: np.ndarray
    motor_row: np.ndarray
    motor_item: np.ndarray
    motor_slope: np.ndarray
    motor_resistance: np.ndarray
    faces: np.ndarray
    drag_at: np.ndarray
    thrust_at: np.ndarray
    cavities: np.ndarray
    cavity: np.ndarray
    cavity_run: np.ndarray
    cavity_runs: np.ndarray
    cavity_channel: np.ndarray
    cavity_number: np.ndarray
    cavity_gas_ratio: np.ndarray
    cavity_least_volume: np.ndarray
    shapes: tuple[Shape, ...]
    meshes: tuple[BodySurface, ...]
    edges: np.ndarray
    edge: float

    @property
    def surfaces(self) -> tuple[BodySurface, ...]:
        """Surfaces of all bodies."""
        return self.meshes

    @property
    def solid(self) -> ReferenceElement:
        """The reference element of all solid elements; the linear tetrahedron if there are no solids."""
        return next((e for name, e in SOLIDS.items() if len(getattr(self, name))), TETRAHEDRON)

    @property
    def solids(self) -> np.ndarray:
        """Nodes of the solids, shape (n_solids, n_nodes), int."""
        return getattr(self, self.solid.name)

    @property
    def cut(self) -> np.ndarray:
        """Nodes of the linear tetrahedra into which the solids are cut, shape (n_solids, n, 4), int."""
        return self.solids[:, self.solid.tets]

    @property
    def damped(self) -> bool:
        """Whether any material has damping; if so, all elements with a material have dampers."""
        return bool((self.damping > 0.0).any())

    @property
    def damped_tets(self) -> np.ndarray:
        """Nodes of the dampers of tetrahedra: of all tetrahedra, or empty without damping, shape (n, 4), int."""
        return self.tets if self.damped else self.tets[:0]

    @property
    def damped_quadratic_tets(self) -> np.ndarray:
        """Nodes of the dampers of quadratic tetrahedra: of all, or empty without damping, shape (n, 10), int."""
        return self.quadratic_tets if self.damped else self.quadratic_tets[:0]

    @property
    def damped_hexahedra(self) -> np.ndarray:
        """Nodes of the dampers of hexahedra: of all hexahedra, or empty without damping, shape (n, 8), int."""
        return self.hexahedra if self.damped else self.hexahedra[:0]

    @property
    def damped_triangles(self) -> np.ndarray:
        """Nodes of the dampers of triangles: of all triangles, or empty without damping, shape (n, 3), int."""
        return self.triangles if self.damped else self.triangles[:0]

    @property
    def damped_bars(self) -> np.ndarray:
        """Nodes of the dampers of bars: of all bars, or empty without damping, shape (n, 2), int."""
        return self.bars if self.damped else self.bars[:0]

    @property
    def tetrahedra(self) -> np.ndarray:
        """Nodes of the linear tetrahedra into which the solids are cut, shape (n_tetrahedra, 4), int."""
        return self.cut.reshape(-1, 4)

    @property
    def elements(self) -> np.ndarray:
        """Nodes of all elements with a material, padded with -1, shape (n_elements, n), int."""
        tables = [t for t in self._material if len(t)]
        most = max(4, *(t.shape[1] for t in tables))
        return np.concatenate([np.pad(t, ((0, 0), (0, most - t.shape[1])), constant_values=-1) for t in tables])

    @property
    def _material(self) -> list[np.ndarray]:
        return [getattr(self, kind) for kind in MATERIAL]

    def of(self, kind: str) -> slice:
        """Range of solids, ``"triangles"``, ``"bars"`` or their dampers among elements; empty for other kinds."""
        kind = kind.removeprefix("damped_")
        if kind not in MATERIAL:
            return slice(0, 0)
        before = sum(len(getattr(self, k)) for k in itertools.takewhile(lambda k: k != kind, MATERIAL))
        return slice(before, before + len(getattr(self, kind)))
