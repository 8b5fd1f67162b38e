"""Designs of robots: a topology with its scale factors, as plain data that files store to the last bit."""

import dataclasses
import functools
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from warpbots.design.assembly import Assembly
from warpbots.design.component import Component
from warpbots.design.grammar.topology import Topology
from warpbots.input_files import readable
from warpbots.output_files import replacing
from warpbots.scene.field_types import checked, conform

__all__ = ["Design"]

_FORMAT = "warpbots design 1"
_SAME = 1e-9
"""Largest relative difference of sizes that count as equal."""


@dataclasses.dataclass(frozen=True, eq=False)
class Design:
    """A topology with its scale factors.

    Attributes:
        topology: The tree of components.
        factors: Scale factors, by their names in `Assembly.names` [1]; missing factors are 1.
        constant: Names, or patterns of names, of scale factors that remain 1, as for `Assembly`.
        density: Density [kg/m^3].
        about: Further plain data to store with the design, such as the loss, controls, or the origin of the design.

    Raises:
        ValueError: A factor is not positive and finite, the assembly has no factor with a given name, or
            `Topology.assembly` raises.
    """

    topology: Topology
    factors: Mapping[str, float] = dataclasses.field(default_factory=dict)
    constant: tuple[str, ...] = ()
    density: float = 1000.0
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        conform(self)
        for name, factor in self.factors.items():
            if name not in self.assembly.names:
                names = ", ".join(self.assembly.names)
                raise ValueError(f"Design: {self.topology} has no factor {name!r}; it has {names}")
            if not 0.0 < factor < math.inf:
                raise ValueError(f"Design: the factor of {name!r} must be positive and finite, got {factor!r}")

    @classmethod
    @checked
    def of(cls, topology: Topology, factors: torch.Tensor, **options: Any) -> "Design":
        """A design whose factors are given as a vector, in the order of `Assembly.names`.

        Args:
            topology: Topology of the design.
            factors: Scale factors of the design [1], shape (n,).
            **options: The fields `constant`, `density` and `about`.

        Raises:
            ValueError: The number of factors is wrong, or `Design` raises.
        """
        bare = cls(topology, **options)
        names, values = bare.assembly.names, factors.detach().double().tolist()
        if len(names) != len(values):
            raise ValueError(f"Design: {topology} has {len(names)} factors, got {len(values)}")
        return dataclasses.replace(bare, factors=dict(zip(names, values, strict=True)))

    @functools.cached_property
    def assembly(self) -> Assembly:
        """The components of the design as articulated bodies with free sizes."""
        return self.topology.assembly(self.constant, self.density)

    @property
    def vector(self) -> torch.Tensor:
        """Scale factors in the order of `Assembly.names` [1], shape (n,), float64."""
        return torch.tensor([self.factors.get(name, 1.0) for name in self.assembly.names], dtype=torch.float64)

    @checked
    def save(self, path: str | Path) -> None:
        """Write the design as JSON, completely or not at all.

        The file contains the derivation, the factors to the last bit, and the component sizes that the factors scale.

        Raises:
            ValueError: `about` is not plain data, or has a key that is not a text.
            OSError: The file cannot be written.
        """
        _refuse_keys(self.about)
        used = sorted({*self.topology.term.symbols()})
        data = {
            "format": _FORMAT,
            "derivation": [list(step) for step in self.topology.derivation],
            "factors": dict(self.factors),
            "constant": list(self.constant),
            "density": self.density,
            "components": {name: dict(self.topology.components[name].sizes) for name in used},
            "about": dict(self.about),
        }
        try:
            text = json.dumps(data, indent=1, allow_nan=False)
        except (TypeError, ValueError) as fault:
            raise ValueError(
                f"Design.save: about must be plain data, of finite numbers, texts and lists: {fault}"
            ) from None
        with replacing(path) as (temporary,):
            temporary.write_text(text + "\n", encoding="utf-8")

    @classmethod
    @checked
    def load(cls, path: str | Path, components: Mapping[str, Component]) -> "Design":
        """Read a file that `save` has written.

        Args:
            path: The file.
            components: Components by name, with the same sizes as when the file was saved.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file does not contain a design, a component is missing, or the sizes of a component have
                changed.
        """
        file = readable(path)
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
            if data["format"] != _FORMAT:
                raise ValueError(f"its format is {data['format']!r} and not {_FORMAT!r}")
            _refuse_changes(data["components"], components)
            topology = Topology(tuple((str(rule), str(text)) for rule, text in data["derivation"]), components)
            return cls(topology, data["factors"], tuple(data["constant"]), data["density"], data["about"])
        except (ValueError, KeyError, TypeError, AttributeError) as fault:
            raise ValueError(f"{path} is no design that can be read: {_reason(fault)}") from None


def _refuse_keys(data: Any) -> None:
    """Raise if a key of plain data is not a text: JSON would turn it into one."""
    if isinstance(data, Mapping):
        if others := [key for key in data if not isinstance(key, str)]:
            raise ValueError(f"Design.save: about must have texts as keys, got {others[0]!r}; write {str(others[0])!r}")
        data = data.values()
    elif not isinstance(data, list | tuple):
        return
    for value in data:
        _refuse_keys(value)


def _reason(fault: Exception) -> str:
    return f"it has no {fault.args[0]!r}" if isinstance(fault, KeyError) else str(fault)


def _refuse_changes(there: Mapping[str, Mapping[str, float]], here: Mapping[str, Component]) -> None:
    """Raise if the sizes of the components `here` differ from the sizes in the file, `there`."""
    for name, sizes in there.items():
        if name not in here:
            raise ValueError(f"it needs a component {name!r}; there are {', '.join(here)}")
        own = here[name].sizes
        for size in {**sizes, **own}:
            was, now = sizes.get(size), own.get(size)
            if was is None or now is None or not math.isclose(was, now, rel_tol=_SAME):
                raise ValueError(
                    f"{size!r} of component {name!r} was {_length(was)} and is {_length(now)}, so that factors would "
                    f"mean another shape; give the components of that time"
                )


def _length(value: float | None) -> str:
    return "missing" if value is None else f"{value:.9g} m"
