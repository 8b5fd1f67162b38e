"""A hand of rigid bodies in MuJoCo MJX, with its gradient by JAX: the peer of ``beside_peers.py hand``.

The scene is the file that `warpbots.robots.save` wrote, with the contact laws of warpbots as closely as MuJoCo's soft
constraints have them. JAX differentiates the steps of MJX in reverse mode only if the solver of constraints runs a
single iteration, from the accelerations of the step before. It answers controls as ``serve.py`` says (``pip install
mujoco-mjx``).
"""

import os

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from serve import serve


def prepare(options):
    """Load the scene; the first episode compiles."""
    import mujoco
    from mujoco import mjx

    jax.config.update("jax_enable_x64", True)
    model = mujoco.MjModel.from_xml_path(options["file"])
    model.opt.timestep = options["dt"]
    model.opt.iterations = 1  # JAX refuses reverse mode through the loop of more iterations
    there = mjx.put_model(model)
    start = mjx.put_data(model, mujoco.MjData(model))
    types = jax.eval_shape(lambda data: mjx.step(there, data), start)  # integers of contacts widen in the first step
    start = jax.tree.map(lambda value, like: jnp.asarray(value, like.dtype), start, types)
    target, scale = jnp.array(options["target"]), jnp.array(options["scale"])

    def interval(data, u):
        def step(data, _):
            return mjx.step(there, data), None

        data, _ = jax.lax.scan(step, data.replace(ctrl=u), None, length=options["substeps"])
        return data, data.qpos

    def loss(controls):
        data, q = jax.lax.scan(interval, start, controls)
        return (((data.qpos[-3:] - target) / scale) ** 2).sum(), q

    compiled = jax.jit(jax.value_and_grad(loss, has_aux=True))
    last = []

    def episode(controls):
        (value, q), gradient = jax.block_until_ready(compiled(jnp.array(controls)))
        last[:] = [q]
        return float(value), np.asarray(gradient)

    return f"MJX {mujoco.__version__} on JAX {jax.__version__}", episode, lambda: np.asarray(last[0])


if __name__ == "__main__":
    serve(prepare)
