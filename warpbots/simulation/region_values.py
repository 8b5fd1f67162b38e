"""Regions of matter, and a parameter of a model from values for regions and bodies."""

from collections.abc import Mapping
from typing import Any

import torch
import warp as wp

from warpbots.scene.field_types import fitted
from warpbots.simulation.input_validation import Inputs
from warpbots.solvers import Model

__all__ = ["per_region", "region"]


def region(model: Model, name: str) -> torch.Tensor:
    """The points of matter in a region; see `Simulation.region`."""
    if model.matter is None:
        raise KeyError(f"there is no region {name!r}: regions are parts of soft bodies, and the scene has none")
    regions = model.matter.regions
    if fitted(name, str, "region: name") not in regions:
        raise KeyError(f"there is no region {name!r}; the scene has {', '.join(regions) or 'none'}")
    return torch.as_tensor(regions[name], device=wp.device_to_torch(model.device))


def per_region(
    model: Model, inputs: Inputs, own: torch.Tensor, values: Mapping[str, Any], parameter: str
) -> torch.Tensor:
    """See `Simulation.per_region`.

    Args:
        model: The model, which has the parameter.
        inputs: Checks the values.
        own: Values of the parameter in the model, shape (worlds, n, ...).
        values: Values by the name of a region or a body.
        parameter: Name of the parameter.
    """
    per, scene = model.parameters()[parameter].per, model.scene
    places = model.places(per)
    if places is None:
        raise ValueError(
            f"per_region: parameter {parameter!r} is one value per {per}, which has no place in a region; pass it to "
            f"rollout or step as a tensor of shape {tuple(own.shape)}"
        )
    regions, bodies = list(scene.regions()), [b.name for b in scene.bodies]
    for name, value in values.items():
        if name not in regions and name not in bodies:
            raise KeyError(
                f"per_region: there is no region or body {name!r}; the scene has the regions "
                f"{', '.join(regions) or '(none)'} and the bodies {', '.join(bodies)}"
            )
        members = torch.as_tensor(places.members(scene, name), device=own.device)
        if not members.any():
            raise ValueError(
                f"per_region: {name!r} selects none of the {len(places)} values of {parameter!r}, one per {per} of the "
                f"model; use a larger region, smaller cells or the name of another region or body"
            )
        value = inputs.fit(value, own[:, 0], f"per_region: the value of {name!r}", model.parameters()[parameter].entry)
        own = torch.where(members.view(-1, *(1,) * (own.dim() - 2)), value[:, None], own)
    return own
