"""The size of cells of solvers to which none was given."""

from warpbots.contact import cells_across
from warpbots.scene import Scene

__all__ = ["cell_size_for", "given"]


def cell_size_for(scene: Scene, across: float, most: float) -> float:
    """Size of cells for the soft bodies of a scene [m]: that of its task, or else `warpbots.contact.cells_across`.

    Args:
        scene: What is to be simulated.
        across: Number of cells across the width of every body.
        most: Largest number of cells.
    """
    if scene.task is not None and scene.task.cell_size is not None:
        return scene.task.cell_size
    return cells_across([body.shape for body in scene.soft], across, most)


def given(size: float | None, solver: str, option: str) -> float:
    """The size of cells, which `build` needs.

    Raises:
        ValueError: It is None.
    """
    if size is None:
        raise ValueError(
            f"{solver}: {option} is open; give it, or build with {solver}().sized(scene), as a Simulation does"
        )
    return size
