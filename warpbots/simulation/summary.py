"""A simulation in words: a line with the chosen options, and a table."""

import dataclasses
from typing import TYPE_CHECKING, Any

from warpbots.simulation.cost import Cost
from warpbots.tables import Table, TableSection, scene_sections

if TYPE_CHECKING:
    from warpbots.simulation.simulation import Simulation

__all__ = ["choice", "simulation_table"]


def choice(simulation: "Simulation[Any]") -> str:
    """One line with the solver, its step, and the number of elements of a simulation."""
    return (
        f"{simulation.scene.name!r} is simulated by {_method(simulation.solver)} with {_interval(simulation)}: "
        f"{simulation.model.summary()}; Simulation.cost measures time and memory"
    )


def simulation_table(simulation: "Simulation[Any]", cost: Cost | None) -> Table:
    """The table of a simulation: its method, its scene, and its parameters.

    Args:
        simulation: The simulation.
        cost: The last measurement; None if there is none.
    """
    model, scene, bound = simulation.model, simulation.scene, simulation.max_time_step
    threads = ("up to " if simulation.threads > 1 else "") + _count(simulation.threads, "thread")
    method = [
        ("solver", _method(simulation.solver)),
        ("elements", model.summary()),
        ("steps", f"{_interval(simulation)}, stable {f'up to {bound:.3g} s' if bound < 1e9 else 'for every step'}"),
        ("worlds", f"{simulation.worlds} on {model.device.alias}, {threads}"),
        ("cost", "not measured yet, see Simulation.cost" if cost is None else str(cost)),
    ]
    parameters = [
        (name, f"{_shape(simulation, name)}{spec.suffix(scene.dim)}", f"per {spec.per}", spec.doc)
        for name, spec in simulation.parameters().items()
    ]
    title = f"Simulation of {scene.name!r}, {scene.dim}D, {_count(simulation.channels, 'control channel')}"
    return Table(
        title,
        [
            TableSection("method", method),
            *scene_sections(scene),
            TableSection("parameters", parameters, most=len(parameters)),
        ],
    )


def _method(solver: Any) -> str:
    """The name of a solver, with its options that differ from the defaults; likewise of the solvers that it joins."""
    if not dataclasses.is_dataclass(solver):
        return str(solver)
    options = ((f, getattr(solver, f.name)) for f in dataclasses.fields(solver))
    shown = (f"{f.name}={_option(value)}" for f, value in options if value != f.default)
    return f"{type(solver).__name__}({', '.join(shown)})"


def _option(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return _method(value) if dataclasses.is_dataclass(value) else repr(value)


def _interval(simulation: "Simulation[Any]") -> str:
    length = simulation.dt / simulation.substeps
    return f"dt={simulation.dt:g} s in {_count(simulation.substeps, 'substep')} of {length:.3g} s"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _shape(simulation: "Simulation[Any]", name: str) -> str:
    array = simulation.model.parameter(name)
    return str((*array.shape, *getattr(array.dtype, "_shape_", ())))
