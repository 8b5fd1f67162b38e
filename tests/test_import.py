"""What `import warpbots` loads, and that what it does not load is there when it is asked for."""

import subprocess
import sys

import pytest

import warpbots as wb

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


def test_every_public_name_is_there():
    assert {*wb.__all__} <= {*dir(wb)}
    for name in wb.__all__:
        assert getattr(wb, name) is not None, name
    for module in (wb, sys.modules["warpbots.solvers"]):
        with pytest.raises(AttributeError, match=rf"module '{module.__name__}' has no attribute 'nonsense'"):
            _ = module.nonsense
