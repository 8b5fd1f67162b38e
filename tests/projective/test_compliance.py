"""Columns of the compliance: as many as there is room for, each where it is looked for."""

import mmap

import numpy as np
import pytest
import torch
import warp as wp

from warpbots.numerics import real, real_numpy, vector
from warpbots.scene import Box, Material, Obstacle, Scene, SoftBody
from warpbots.simulation import Simulation, SimulationError
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective import contact_step, contact_workspace, workspace
from warpbots.solvers.projective.contact.contact_arrays import ContactArrays, ContactTopology
from warpbots.solvers.projective.contact.coulomb_law import columns_of, compliant
from warpbots.solvers.projective.iterate import compliance
from warpbots.solvers.projective.iterate.compliance import ComplianceArrays

SIDE = 9
NODES = 26
"""Nodes of one side of `cube`, and all that may be in contact."""


def cube() -> Simulation:
    """A cube between a floor and a ceiling; 26 of its 27 nodes may be in contact."""
    body = SoftBody("cube", Box((0, 0, 0), (0.1, 0.1, 0.1)), Material(1e5, 0.3, 1000.0, "corotated"))
    slabs = [
        Obstacle(Box((-1, -1, z), (1, 1, z + 0.1)), name=name) for name, z in (("floor", -0.1), ("ceiling", 0.101))
    ]
    return Simulation(Scene([body], obstacles=slabs), ProjectiveDynamics(0.05), 0.01)


def limit(monkeypatch, columns: int) -> None:
    """Leave room for so many columns of the nodes of `cube`."""
    monkeypatch.setattr(compliance, "_ENTRIES", dict.fromkeys((False, True), columns * NODES))


def thrown() -> tuple[torch.Tensor, torch.Tensor, int]:
    """Where the nodes are after the floor has held the cube, then the ceiling; a gradient, and columns in use."""
    sim = cube()
    state = sim.state()
    velocity = state.velocity.clone().requires_grad_()
    state = sim.state(position=state.position, velocity=velocity)
    for up in (-9.81, -9.81, 30.0, 30.0, 30.0, -30.0, -30.0, -30.0):
        state = sim.step(state, torch.zeros(0), gravity=torch.tensor([[1.0, 0.0, up]]))
    state.position.square().sum().backward()
    columns = sim.model.matrices.of(0.01).compliance
    return state.position.detach(), velocity.grad, int((columns.owner.numpy() >= 0).sum())


def test_a_column_makes_room_for_another_one(monkeypatch):
    """What is computed anew is what it was: a step and its gradient are the same to the bit with half of the columns."""
    x, gradient, columns = thrown()
    assert columns >= 2 * SIDE
    limit(monkeypatch, SIDE)
    y, same, columns = thrown()
    assert columns == SIDE
    assert torch.equal(x, y)
    assert torch.equal(gradient, same)


def test_a_warp_finds_what_one_thread_finds(monkeypatch):
    """Columns, the contacts in order and their forces, by fibers that wait for one another: the same to rounding."""
    x, gradient, _ = thrown()
    monkeypatch.setattr(wp.config, "enable_cpu_blocks", True)
    for module in (compliance, contact_step):
        monkeypatch.setattr(module, "lanes_of", lambda device: 32)
    for module in (compliance, contact_workspace, workspace):
        monkeypatch.setattr(module, "parallel", lambda device: True)
    monkeypatch.setattr(contact_workspace, "_PART", 5)
    y, same, _ = thrown()
    rounding = 64.0 * torch.finfo(x.dtype).eps
    torch.testing.assert_close(y, x, rtol=0.0, atol=rounding * 0.1)
    torch.testing.assert_close(same, gradient, rtol=0.0, atol=16.0 * rounding * float(gradient.abs().max()))


def test_more_nodes_than_there_is_room_for_are_refused(monkeypatch):
    """Neither a force that moves nothing nor one that moves another node: the step fails and says what helps."""
    limit(monkeypatch, SIDE - 1)
    sim = cube()
    with pytest.raises(
        SimulationError, match="too many nodes are in contact at once: .* compliances of 8 of them; use larger cells"
    ):
        sim.step(sim.state(), torch.zeros(0))


@pytest.mark.parametrize("many", [False, True])
def test_memory_of_columns_has_a_bound(many, monkeypatch):
    """20,000 nodes of 1,024 worlds: all columns on a CPU, and half a gigabyte in single precision on a GPU."""
    monkeypatch.setattr(compliance, "parallel", lambda device: many)
    sizes = []
    monkeypatch.setattr(compliance.wp, "empty", lambda shape, **_: sizes.append(np.prod(shape, dtype=np.int64)))
    compliance.compliance_arrays(20_000, 10, 50_000, 1024, wp.get_device("cpu"))
    assert sizes == ([6710 * 20_000, 1024 * 362**2] if many else [20_000**2, 1024 * 512**2])


@wp.kernel(enable_backward=False, module="unique")
def far_kernel(
    topology: ContactTopology, contacts: ContactArrays, compliance: ComplianceArrays, share_out: wp.array[real]
):  # fmt: skip
    """How far contact 1 moves per force of contact 0."""
    columns = columns_of(topology, contacts, compliance, 0)
    share_out[0] = compliant(topology, contacts, compliance, columns, contacts.weight[0], 1)


def test_columns_are_found_beyond_what_an_integer_counts(tmp_path):
    """Entry n^2 - 1 with n^2 > 2^31, in a file without blocks but for the page of that entry."""
    n = 46_400
    assert n * n > 2**31
    path = tmp_path / "columns"
    with path.open("w+b") as file:
        file.truncate(n * n * np.dtype(real_numpy).itemsize)
        pages = mmap.mmap(file.fileno(), 0)
    values = np.frombuffer(pages, real_numpy).reshape(n, n)
    values[n - 1, n - 1] = 3.0
    topology, contacts, columns = ContactTopology(), ContactArrays(), ComplianceArrays()

    def array(rows: list, dtype: type = int) -> wp.array:
        return wp.array(rows, dtype=dtype, device="cpu")

    topology.place = wp.array(np.arange(n, dtype=np.int32), dtype=int, device="cpu")
    columns.column = topology.place
    columns.value = wp.array(values, dtype=real, device="cpu", copy=False)
    contacts.node = array([[n - 1, -1, -1, -1]] * 2, wp.vec4i)
    contacts.weight = array([[1.0, 0.0, 0.0, 0.0]] * 2, vector(4))
    out = wp.zeros(1, dtype=real, device="cpu")
    wp.launch(far_kernel, 1, [topology, contacts, columns], [out], device="cpu")
    assert out.numpy()[0] == 3.0
    del columns.value, values
