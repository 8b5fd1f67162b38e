"""Modules that `import warpbots` loads, and all others on first use."""

import os
import subprocess
import sys

import pytest
import warp as wp

import warpbots as wb
from warpbots.numerics import launch_lanes

HEAVY = ("scipy", "pxr", "trimesh", "PIL", "matplotlib", "mujoco", "meshio", "k3d", "ipywidgets", "IPython")
OURS = ("usd", "view", "robots", "solvers.mpm", "solvers.articulated", "solvers.mass_spring", "solvers.projective")


def loaded(code):
    """Names of all modules in a fresh process after `code`."""
    code = f"{code}; import sys; print('modules', *sys.modules)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_importing_the_package_loads_nothing_heavy():
    """Nothing but torch, Warp and NumPy: each of the others would take longer than all of warpbots."""
    found = loaded("import warpbots")
    assert not {*HEAVY, *(f"warpbots.{name}" for name in OURS)} & found


def test_importing_a_solver_loads_no_heavy_package_that_it_seldom_needs():
    """SciPy's signal package alone takes as long as torch; only spectra of motions need it."""
    assert not {"scipy.signal", "scipy.stats", "pxr", "matplotlib"} & loaded("import warpbots.solvers.mass_spring")


def test_importing_pictures_draws_nothing():
    assert not {"matplotlib", "PIL", "k3d", "ipywidgets", "IPython"} & loaded("import warpbots.view")


WITHOUT = """
import importlib.util
ADAPTED = "gymnasium", "rsl_rl", "stable_baselines3", "torchrl"
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in ADAPTED else found(name, *rest)
from warpbots.envs import *
import pydoc, warpbots.envs
assert Episode is warpbots.envs.Episode and not {*warpbots.envs._LOADED_WHEN_USED} & {*dir(warpbots.envs)}
pydoc.render_doc(warpbots.envs)
said = ""
try:
    warpbots.envs.RslRlEnv
except ImportError as error:
    said = str(error)
assert "needs rsl_rl, which is not installed: pip install rsl-rl-lib" in said"""


def test_a_star_import_takes_what_is_installed():
    """It failed unless the libraries of all adapters were installed, and so did `help`."""
    loaded(WITHOUT)


SETTINGS = """
import importlib, pkgutil
import warp as wp
def settings():
    return {name: value for name, value in vars(wp.config).items() if not name.startswith("__")}
before = settings()
import warpbots as wb
for module in pkgutil.walk_packages(wb.__path__, "warpbots."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:  # adapters to optional libraries
            if error.name.split(".")[0] not in ("gymnasium", "rsl_rl", "stable_baselines3", "tensordict", "torchrl"):
                raise
assert settings() == before
"""
USED = """
ball = wb.SoftBody("ball", wb.shapes.Box((0.0, 0.2), (0.1, 0.3)), wb.Material(1e4))
simulation = wb.Simulation(wb.Scene([ball], obstacles=[wb.floor(dim=2)]), wb.MassSpring(spacing=0.05), 1e-3, 20)
simulation.rollout(None, steps=2)
"""


@pytest.mark.parametrize("parallel", ["0", "1"])
def test_settings_of_warp_stay_those_of_the_user(parallel):
    """After the import of every module, and after a simulation, whose kernels are loaded without a line of Warp."""
    code = f"{SETTINGS}{USED}assert settings() == before | {{'kernel_cache_dir': wp.config.kernel_cache_dir}}"
    environment = os.environ | {"WARPBOTS_PARALLEL": parallel}
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("warpbots: ")]  # kernels compiled once
    assert (done.returncode, done.stdout, lines) == (0, "", [])


@wp.kernel(enable_backward=False)
def threads_kernel(count_out: wp.array[int]):
    """Number of threads in a block."""
    count_out[0] = wp.block_dim()


@pytest.mark.parametrize("threads", [1, 32])
def test_blocks_have_threads_where_a_cpu_takes_the_choices_of_a_gpu(threads, as_gpu):
    """In launches of warpbots alone: the setting of Warp stays as it is."""
    if threads > 1:
        as_gpu()
    count = wp.zeros(1, dtype=int, device="cpu")
    launch_lanes(threads_kernel, 1, 32, [], [count], count.device)
    assert count.numpy().tolist() == [threads]
    assert not wp.config.enable_cpu_blocks


def test_who_asks_for_lines_of_warp_has_them():
    code = f"import warp as wp, warpbots as wb\nwp.config.log_level = wp.LOG_DEBUG\n{USED}"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert "Module warpbots." in done.stdout


def test_every_public_name_is_there():
    assert {*wb.__all__} <= {*dir(wb)}
    for name in wb.__all__:
        assert getattr(wb, name) is not None, name
    for module in (wb, sys.modules["warpbots.solvers"]):
        with pytest.raises(AttributeError, match=rf"module '{module.__name__}' has no attribute 'nonsense'"):
            _ = module.nonsense
