"""Files of states: the tensors of a state, and the scene and solver that it belongs to; files hold data only."""

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import torch

from warpbots.output_files import replacing
from warpbots.read_limits import refuse_unpacking
from warpbots.scene import Scene, fingerprint

__all__ = ["load", "save"]

_FORMAT = "warpbots state 1"


def save(path: str | Path, state: Any, rest: Any, scene: Scene, solver: object) -> None:
    """Write a state; see `Simulation.save_state`.

    Args:
        path: The file.
        state: The state to write.
        rest: The state of the simulation at rest.
        scene: The scene of the state.
        solver: The solver.

    Raises:
        ValueError: The state is not a state of this simulation.
    """
    fields = _fields(state)
    if fault := _misfit(fields, _fields(rest)):
        raise ValueError(f"save_state: this is no state of this simulation: {fault}")
    data = {"format": _FORMAT, "fields": fields} | _origin(rest, scene, solver)
    with replacing(Path(path)) as (temporary,):
        torch.save(data, temporary)


def load(path: str | Path, rest: Any, scene: Scene, solver: object) -> Any:
    """Read a state; see `Simulation.load_state`.

    Args:
        path: The file.
        rest: The state of the simulation at rest.
        scene: The scene to which the state must belong.
        solver: The solver.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file holds no state, or the state of another simulation.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"load_state: there is no file {path}")
    refuse_unpacking(Path(path))
    try:
        data = torch.load(path, map_location="cpu", weights_only=True)  # runs no code in the file
    except Exception as fault:  # torch raises whatever pickle, zipfile and its own readers raise
        raise ValueError(f"load_state: {path} is no file of Simulation.save_state") from fault
    fields = data.get("fields") if isinstance(data, dict) and data.get("format") == _FORMAT else None
    if not isinstance(fields, dict) or not all(isinstance(field, torch.Tensor) for field in fields.values()):
        raise ValueError(f"load_state: {path} is no file of Simulation.save_state, or one of another version")
    own, expected = _fields(rest), _origin(rest, scene, solver)
    if data.get("solver") != expected["solver"]:
        raise ValueError(f"load_state: {path} is a state of {data.get('solver')}, and this is {expected['solver']}")
    if fault := _misfit(fields, own):
        raise ValueError(f"load_state: {path} is a state of another simulation: {fault}")
    for name, field in fields.items():
        if not (finite := field.isfinite()).all():
            at = tuple((~finite).nonzero()[0].tolist())
            raise ValueError(
                f"load_state: {path} is no state to continue from: its {name} is {field[at].item():g} at index {at}; "
                f"take one from before the motion diverged"
            )
    for what, words in (("scene", "another scene"), ("rest", "another mesh, lattice or set of particles")):
        if data.get(what) != expected[what]:
            raise ValueError(
                f"load_state: {path} is a state of {words} than {scene.name!r} in this simulation; make the simulation "
                f"with the same arguments as the one that wrote it"
            )
    return type(rest)(**{name: fields[name].to(field.device) for name, field in own.items()})


def _fields(state: Any) -> dict[str, torch.Tensor]:
    return {f.name: getattr(state, f.name).detach() for f in dataclasses.fields(state)}


def _origin(rest: Any, scene: Scene, solver: object) -> dict[str, str]:
    """Origin of a state: name of the solver, hash of the scene, and hash of the first world of the state `rest`."""
    bits = hashlib.sha256()
    for field in _fields(rest).values():
        bits.update(field[:1].cpu().numpy().tobytes())
    return {"solver": type(solver).__name__, "scene": fingerprint(scene), "rest": bits.hexdigest()}


def _misfit(fields: dict[str, torch.Tensor], own: dict[str, torch.Tensor]) -> str | None:
    """The first difference of `fields` in name, shape or type from the fields `own` of a simulation; None if equal."""
    if fields.keys() != own.keys():
        return f"its fields are {', '.join(fields)} instead of {', '.join(own)}"
    for name, field in own.items():
        if fields[name].shape != field.shape:
            return f"{name} has shape {tuple(fields[name].shape)} instead of {tuple(field.shape)}"
        if fields[name].dtype != field.dtype:
            return f"{name} has type {fields[name].dtype} instead of {field.dtype}"
    return None
