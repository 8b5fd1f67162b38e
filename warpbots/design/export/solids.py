"""Solids of rigid bodies in mm, united and cut by the exact Boolean operations of Manifold."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from warpbots.scene import Posed, RigidBody, SceneError, Shape, Union
from warpbots.solvers.articulated.point_cloud import surface_mesh

if TYPE_CHECKING:
    import trimesh
    from manifold3d import Manifold

__all__ = ["MM", "body_solid", "enclosed_volume", "manifold_of", "mesh_of", "pieces", "welded"]

MM = 1000.0
"""Millimetres in a metre."""

_RESOLUTION = 1e-3
"""Edges and slivers below this size are removed from a solid, and thinner solids have no volume [mm]."""

_OVERLAP = 1e-5
"""Growth of the shapes of a body before they are united, so that touching shapes overlap [mm]."""

_WELD = 1e-4
"""Distance below which vertices are merged [mm]: above the overlap, and above single-precision rounding in files."""


def manifold_of(mesh: "trimesh.Trimesh") -> "Manifold":
    """The solid within a closed mesh.

    Raises:
        ValueError: The mesh is open, or an edge does not have exactly one face on each side.
        ImportError: manifold3d is not installed.
    """
    try:
        import manifold3d
    except ImportError:
        raise ImportError('printed parts need manifold3d: pip install "warpbots[print]"') from None
    faces = np.asarray(mesh.faces)
    faces = faces[(faces != np.roll(faces, 1, axis=1)).all(axis=1)]  # a face with a repeated vertex is an edge
    solid = manifold3d.Manifold(manifold3d.Mesh64(np.array(mesh.vertices, np.float64), faces.astype(np.uint64)))
    if solid.status() != manifold3d.Error.NoError:
        raise ValueError(f"its mesh is no closed surface ({solid.status().name}); close its holes")
    return solid


def mesh_of(solid: "Manifold") -> "trimesh.Trimesh":
    """The surface of a solid, with unchanged vertices and faces."""
    import trimesh

    surface = solid.to_mesh64()
    return trimesh.Trimesh(surface.vert_properties[:, :3], surface.tri_verts.astype(np.int64), process=False)


def enclosed_volume(mesh: "trimesh.Trimesh") -> float:
    """Volume within a mesh by the divergence theorem, in cubes of the unit of the mesh; the volume may be zero."""
    return float((mesh.triangles_center * mesh.face_normals).sum(axis=1) @ mesh.area_faces) / 3.0


def pieces(solid: "Manifold") -> tuple[list["Manifold"], list["Manifold"]]:
    """The connected surfaces of a solid: first the outer surfaces, then the surfaces around cavities."""
    parts = solid.decompose()
    return [p for p in parts if p.volume() > 0.0], [p for p in parts if p.volume() < 0.0]


def body_solid(body: RigidBody) -> "Manifold":
    """The solid of a body, in the frame of the body [mm]; shapes that touch or overlap become one closed surface.

    Raises:
        SceneError: A shape has no surface, is not closed or has no volume.
        ImportError: manifold3d is not installed.
    """
    assert body.shape is not None
    try:
        solid = _united([manifold_of(_with_volume(mesh)) for mesh in _meshes(body.shape)])
        return welded(solid.as_original().simplify(_RESOLUTION))  # as one solid, so that no seam of its shapes is kept
    except (TypeError, ValueError) as fault:
        raise SceneError(f"RigidBody {body.name!r}: it cannot be printed: {fault}") from None


def welded(solid: "Manifold") -> "Manifold":
    """A solid without the tiny edges that Boolean operations leave at intersections of surfaces.

    The two ends of such an edge are closer together than single precision can resolve, so that the mesh in a file would
    be open.

    Raises:
        ValueError: The remaining mesh is not closed.
    """
    import trimesh
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    mesh = mesh_of(solid)
    count, near = len(mesh.vertices), cKDTree(mesh.vertices).query_pairs(_WELD, output_type="ndarray")
    same = connected_components(coo_array((np.ones(len(near)), near.T), shape=(count, count)), directed=False)[1]
    first = np.unique(same, return_index=True)[1]
    return manifold_of(trimesh.Trimesh(mesh.vertices[first], same[mesh.faces], process=False))


def _meshes(shape: Shape) -> Iterator["trimesh.Trimesh"]:
    """The closed meshes of which a shape is the union [m]."""
    if isinstance(shape, Union):
        for part in shape.shapes:
            yield from _meshes(part)
    elif isinstance(shape, Posed):
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = shape.rotation, shape.translation
        for mesh in _meshes(shape.shape):
            yield mesh.apply_transform(pose)
    else:
        yield surface_mesh(shape)  # type: ignore[misc]


def _with_volume(mesh: "trimesh.Trimesh") -> "trimesh.Trimesh":
    """A mesh in mm, without unused vertices.

    Raises:
        ValueError: The mesh has no volume.
    """
    mesh = mesh.copy()
    mesh.remove_unreferenced_vertices()
    mesh.apply_scale(MM)
    if not 2.0 * (volume := enclosed_volume(mesh)) > _RESOLUTION * mesh.area:
        raise ValueError(f"a mesh of it has no volume ({volume:.3g} mm^3); give it a solid that has one")
    return mesh


def _united(solids: Sequence["Manifold"]) -> "Manifold":
    """The union of solids, with the cavities in the solids.

    The surface of a single solid may overlap itself.
    """
    from manifold3d import Manifold, OpType

    found = [pieces(solid) for solid in solids]
    outer, inner = [p for outside, _ in found for p in outside], [p for _, around in found for p in around]
    if len(outer) > 1:
        outer = [_grown(p) for p in outer]
    return Manifold.batch_boolean([Manifold.batch_boolean(outer, OpType.Add), *map(_inverted, inner)], OpType.Subtract)


def _grown(solid: "Manifold") -> "Manifold":
    mesh = mesh_of(solid)
    mesh.vertices = mesh.vertices + _OVERLAP * mesh.vertex_normals
    return manifold_of(mesh)


def _inverted(solid: "Manifold") -> "Manifold":
    mesh = mesh_of(solid)
    mesh.invert()
    return manifold_of(mesh)
