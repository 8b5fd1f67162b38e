"""Message about contact forces that a solver finds only in steps."""

from typing import Any

from warpbots.simulation import Simulation

__all__ = ["measured_in_steps"]


def measured_in_steps(simulation: "Simulation[Any]") -> str:
    """The end of a message: why a solver does not measure contact forces, and the remedy."""
    solver, step = type(simulation.solver).__name__, simulation.dt / simulation.substeps
    if "contact_interval" not in vars(simulation.solver):
        return f"{solver} does not measure contact forces"
    return (
        f"under {solver} contact forces are unknowns of a step; give {solver} a contact_interval, the length of the "
        f"step to measure, such as {step:g} s; or use Simulation.report, for the forces of the last step"
    )
