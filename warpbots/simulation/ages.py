"""Ages of worlds: the time since the start of each world, passed to controllers. Ages differ after resets."""

from typing import Any

import numpy as np
import torch

from warpbots.scene.field_types import fitted, shown

__all__ = ["age", "ages", "chosen_worlds"]


def age(time: Any, worlds: int, device: torch.device, what: str) -> float | torch.Tensor:
    """Check the time since the start of the worlds [s].

    Args:
        time: One number for all worlds, or a tensor with one number for each world [s].
        worlds: Number of worlds.
        device: Device of the worlds.
        what: Name of the time in messages.

    Returns:
        A number if `time` is a number; otherwise a float64 tensor [s], shape (worlds,).

    Raises:
        ValueError: `time` is neither a finite number nor one finite number for each world.
    """
    if not isinstance(time, torch.Tensor | np.ndarray | list | tuple):
        return fitted(time, float, what)
    try:
        each = torch.as_tensor(time, device=device)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{what} must be a number or a tensor of numbers [s], got {shown(time)}") from None
    if each.dtype == torch.bool or each.is_complex():
        raise ValueError(f"{what} must be real numbers [s], got numbers of type {each.dtype}")
    if each.shape not in ((), (worlds,)):
        raise ValueError(
            f"{what} must be one number or have shape ({worlds},), the age of each world [s], got {tuple(each.shape)}"
        )
    if not torch.isfinite(each).all():
        raise ValueError(f"{what} must be finite [s], got {each.detach().cpu().tolist()}")
    return each.double().expand(worlds)


def ages(time: Any, worlds: int, device: torch.device, what: str) -> torch.Tensor:
    """Like `age`, but always one age for each world [s], shape (worlds,)."""
    found = age(time, worlds, device, what)
    if isinstance(found, float):
        return torch.full((worlds,), found, dtype=torch.float64, device=device)
    return found


_WORLDS = "a mask of booleans or a list of indices"


def chosen_worlds(worlds: Any, count: int, device: torch.device, what: str) -> torch.Tensor:
    """A mask that is true for the chosen worlds, shape (worlds,), bool.

    Args:
        worlds: The chosen worlds: a mask of shape (worlds,), bool, or a list of indices, or one index. Tensors and
            arrays are masks only, because 0 and 1 in them could be meant either way.
        count: Number of worlds.
        device: Device of the worlds.
        what: Name of the caller in messages.

    Raises:
        ValueError: `worlds` is neither a mask nor a list of indices, an index is out of range, or a mask has numbers
            instead of booleans.
    """
    try:
        chosen = torch.as_tensor(worlds, device=device)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{what}: worlds must be {_WORLDS}, got {shown(worlds)}") from None
    if chosen.dtype == torch.bool:
        if chosen.shape != (count,):
            raise ValueError(
                f"{what}: a mask of worlds must have shape ({count},), one entry for each, got {tuple(chosen.shape)}"
            )
        return chosen
    if isinstance(worlds, torch.Tensor | np.ndarray) and chosen.dim():
        kind = "a tensor" if isinstance(worlds, torch.Tensor) else "an array"
        raise ValueError(
            f"{what}: worlds must be {_WORLDS}, got {kind} of type {worlds.dtype}, whose numbers could be either: give "
            f"a mask as {'worlds.bool()' if kind == 'a tensor' else 'worlds.astype(bool)'}, indices as worlds.tolist()"
        )
    if (chosen.is_floating_point() or chosen.is_complex()) and chosen.numel():
        raise ValueError(f"{what}: worlds must be {_WORLDS}, got numbers of type {chosen.dtype}")
    looks_like_mask = chosen.shape == (count,) and bool(((chosen == 0) | (chosen == 1)).all())
    chosen = chosen.reshape(-1).long()
    if looks_like_mask and len(chosen.unique()) < count:
        raise ValueError(
            f"{what}: worlds {chosen.tolist()} are indices, of which some repeat; for a mask use booleans, such as "
            f"[True, False], or give each index once"
        )
    wrong = chosen[(chosen < -count) | (chosen >= count)]
    if len(wrong):
        raise ValueError(f"{what}: there is no world {int(wrong[0])}; the simulation has worlds 0 to {count - 1}")
    mask = torch.zeros(count, dtype=torch.bool, device=device)
    mask[chosen] = True
    return mask
