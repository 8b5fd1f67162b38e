"""The default cell size of a scene."""

from warpbots.contact import cells_across
from warpbots.scene import Posed, Scene, Shape, Sheet, TetMesh, Truss, Union
from warpbots.solvers.projective.assemble import edges_of, mean_length
from warpbots.solvers.scene_parts import is_bone

__all__ = ["default_cell_size"]

_ACROSS, _ACROSS_BONES, _MOST = 4.0, 2.0, 1500


def default_cell_size(scene: Scene) -> float:
    """Cell size [m] by the rule of `ProjectiveDynamics.sized`."""
    if scene.task is not None and scene.task.cell_size is not None:
        return scene.task.cell_size
    shapes = [body.shape for body in scene.soft]
    edges = [_edge(shape) for shape in shapes]
    rigid = [body for body in scene.rigid if body.shape is not None]
    bones = [body.shape for body in rigid if not scene.soft or is_bone(scene, body)]
    if not shapes:
        return cells_across(bones, _ACROSS_BONES, _MOST) if bones else 1.0
    if None not in edges:
        return sum(edges) / len(edges)
    size = cells_across([s for s, edge in zip(shapes, edges, strict=True) if edge is None], _ACROSS, _MOST)
    return min(size, cells_across(bones, _ACROSS_BONES, _MOST)) if bones else size


def _edge(shape: Shape) -> float | None:
    """Mean edge length of a shape that is already a mesh [m]; None for other shapes."""
    if isinstance(shape, TetMesh):
        return mean_length(shape.vertices, edges_of([shape.tets]))
    if isinstance(shape, Sheet):
        return mean_length(shape.vertices, edges_of([shape.faces]))
    if isinstance(shape, Truss):
        return float(shape.length.mean())
    if isinstance(shape, Posed):
        return _edge(shape.shape)
    if isinstance(shape, Union):
        edges = [_edge(part) for part in shape.shapes]
        return None if None in edges else sum(edges) / len(edges)
    return None
