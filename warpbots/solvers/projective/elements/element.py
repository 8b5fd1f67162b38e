"""Elements of all kinds: the definition of a kind, and the indices of its elements among all elements.

The energy of an element depends on the vectors x_k - x_0 from its first corner to its other corners.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.numerics.simd import add, fetch

__all__ = [
    "Kind",
    "Place",
    "Point",
    "add_block",
    "add_column",
    "at",
    "corner",
    "element",
    "energy_by",
    "forces_by",
    "normal_bounds_by",
    "pairs",
    "raise_to",
    "rest_by",
    "row",
    "scaling_by",
    "span",
    "stiffness_by",
]

_vec = vector(3)


@wp.struct
class Place:
    """Offsets and counts that locate the elements of one kind among the elements of all kinds of one world.

    count: Number of elements of the kind.
    first: Index of the first of these among all elements that have a material.
    elements: Number of elements of all kinds that have a material.
    corner: Index of the first corner of the kind among all corners.
    corners: Number of corners of all kinds.
    pair: Index of the first pair of corners of the kind among all pairs.
    pairs: Number of pairs of corners of all kinds.
    nodes: Number of nodes.
    stride: Entries of an iterate of one world, of which displacements of nodes are the first.
    """

    count: int
    first: int
    elements: int
    corner: int
    corners: int
    pair: int
    pairs: int
    nodes: int
    stride: int


@dataclasses.dataclass(frozen=True)
class Point:
    """A point at which forces are evaluated, and the step to which it belongs.

    Attributes:
        active: 1 for worlds in which forces are evaluated, shape (worlds,).
        control: Control signals, shape (worlds, channels).
        x: Positions when the step began [m], shape (worlds * nodes,).
        u: Displacements since then [m], shape (worlds * stride,).
        h: Length of the step [s].
        time: Time at which the step began [s], shape (worlds,), or (worlds, 0) without oscillations.
    """

    active: wp.array
    control: wp.array
    x: wp.array
    u: wp.array
    h: float
    time: wp.array


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of elements, as defined by its file.

    Attributes:
        name: Field of `Mesh` with the nodes of the corners of its elements.
        arrays: Its Warp struct, with a `Place`, the `node` of each element, its `nominal` stiffness in the matrix of
            the global step [N/m], and parameters by their names in a model.
        node: Type of `node`.
        blocks: Function of a `Mesh`: stiffness of each element in the matrix of the global step [N/m], shape (count,
            corners, corners).
        forces: Function of (elements, model, point): launches that write forces at corners.
        energy: Function of (elements, model, point): launches that write the elastic energy of each element to the
            entry of its first corner; None for elements that are not elastic.
        measure: Function of (elements, model, point, written): launches that write the energies, strains and stresses
            of solids, to the arrays `written`; None for elements that are not solids.
        stiffness: Function of (elements, model, point): launches that add the second derivatives of the energy; forces
            without an energy add minus the transposed derivative of the forces.
        rested: Fields of the struct that follow from the parameters at rest, with their types.
        constant: Fields of the struct that never change, with their types: the fields of `Mesh` with these names.
        evaluated: Fields of the struct that the launches of `forces` write besides forces, with their types and the
            name of a field of `Mesh` with as many entries.
        rest: Function of (elements, model, signal): launches that write the fields of `rested`, and the masses of
            corners if the elements have mass; `signal` holds control signals or the signals of
            `elements/oscillations.py`. None for elements without such fields.
        begin: Function of (elements, model, point): launches that write the fields of `rested` that follow from the
            start of the step, after `rest` of all kinds; None for elements without such fields.
        points: Number of points of quadrature of an element; each point has its own entries in the fields of `rested`.
        viscous: Whether forces depend on a rate, and `blocks` is a resistance [N s/m], which enters the matrix of the
            global step divided by the length of the step.
        product: Function of (elements, model, point, active, a, out): launches that subtract from `out` the product of
            `a` with the second derivatives that `stiffness` leaves out; None if it leaves out none.
        forbid: Kernel (elements, x, u, islands) -> (converged): fails an island in which an element is
            inverted; None for elements that cannot be inverted.
        normal_bounds: Function of (elements, model, point, normals): launches that write bounds on second derivatives
            along normals, at corners; None for elements whose nodes have no free normals.
        matter: `Family` of elements that have a mass, which the initial guess may not tear; None for elements without
            mass.
        scaling: Function of (elements, model, point): launches that raise `Workspace.ratios` to the largest ratio of
            the stiffness of an element to its nominal stiffness; None for elements that are not in the matrix.
    """

    name: str
    arrays: type
    node: type
    blocks: Callable
    forces: Callable
    stiffness: Callable
    rested: dict[str, type] = dataclasses.field(default_factory=dict)
    constant: dict[str, type] = dataclasses.field(default_factory=dict)
    evaluated: dict[str, tuple[type, str]] = dataclasses.field(default_factory=dict)
    energy: Callable | None = None
    measure: Callable | None = None
    rest: Callable | None = None
    begin: Callable | None = None
    points: int = 1
    viscous: bool = False
    product: Callable | None = None
    forbid: wp.Kernel | None = None
    normal_bounds: Callable | None = None
    matter: object | None = None
    scaling: Callable | None = None


def rest_by(kernel: wp.Kernel) -> Callable:
    """`Kind.rest` that launches `kernel` with arguments (elements) -> (elements, mass of corners)."""

    def rest(elements: object, model: object, control: wp.array) -> list[tuple]:
        inputs = [elements, elements, model.workspace.corner_mass]
        return [(kernel, (model.worlds, elements.place.count), inputs)]

    return rest


def forces_by(kernel: wp.Kernel, driven: bool = False) -> Callable:
    """`Kind.forces` that launches `kernel` with (elements, active[, control if `driven`], x, u) -> (force)."""

    def forces(elements: object, model: object, point: Point) -> list[tuple]:
        control = [point.control] if driven else []
        inputs = [elements, point.active, *control, point.x, point.u, model.workspace.force]
        return [(kernel, (model.worlds, elements.place.count), inputs)]

    return forces


def energy_by(kernel: wp.Kernel, driven: bool = False) -> Callable:
    """`Kind.energy` that launches `kernel` with (elements[, control if `driven`], x, u) -> (energy)."""
    return _at_point(kernel, driven, lambda model: model.workspace.energy)


def stiffness_by(kernel: wp.Kernel, driven: bool = False) -> Callable:
    """`Kind.stiffness` that launches `kernel` with (elements[, control if `driven`], x, u) -> (block)."""
    return _at_point(kernel, driven, lambda model: model.workspace.block)


def _at_point(kernel: wp.Kernel, driven: bool, out: Callable[[object], wp.array]) -> Callable:
    def launches(elements: object, model: object, point: Point) -> list[tuple]:
        control = [point.control] if driven else []
        return [(kernel, (model.worlds, elements.place.count), [elements, *control, point.x, point.u, out(model)])]

    return launches


def scaling_by(kernel: wp.Kernel, driven: bool = False) -> Callable:
    """`Kind.scaling` that launches `kernel` with (elements[, control if `driven`]) -> (scaling)."""

    def scaling(elements: object, model: object, point: Point) -> list[tuple]:
        control = [point.control] if driven else []
        return [(kernel, (model.worlds, elements.place.count), [elements, *control, model.workspace.ratios])]

    return scaling


def normal_bounds_by(kernel: wp.Kernel) -> Callable:
    """`Kind.normal_bounds` that launches `kernel` with (elements, normals, active, x, u) -> (bound)."""

    def normal_bounds(elements: object, model: object, point: Point, normals: object) -> list[tuple]:
        inputs = [elements, normals, point.active, point.x, point.u, model.workspace.normal_bound]
        return [(kernel, (model.worlds, elements.place.count), inputs)]

    return normal_bounds


@wp.func
def at(u: wp.array[NODE], i: int):
    """The three coordinates of entry i."""
    a = u[i]
    return _vec(a[0], a[1], a[2])


@wp.func
def raise_to(most: wp.array2d[real], w: int, e: int, value: real):
    """Raise one of the partial maxima of a world, chosen by the element, to at least `value`."""
    wp.atomic_max(most, w, e & (most.shape[1] - 1), value)


@wp.func
def row(place: Place, w: int, e: int):
    """Index of element e of world w in arrays of its kind."""
    return w * place.count + e


@wp.func
def element(place: Place, w: int, e: int):
    """Index of element e of world w in arrays of all elements with a material."""
    return w * place.elements + place.first + e


@wp.func
def corner(place: Place, w: int, c: int):
    """Index of corner c of this kind in world w, in arrays of all corners."""
    return w * place.corners + place.corner + c


@wp.func
def span(place: Place, x: wp.array[_vec], u: wp.array[NODE], w: int, i: int, k: int):
    """Vector from node i to node k at x + u; x and u are each subtracted first, which loses no digits."""
    n = w * place.nodes
    m = w * place.stride
    return (x[n + k] - x[n + i]) + (at(u, m + k) - at(u, m + i))


@wp.func
def add_block(place: Place, w: int, p: int, b: int, t: _vec, block: wp.array[NODE]):
    """Add `t` to column b of the block of corner pair p; only the thread of their element writes this block."""
    add_column(place, w, p, b, NODE(t[0], t[1], t[2], real(0.0)), block)


@wp.func
def add_column(place: Place, w: int, p: int, b: int, t: NODE, block: wp.array[NODE]):
    """`add_block` with `t` as a node, whose fourth component is unused."""
    n = 3 * (w * place.pairs + place.pair + p) + b
    block[n] = add(fetch(block, n), t)


def pairs(node: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both nodes of every pair of corners of every element; the first corner of the pair changes slowest.

    Args:
        node: Nodes of the corners, shape (n, k).

    Returns:
        First and second node of each pair, two arrays of shape (n * k * k,).
    """
    k = node.shape[1]
    return np.repeat(node, k, axis=1).reshape(-1), np.tile(node, (1, k)).reshape(-1)
