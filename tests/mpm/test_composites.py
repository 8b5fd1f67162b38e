"""Fibres and Maxwell branches under MPM: bars against closed forms, energies, and who else takes them."""

import dataclasses

import numpy as np
import pytest
import torch
from cases import block, least, stirred, to_numpy, yielding

import warpbots as wb
from warpbots.numerics import precision
from warpbots.simulation import Simulation
from warpbots.solvers import MPM, MassSpring, ProjectiveDynamics

DX, RHO = 1 / 16, 1000.0


def bar(material: wb.Material, load: float = 0.0) -> wb.Scene:
    """A bar of 1 m x 0.25 m whose ends move along it alone; its left end stays, a force per height pulls at the right."""
    Box = wb.shapes.Box
    regions = {"left": Box((0.0, 0.0), (DX, 0.25)), "right": Box((1.0 - DX, 0.0), (1.0, 0.25))}
    regions["middle"] = Box((0.35, 0.0), (0.65, 0.25))
    body = wb.SoftBody("bar", Box((0.0, 0.0), (1.0, 0.25)), material, regions)
    held = ("left",) if load else ("left", "right")
    ends = [wb.Constraint(end, "line", (0.0, 1.0), name=end) for end in held]
    loads = [wb.Load("right", (0.25 * load, 0.0))] if load else []
    domain = ((-0.5, -0.5), (2.0, 0.75))
    return wb.Scene([body], gravity=(0.0, 0.0), domain=domain, constraints=ends, loads=loads)


def stretched(sim: Simulation, strain: float, lateral: float, rate: float = 0.0):
    """The bar stretched evenly, at rest or while it grows longer at a rate and thinner at the same [1/s]."""
    rest = sim.state()
    F = torch.diag(torch.tensor([1.0 + strain, 1.0 + lateral])).to(rest.position)
    branches = F.expand(rest.branch_deformation.shape)
    deformation = F.expand(rest.deformation.shape)
    middle = torch.tensor([0.0, 0.125]).to(rest.position)
    C = rate * torch.diag(torch.tensor([1.0, -1.0])).to(rest.position)
    return sim.state(
        position=(rest.position - middle) @ F + middle, velocity=(rest.position - middle) @ C,
        velocity_gradient=C.expand(rest.deformation.shape), deformation=deformation, branch_deformation=branches,
    )  # fmt: skip


MAXWELL = wb.Material(
    1e5, 1 / 3, RHO, "weakly_compressible", damping=2e-3, branches=[wb.materials.MaxwellBranch(2e4, 0.5)]
)
"""A Maxwell fluid: K = 1e5 Pa, G = 2e4 Pa, T = 0.5 s. In a plane with free sides, its modulus is 4 K G / (K + G)."""
K, G, T = 1e5, 2e4, 0.5
MODULUS = 4.0 * K * G / (K + G)


def test_the_stress_of_a_maxwell_bar_fades():
    """Held at a strain of 1 % it is E exp(-t K / (T (K + G))): slower than the branch, as the bar contracts sideways."""
    sim = Simulation(bar(MAXWELL), MPM(DX), 0.02, None)
    strain, nu = 0.01, (K - G) / (K + G)
    state, middle, stress = stretched(sim, strain, -nu * strain), sim.region("middle"), {}
    with torch.no_grad():
        for n in range(1, 31):
            state = sim.rollout(None, 1, state).final
            stress[0.02 * n] = float(sim.sense(state).stress[0, middle, 0, 0].mean())
    slow = T * (K + G) / K
    for t in (0.2, 0.4, 0.6):
        expected = MODULUS * strain * np.exp(-t / slow)
        print(f"t = {t}: {stress[t] / expected:.4f}")
        assert stress[t] == pytest.approx(expected, rel=0.03)


def strains(sim: Simulation, start, steps: int) -> np.ndarray:
    """Strain of the middle of a bar along it after each step and at the start, a line through its particles [1]."""
    with torch.no_grad():
        motion = sim.rollout(None, steps, start)
    inside = sim.region("middle")
    x = [to_numpy(state.position[0, inside, 0]) for _, state in motion.states()]
    rest = to_numpy(sim.state().position[0, inside, 0])
    return np.array([np.polyfit(rest, row, 1)[0] - 1.0 for row in x])


def test_a_maxwell_bar_creeps():
    """Under a constant stress its strain grows by stress / (4 G T) a second, from stress / E."""
    load, nu = 200.0, (K - G) / (K + G)
    sim = Simulation(bar(MAXWELL, load), MPM(DX), 0.02, None)
    strain = strains(sim, stretched(sim, load / MODULUS, -nu * load / MODULUS, load / (4.0 * G * T)), 50)
    rate, at_first = np.polyfit(0.02 * np.arange(51), strain, 1)
    print(f"rate {rate / (load / (4 * G * T)):.4f}, at first {at_first / (load / MODULUS):.4f}")
    assert rate == pytest.approx(load / (4.0 * G * T), rel=0.03)
    assert at_first == pytest.approx(load / MODULUS, rel=0.05)


@pytest.mark.parametrize("angle", [0.0, 90.0])
def test_a_bar_is_stiffer_along_its_fibres_than_across(angle):
    """Under a load it rests at a strain of stress / (E + k) with fibres along it, and of stress / E across."""
    load, E, k = 500.0, 5e4, 5e4
    along = (np.cos(np.radians(angle)), np.sin(np.radians(angle)))
    rubber = wb.Material(E, 0.0, RHO, "linear", damping=0.03, fibres=[wb.materials.FibreReinforcement(along, k)])
    sim = Simulation(bar(rubber, load), MPM(DX), 0.02, None)
    expected = load / (E + (k if angle == 0.0 else 0.0))
    strain = strains(sim, stretched(sim, 0.9 * expected, 0.0), 50)
    print(f"{strain[-25:].mean() / expected:.4f}, {np.ptp(strain[-25:]) / expected:.4f}")
    assert strain[-25:].mean() == pytest.approx(expected, rel=0.02)


def test_energy_and_stress_that_are_measured(rng):
    """Of an even deformation: law, fibres and branches, each by its formula."""
    dim, k, mu_b = 2, 2e4, 3e3
    fibres = [wb.materials.FibreReinforcement((3.0, 4.0), k)]
    branches = [wb.materials.MaxwellBranch(mu_b, 0.1), wb.materials.MaxwellBranch(2.0 * mu_b, 0.1)]
    scene = block(dim)
    (body,) = scene.bodies
    composite = dataclasses.replace(body.material, fibres=fibres, branches=branches)
    sim = Simulation(
        dataclasses.replace(scene, bodies=[dataclasses.replace(body, material=composite)]), MPM(1 / 8), 1e-3
    )
    plain = Simulation(scene, MPM(1 / 8), 1e-3)
    F, G = np.array([[1.3, 0.1], [0.0, 1.1]]), np.array([[1.2, 0.0], [0.1, 0.9]])
    like = sim.state().position
    own = {"deformation": torch.as_tensor(F).to(like)}
    both = sim.sense(sim.state(**own, branch_deformation=torch.as_tensor(G).to(like)))
    law = plain.sense(plain.state(**own))
    along = F @ [0.6, 0.8]
    L = np.linalg.norm(along)
    stretch, axes = np.linalg.eigh(G @ G.T)
    e = axes @ np.diag(0.5 * np.log(stretch)) @ axes.T
    e -= np.trace(e) / 2 * np.eye(2)
    added = k * (L - 1.0) / L * np.outer(along, along) + 6.0 * mu_b * e
    tolerance = {"float64": 1e-12, "float32": 1e-5}[precision]
    found = to_numpy(both.stress - law.stress)[0, 0]
    np.testing.assert_allclose(found, added / np.linalg.det(F), atol=tolerance * np.abs(to_numpy(both.stress)).max())
    energy = 0.25**2 * (0.5 * k * (L - 1.0) ** 2 + 3.0 * mu_b * (e**2).sum())
    assert float(both.elastic_energy - law.elastic_energy) == pytest.approx(energy, rel=100 * tolerance)


@pytest.mark.verification
def test_gradients_of_readings(rng):
    """By everything that stress and energy depend on, against differences."""
    sim = Simulation(yielding(2), MPM(1 / 8), 4e-3, 2)
    inputs = stirred(sim, rng, 1)
    weights = {"stress": None, "elastic_energy": None}
    names = [n for n in inputs if n in ("deformation", "plastic", "branch_deformation", *sim.parameters())]
    fields = {f.name for f in dataclasses.fields(sim.state())}

    def loss(values: dict) -> torch.Tensor:
        state = sim.state(**{n: v for n, v in values.items() if n in fields})
        found = sim.sense(state, **{n: v for n, v in values.items() if n not in fields and n != "control"})
        for name in weights:
            if weights[name] is None:
                weights[name] = torch.as_tensor(rng.normal(size=getattr(found, name).shape))
        return sum((w * getattr(found, name)).sum() for name, w in weights.items())

    leaves = {n: v.clone().requires_grad_() for n, v in inputs.items()}
    gradients = torch.autograd.grad(loss(leaves), [leaves[n] for n in names], allow_unused=True)
    reached = set()
    for name, gradient in zip(names, gradients, strict=True):
        if gradient is None or not gradient.any():
            continue
        reached.add(name)
        d = torch.as_tensor(rng.uniform(-1, 1, gradient.shape)) * inputs[name].abs().clamp(min=1e-3)
        up, down = (float(loss({**inputs, name: inputs[name] + s * 1e-6 * d})) for s in (1.0, -1.0))
        assert float((gradient * d).sum()) == pytest.approx((up - down) / 2e-6, rel=2e-5), name
    expected = {"fibre_modulus", "fibre_direction", "branch_modulus", "deformation", "branch_deformation", "plastic"}
    assert expected <= reached


def test_the_step_knows_stiff_fibres_and_branches():
    """The bound falls with the root of the added stiffness, and half of it is stable."""
    plain = Simulation(bar(wb.Material(1e4, 0.3, RHO)), MPM(DX), 0.01, None)
    for extra in (
        {"fibres": [wb.materials.FibreReinforcement((1, 0), 1e6)]},
        {"branches": [wb.materials.MaxwellBranch(1e6, 1.0)]},
    ):
        sim = Simulation(bar(wb.Material(1e4, 0.3, RHO, **extra)), MPM(DX), 0.01, None)
        assert sim.substeps >= 5 * plain.substeps
        with torch.no_grad():
            final = sim.rollout(None, 5, stretched(sim, 0.01, 0.0)).final
        assert final.velocity.abs().max() < 1.0


def test_a_design_of_fibres_is_kept():
    """A stiffness for each particle and family goes with the scene, to the bit, and to other particles."""
    scene = yielding(2)
    sim = Simulation(scene, MPM(1 / 8), 4e-3, 4)
    values = {n: sim.parameter(n)[0] for n in ("fibre_modulus", "fibre_direction", "branch_modulus", "relaxation_time")}
    values = {n: v * torch.linspace(1.0, 1.2, len(v)).view(-1, *(1,) * (v.dim() - 1)) for n, v in values.items()}
    designed = sim.scene_with(**values)
    again = Simulation(designed, MPM(1 / 8), 4e-3, 4)
    for name, value in values.items():
        assert torch.equal(again.parameter(name)[0], value.to(again.parameter(name)))
    with pytest.warns(UserWarning, match="elements instead of the"):
        other = Simulation(designed, MPM(1 / 12), 4e-3, 4)
    assert other.parameter("fibre_modulus").max() == pytest.approx(float(values["fibre_modulus"].max()), rel=0.05)


def test_a_direction_without_a_length_is_refused():
    """As it is in a material; its fibres would pull nowhere."""
    sim = Simulation(yielding(2), MPM(1 / 8), 4e-3, 4)
    direction = sim.parameter("fibre_direction").clone()
    direction[0, 3, 1] = 0.0
    words = r"'fibre_direction' must be a vector of a length above 0, got \[0.0, 0.0\] at index \[0, 3, 1\]"
    with pytest.raises(ValueError, match=words):
        sim.rollout(None, 1, fibre_direction=direction)
    with pytest.raises(ValueError, match="has a direction as each entry, and one number, 2"):
        sim.rollout(None, 1, fibre_direction=2.0)


@pytest.mark.parametrize("solver", [MassSpring(DX), ProjectiveDynamics(DX)], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("field", ["fibres", "branches"])
def test_other_solvers_refuse_them(solver, field):
    dim = {MassSpring: least("springs"), ProjectiveDynamics: 3}[type(solver)]
    parts = {
        "fibres": [wb.materials.FibreReinforcement((1.0,) * dim, 1e4)],
        "branches": [wb.materials.MaxwellBranch(1e3, 0.1)],
    }
    scene = block(dim)
    (body,) = scene.bodies
    material = wb.Material(1e4, 0.25 if dim == 2 else 0.3, **{field: parts[field]})
    scene = dataclasses.replace(scene, bodies=[dataclasses.replace(body, material=material)])
    with pytest.raises(wb.SceneError, match=f"'block': {type(solver).__name__} has no Material.{field}; .* or use MPM"):
        Simulation(scene, solver, 1e-3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: wb.materials.FibreReinforcement((0, 0), 1.0), "direction must not be the zero vector"),
        (lambda: wb.materials.FibreReinforcement((1, 0), -1.0), "modulus must be >= 0 .Pa., got -1"),
        (lambda: wb.materials.MaxwellBranch(-1.0, 1.0), "shear_modulus must be >= 0 .Pa., got -1"),
        (
            lambda: wb.materials.MaxwellBranch(1.0, 0.0),
            r"relaxation_time must be positive .s., got 0; .* Material\(damping",
        ),
        (lambda: wb.materials.CamClay(0.0), "preconsolidation_pressure must be positive .Pa., got 0"),
        (lambda: wb.materials.CamClay(1e3, 0.0), "stress_ratio must be positive, got 0"),
        (lambda: wb.materials.CamClay(1e3, cohesion=-0.1), "cohesion must be a ratio >= 0, got -0.1"),
        (lambda: wb.materials.CamClay(1e3, hardening_coefficient=-1), "hardening_coefficient must be >= 0, got -1"),
        (
            lambda: wb.Material(
                1e4,
                law="hencky",
                plasticity=wb.materials.VonMises(1e3),
                fibres=[wb.materials.FibreReinforcement((1, 0), 1.0)],
            ),
            "fibres feel the stretch since rest, which plasticity=VonMises",
        ),
        (
            lambda: wb.Material(1e4, law="hencky", incompressibility=2, plasticity=wb.materials.CamClay(1e3)),
            "yielding by CamClay follows from the pressure of the law alone, got incompressibility=2",
        ),
        (
            lambda: Simulation(
                bar(
                    wb.Material(
                        1e5, 1 / 3, law="weakly_compressible", fibres=[wb.materials.FibreReinforcement((1, 0), 1.0)]
                    )
                ),
                MPM(DX),
                1e-3,
            ),
            "a fluid, law='weakly_compressible', forgets the stretch that fibres feel",
        ),
        *(
            (
                lambda actuator=actuator: Simulation(
                    dataclasses.replace(bar(wb.Material(1e5, 1 / 3, law="weakly_compressible")), actuators=[actuator]),
                    MPM(DX),
                    1e-3,
                ),
                f"{type(actuator).__name__} 'pull': a fluid, SoftBody 'bar', forgets how it has turned",
            )
            for actuator in (
                wb.actuators.Muscle("pull", "middle", (1, 0), 1e3),
                wb.actuators.DielectricElastomer("pull", "middle", (1, 0), 1e6, 3.0),
            )
        ),
        (
            lambda: Simulation(
                bar(wb.Material(1e5, fibres=[wb.materials.FibreReinforcement((1, 0, 0), 1.0)])), MPM(DX), 1e-3
            ),
            "fibres of a 2D body need directions of 2 components",
        ),
    ],
)
def test_bad_input(make, words):
    with pytest.raises(wb.SceneError, match=words):
        make()
