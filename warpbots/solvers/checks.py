"""What every solver refuses in the same words."""

import warp as wp

__all__ = ["refuse_states_without_gradient", "refuse_worlds"]


def refuse_worlds(solver: str, worlds: int) -> None:
    """Raise if a solver of this name is asked for less than one world.

    Raises:
        ValueError: `worlds` is below 1.
    """
    if worlds < 1:
        raise ValueError(f"{solver}: worlds must be at least 1, got {worlds}")


def refuse_states_without_gradient(solver: str, **states: list[wp.array]) -> None:
    """Raise if a step was recorded through states that have no room for a gradient, which would be a silent zero.

    Args:
        solver: Name of the solver.
        states: Arrays of each state by the name of the argument.

    Raises:
        RuntimeError: An array has no gradient.
    """
    for name, arrays in states.items():
        if any(a.grad is None for a in arrays):
            raise RuntimeError(
                f"{solver}.step: {name} has arrays without gradients, but one was recorded through it; make it with "
                f"state(model, requires_grad=True)"
            )
