"""Environments for reinforcement learning: any simulation in the form of Gymnasium (``pip install "warpbots[rl]"``).

The import registers the tasks of `warpbots.envs.tasks`, so that ``gymnasium.make("warpbots/Walker2D-v0")`` finds them.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING

from warpbots.envs.draws import Draw, Scaled, Shifted, UniformValue
from warpbots.envs.episode import Episode, Transition
from warpbots.envs.tasks import TASKS

if TYPE_CHECKING:
    from warpbots.envs.rsl_rl import RslRlEnv
    from warpbots.envs.single_env import SimulationEnv
    from warpbots.envs.stable_baselines import StableBaselinesEnv
    from warpbots.envs.torchrl import TorchRLEnv
    from warpbots.envs.vector_env import SimulationVectorEnv

__all__ = [
    "Draw",
    "Episode",
    "RslRlEnv",
    "Scaled",
    "Shifted",
    "SimulationEnv",
    "SimulationVectorEnv",
    "StableBaselinesEnv",
    "TASKS",
    "TorchRLEnv",
    "Transition",
    "UniformValue",
]

_LOADED_WHEN_USED = {
    "SimulationEnv": ("single_env", "gymnasium", 'pip install "warpbots[rl]"'),
    "SimulationVectorEnv": ("vector_env", "gymnasium", 'pip install "warpbots[rl]"'),
    "StableBaselinesEnv": ("stable_baselines", "stable_baselines3", "pip install stable-baselines3"),
    "TorchRLEnv": ("torchrl", "torchrl", "pip install torchrl"),
    "RslRlEnv": ("rsl_rl", "rsl_rl", "pip install rsl-rl-lib"),
}
"""Names that need an optional package: the module with the name, the package, and how to install it."""


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


if not TYPE_CHECKING:
    # a star import and `help` read every name in `__all__`
    __all__ = [name for name in __all__ if name not in _LOADED_WHEN_USED or _installed(_LOADED_WHEN_USED[name][1])]

    def __getattr__(name: str) -> object:
        if name not in _LOADED_WHEN_USED:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, package, remedy = _LOADED_WHEN_USED[name]
        if not _installed(package):
            raise ImportError(f"wb.envs.{name} needs {package}, which is not installed: {remedy}", name=package)
        globals()[name] = getattr(importlib.import_module(f"warpbots.envs.{module}"), name)
        return globals()[name]

    if _installed("gymnasium"):
        from warpbots.envs.registered import register

        register()


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
