"""Solid elements that are driven by actuators with an energy of their own, on the host."""

from collections.abc import Callable

import numpy as np

from warpbots.scene import Actuator, Fibre, PneumaticCell, Scene

__all__ = ["driven"]


def driven(scene: Scene, solids: np.ndarray, regions: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Fields of `Mesh` for fibres and pneumatic cells: a solid element has one entry for each actuator that drives it.

    Args:
        scene: The scene.
        solids: Nodes of the solid elements, shape (n, n_nodes).
        regions: For every region, which elements (solids first) have their centre in the region, bool.
    """
    fields = {}
    for cls, table, kind, values in (
        (
            Fibre,
            "fibres",
            "fibre",
            {"direction": "direction", "contraction": "max_contraction", "stiffness": "stiffness"},
        ),
        (PneumaticCell, "pneumatic", "cell", {"expansion": "max_expansion", "stiffness": "stiffness"}),
    ):
        parts = [
            (c, a, solids[regions[a.region][: len(solids)]]) for c, a in enumerate(scene.actuators) if type(a) is cls
        ]
        each = {"channel": lambda c, a: c} | {name: _of(field) for name, field in values.items()}
        fields[table] = np.concatenate([solids[:0], *(rows for _, _, rows in parts)])
        for name, value in each.items():
            empty = np.zeros((0, 3) if name == "direction" else 0, dtype=int if name == "channel" else float)
            spread = [np.repeat(np.array([value(c, a)]), len(rows), axis=0) for c, a, rows in parts]
            fields[f"{kind}_{name}"] = np.concatenate([empty, *spread])
    return fields


def _of(field: str) -> Callable:
    def value(_channel: int, actuator: Actuator) -> float | tuple[float, ...]:
        return getattr(actuator, field)

    return value
