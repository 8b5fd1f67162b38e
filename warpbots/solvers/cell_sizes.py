"""Cell size of a solver that was given none."""

from warpbots.contact import cells_across
from warpbots.scene import Scene

__all__ = ["cell_size_for", "given"]


def cell_size_for(scene: Scene, across: float, most: float) -> float:
    """Cell size for the soft bodies of a scene [m]: from its task, or else from `warpbots.contact.cells_across`.

    Args:
        scene: The scene to simulate.
        across: Number of cells across the width of every body.
        most: Largest number of cells.
    """
    if scene.task is not None and scene.task.cell_size is not None:
        return scene.task.cell_size
    return cells_across([body.shape for body in scene.soft], across, most)


def given(size: float | None, solver: str, option: str) -> float:
    """The cell size `size`, which `build` needs [m].

    Raises:
        ValueError: It is None.
    """
    if size is None:
        raise ValueError(
            f"{solver}: {option} is open; give it, or build with {solver}().sized(scene), as a Simulation does"
        )
    return size
