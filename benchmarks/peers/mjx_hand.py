"""A hand of rigid bodies in MuJoCo MJX, with its gradient by JAX: the peer of ``beside_peers.py hand``.

The scene is the file that `warpbots.robots.save` wrote, with the contact laws of warpbots as closely as MuJoCo's soft
constraints have them. JAX differentiates the steps of MJX in reverse mode only if the solver of constraints runs a
single iteration, from the accelerations of the step before; here more iterations would change nothing. It answers
controls as ``serve.py`` says (``pip install mujoco-mjx``).
"""

import os
from importlib.metadata import version
from types import SimpleNamespace

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from serve import serve

SEARCH = 4
"""Iterations of MJX's line search, all of which JAX differentiates; its default is 50."""


def root(x):
    """Square root whose derivative at zero is zero.

    The line search for elliptic cones takes the square root of the squared tangential speeds of contacts. It is zero
    where bodies do not touch, and with the derivative of `jax.numpy` the gradient of every motion is not a number.
    """
    return jnp.where(x > 0.0, jnp.sqrt(jnp.where(x > 0.0, x, 1.0)), 0.0)


def prepare(options):
    """Load the scene; the first episode compiles."""
    import mujoco
    from mujoco import mjx
    from mujoco.mjx._src import solver

    solver.jp = SimpleNamespace(**vars(jnp) | {"sqrt": root})
    jax.config.update("jax_enable_x64", True)
    model = mujoco.MjModel.from_xml_path(options["file"])
    model.opt.timestep = options["dt"]
    model.opt.iterations = 1  # JAX refuses reverse mode through the loop of more iterations
    model.opt.ls_iterations = SEARCH
    there = mjx.put_model(model)
    start = mjx.put_data(model, mujoco.MjData(model))
    types = jax.eval_shape(lambda data: mjx.step(there, data), start)  # integers of contacts widen in the first step
    start = jax.tree.map(lambda value, like: jnp.asarray(value, like.dtype), start, types)
    again = jax.checkpoint(mjx.step)  # keeps states and computes steps twice, which is faster than to keep everything
    target, scale = jnp.array(options["target"]), jnp.array(options["scale"])

    def interval(data, u):
        def step(data, _):
            return again(there, data), None

        data, _ = jax.lax.scan(step, data.replace(ctrl=u), None, length=options["substeps"])
        return data, data.qpos

    def loss(controls):
        data, q = jax.lax.scan(interval, start, controls)
        return (((data.qpos[-3:] - target) / scale) ** 2).sum(), q

    def losses(controls):
        values, q = jax.vmap(loss)(controls)
        return values.sum(), q

    forward = {2: jax.jit(loss), 3: jax.jit(losses)}  # by the number of axes of the controls
    both = {n: jax.jit(jax.value_and_grad(f, has_aux=True)) for n, f in ((2, loss), (3, losses))}
    last = []

    def episode(controls, gradient=True):
        run = (both if gradient else forward)[controls.ndim]
        found = jax.block_until_ready(run(jnp.array(controls)))
        (value, q), slope = found if gradient else (found, ())
        last[:] = [q]
        return float(value), np.asarray(slope)

    return f"MJX {version('mujoco-mjx')} on JAX {jax.__version__}", episode, lambda: np.asarray(last[0])


if __name__ == "__main__":
    serve(prepare)
