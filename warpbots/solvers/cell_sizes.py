"""Default cell size of solvers."""

from warpbots.contact import cells_across
from warpbots.scene import Scene

__all__ = ["cell_size_for", "given"]


def cell_size_for(scene: Scene, across: float, most: float) -> float:
    """Cell size for the soft bodies of a scene [m]: the size in its task, or else by `warpbots.contact.cells_across`.

    Args:
        scene: The scene to simulate.
        across: Number of cells across the width of every body.
        most: Largest number of cells.
    """
    if scene.task is not None and scene.task.cell_size is not None:
        return scene.task.cell_size
    return cells_across([body.shape for body in scene.soft], across, most)


def given(size: float | None, solver: str, option: str) -> float:
    """Return the cell size `size` [m], or raise if it is None.

    Args:
        size: The cell size [m]; None if the user gave none.
        solver: Name of the solver, for the message.
        option: Name of its option for the cell size, for the message.

    Raises:
        ValueError: `size` is None.
    """
    if size is None:
        raise ValueError(
            f"{solver}: {option} is open; give it, or build with {solver}().sized(scene), as a Simulation does"
        )
    return size
