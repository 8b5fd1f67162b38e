"""Families: elements of one shape with the same parameters, their Warp structs, and F at their points."""

import dataclasses
import functools
from collections.abc import Callable

import warp as wp

from warpbots.numerics import NODE, real, vector
from warpbots.solvers.projective.elements.element import Place, row, span

__all__ = ["Family", "point_of_quadrature", "rows"]

_vec = vector(3)


def rows(count: int, columns: int) -> type:
    """Type of a matrix of `count` rows."""
    return wp.types.matrix((count, columns), real)


@dataclasses.dataclass(frozen=True, eq=False)
class Family:
    """Elements of one shape with the same parameters.

    Attributes:
        name: Field of `Mesh` with their nodes.
        nodes: Number of nodes of an element.
        points: Number of points of quadrature of an element.
        parameters: Fields of their struct besides the common ones, with their types: arrays of the model and of `Mesh`
            with these names.
        numbers_of: Function of the struct: the Warp function (elements, control, w, e) of k and s of an `Energy`.
        columns: Number m of columns of F.
        stressed: Whether actuators add stresses in the undeformed body.
        lawful: Whether the elements follow laws of materials, which may have constants of their own.
    """

    name: str
    nodes: int
    points: int
    parameters: dict[str, type]
    numbers_of: Callable[[type], wp.Function]
    columns: int = 3
    stressed: bool = False
    lawful: bool = False

    @property
    def massive(self) -> bool:
        """Whether the elements have a mass."""
        return "density" in self.parameters

    @property
    def node(self) -> type:
        """Type of the node indices of an element."""
        return wp.types.vector(self.nodes, wp.int32)

    @property
    def gradients(self) -> type:
        """Type of the gradients G of all nodes, as rows."""
        return rows(self.nodes, self.columns)

    @property
    def deformation_gradient(self) -> type:
        """Type of F and P."""
        return rows(3, self.columns)

    @functools.cached_property
    def arrays(self) -> type:
        """Warp struct of the elements; arrays that may differ between worlds hold all worlds in one row.

        place: Location of these elements among the elements of all kinds.
        node: Nodes of the elements, shape (count,).
        gradient: Gradients G of the shape functions at the points [m^-1], shape (worlds * count * points,).
        volume: Volumes V of the points of quadrature [m^3], shape (worlds * count * points,).
        nominal: Stiffness of an element in the matrix of the global step [N/m], shape (count,).
        constants: Only of elements that follow laws of materials: the constants of the laws, in the order of each law,
            shape (worlds * count, k); null if no law has any.
        """
        fields = {"place": Place, "node": wp.array[self.node], "gradient": wp.array[self.gradients]}
        own = {name: wp.array[kind] for name, kind in self.parameters.items()}
        own |= {"constants": wp.array2d[real]} if self.lawful else {}
        return _struct(self.name, **fields, volume=wp.array[real], nominal=wp.array[real], **own)

    @functools.cached_property
    def numbers(self) -> wp.Function:
        """Warp function (elements, control, w, e) of k and s of an `Energy`."""
        return self.numbers_of(self.arrays)

    @functools.cached_property
    def deformed(self) -> wp.Function:
        """Warp function F(place, node, G, x, u, w) for nodes at x + u, at the quadrature point with the gradients G."""
        nodes, numbers, gradients, mat = self.nodes, self.node, self.gradients, self.deformation_gradient

        @wp.func
        def deformed(place: Place, node: numbers, G: gradients, x: wp.array[_vec], u: wp.array[NODE], w: int):
            """sum_a (x_a - x_0) G_a^T."""
            F = mat()
            for a in range(1, nodes):
                F += wp.outer(span(place, x, u, w, node[0], node[a]), G[a])
            return F

        return deformed

    def module(self, *parts: str) -> wp.Module:
        """Warp module for some kernels of the family, named by `parts`."""
        return wp.get_module("_".join([f"warpbots.projective.{self.name}_{self.nodes}", *parts]))


def _struct(name: str, **fields: object) -> type:
    """A Warp struct with the fields `fields`, named after the family `name`."""
    return wp.struct(type(f"{name.title().replace('_', '')}Arrays", (), {"__annotations__": fields, "__doc__": name}))


@wp.func
def point_of_quadrature(place: Place, points: int, w: int, e: int, i: int):
    """Index of point i of an element in arrays of points, which are grouped by elements."""
    return points * row(place, w, e) + i
