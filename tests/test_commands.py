"""Every command of the benchmarks and of the command line is started, with small sizes, so that faults show."""

import contextlib
import csv
import importlib.util
import io
import json
import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from warpbots.numerics import precision

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
PAPERS = {
    "chainqueen_arm_length": "float32", "chainqueen_bend": "float64", "chainqueen_biped": "float32", "chainqueen_codesign": "float32",
    "chainqueen_epochs": "float32", "chainqueen_fracture": "float32", "chainqueen_identification": "float32",
    "chainqueen_laws": "float32", "chainqueen_resolved": "float32", "chainqueen_shapes": "float32", "chainqueen_swing_up": "float64",
    "chainqueen_terrain": "float32", "chainqueen_walkers": "float32",
    "cronos_beam": "float64", "cronos_cylinder": "float32", "cronos_design": "float32", "cronos_energy": "float64",
    "cronos_frequencies": "float64", "cronos_gait": "float32", "cronos_lattices": "float32", "cronos_robots": "float32", "cronos_speed": "float32",
    "diffhand_compare": "float32", "diffhand_designs": "float32", "diffhand_gripper": "float32", "diffhand_learning": "float32", "diffhand_minima": "float32", "diffhand_replay": "float32", "diffhand_resolved": "float32", "diffhand_sizes": "float32", "diffhand_topologies": "float32",
    "films": "float32", "marchal_cylinder": "float64", "softbody_bridges": "float64", "softbody_cantilever": "float64",
    "softbody_cloth": "float32", "softbody_fish": "float32", "softbody_gripper": "float32",
    "softbody_learning": "float32", "softbody_memory": "float32", "softbody_octopus": "float32",
    "softbody_skeleton": "float32", "softbody_splitting": "float32",
}  # fmt: skip
"""Scripts, each with the precision in which it computes."""
TASKS = {
    "arm": "float32",
    "ball": "float32",
    "carry": "float32",
    "clay": "float32",
    "cloth": "float32",
    "float": "float32",
    "legs": "float32",
    "pour": "float32",
    "scoop": "float32",
}
"""Scripts of tasks, each with the precision in which it computes; without a file, on a robot that is built in code."""
LONG = {
    "arm",
    "ball",
    "carry",
    "clay",
    "cloth",
    "float",
    "legs",
    "pour",
    "scoop",
    "chainqueen_arm_length",
    "chainqueen_codesign",
    "chainqueen_resolved",
    "chainqueen_shapes",
    "chainqueen_walkers",
    "cronos_design",
    "cronos_gait",
    "cronos_robots",
    "diffhand_compare",
    "diffhand_designs",
    "diffhand_gripper",
    "diffhand_learning",
    "diffhand_minima",
    "diffhand_resolved",
    "diffhand_sizes",
    "diffhand_topologies",
    "films",
    "softbody_cloth",
    "softbody_fish",
    "softbody_gripper",
    "softbody_learning",
    "softbody_octopus",
    "softbody_skeleton",
}
"""Scripts that take more than a few seconds."""
STORED = {
    "chainqueen_arm_length": [], "chainqueen_biped": [], "chainqueen_codesign": [], "chainqueen_laws": [],
    "chainqueen_shapes": ["rhino", "lizard"], "chainqueen_swing_up": ["end"], "chainqueen_terrain": ["flat", "dunes"],
    "chainqueen_walkers": ["quadruped", "hexapod"], "cronos_gait": [], "diffhand_compare": ["reach", "flip"], "diffhand_gripper": [],
    "softbody_fish": ["stroke", "lagging", "resolved"], "softbody_gripper": [], "softbody_octopus": ["stroke", "pull"],
}  # fmt: skip
"""Scripts that play stored results again, each with what follows it."""
LIKE = "full", "middle", "grids", "before", "control", "lagging", "E300", "E400", "adam"
"""Last words in the names of stored results that are played as others are."""
WORDS = {
    "chainqueen_resolved": ["biped", "rhino", "codesign_control", "codesign_designed"],
    "chainqueen_shapes": ["rhino", "lizard"],
    "softbody_bridges": ["suspension", "--quick"],
}
NEEDS = {"ball": ["trimesh"], "carry": ["cma", "trimesh"], "clay": ["cma"], "float": ["cma"], "pour": ["cma"], "scoop": ["cma"], "cronos_lattices": ["trimesh"], "diffhand_minima": ["cma"], "diffhand_compare": ["cma"], "diffhand_designs": ["trimesh"], "diffhand_gripper": ["cma"], "diffhand_learning": ["stable_baselines3"], "diffhand_replay": ["mujoco"], "softbody_bridges": ["cma", "nlopt"], "softbody_cloth": ["trimesh"], "softbody_fish": ["cma"], "softbody_gripper": ["cma", "trimesh"], "softbody_learning": ["stable_baselines3", "trimesh"], "softbody_memory": ["/proc/self/status"], "softbody_octopus": ["cma", "/proc/self/status"]}  # fmt: skip
PEERS = {
    "taichi_mpm": ["taichi"], "newton_springs": ["newton"], "newton_chain": ["newton", "mujoco"],
    "mujoco_batch": ["mujoco"],
}  # fmt: skip
BESIDE = {"walker": "taichi_walker", "robot": "newton_robot", "hand": "mjx_hand"}
"""Experiments beside a peer, and the scripts of these peers."""


def of(computed):
    """The precision in which this process has to compute."""
    return [pytest.mark.verification] if computed == "float64" else [pytest.mark.skipif(precision != computed, reason=f"computes in {computed}: runs there")]  # fmt: skip


def require(names):
    for name in names:
        if name.startswith("/"):
            if not Path(name).exists():
                pytest.skip(f"there is no {name}")
        elif importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")


def of_benchmarks(module: str) -> bool:
    """Whether a module that is imported is one of the benchmarks."""
    file = getattr(sys.modules[module], "__file__", None)
    return file is not None and BENCHMARKS in Path(file).parents


@pytest.fixture
def start(monkeypatch):
    """Runs a script as `python` would, in this process and small, and returns what it printed; so do its children."""
    monkeypatch.setenv("WARPBOTS_FAST", "1")
    monkeypatch.setenv("TQDM_DISABLE", "1")
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in [name for name in sys.modules if of_benchmarks(name)]:  # imported by another test, at full size
        monkeypatch.delitem(sys.modules, name)
    modules, threads, device = set(sys.modules), torch.get_num_threads(), torch.get_default_device()
    whole = subprocess.run

    def run(script, *words):
        monkeypatch.setattr(sys, "argv", [str(script), *words])
        monkeypatch.syspath_prepend(str(Path(script).parent))
        said = io.StringIO()
        with contextlib.redirect_stdout(said), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                runpy.run_path(str(script), run_name="__main__")
            except SystemExit as end:
                if end.code:
                    pytest.fail(f"{script} ends with {end.code}")
        return said.getvalue()

    def child(words, **options):
        if words[0] != sys.executable or "-c" in words:
            return whole(words, **options)
        return subprocess.CompletedProcess(words, 0, run(*words[1:]), "")

    monkeypatch.setattr(subprocess, "run", child)
    yield run
    torch.set_num_threads(threads)
    torch.set_default_device(device)
    for name in set(sys.modules) - modules:
        if of_benchmarks(name):
            del sys.modules[name]


def scenes():
    """Names of the runner's scenes."""
    return re.findall(r'\{"name": "([\w-]+)"', (BENCHMARKS / "scenes.py").read_text())


@pytest.mark.parametrize(
    ("name", "computed"),
    [pytest.param(n, p, marks=of(p) + [pytest.mark.slow] * (n in LONG)) for n, p in TASKS.items()],
)
def test_script_of_a_task(name, computed, start):
    require(NEEDS.get(name, []))
    assert start(BENCHMARKS / "tasks" / f"{name}.py")


@pytest.mark.slow
@pytest.mark.parametrize("by", ["parts", "cma"])
def test_fold_is_learned(by, start):
    """In three rollouts of two steps, from the hand that opens too early; what was found is not kept."""
    require(["cma"])
    said = start(BENCHMARKS / "tasks" / "cloth.py", "--learn", "early", "--by", by)
    assert said.count(" mm\n") == 3 and f"early {by} 0: " in said and " mm in 3 rollouts" in said


@pytest.mark.parametrize("name", scenes())
def test_scene_of_the_runner(name, start):
    """Time and size are measured; those for a GPU are started where the others are."""
    row = json.loads(start(BENCHMARKS / "run.py", "--only", name, "--no-peer", "--json", "--repeats", "1", "--precision", precision))  # fmt: skip
    assert row["name"] == name
    assert (
        row["item"]
        == {"mpm": "particle", "mass": "spring", "projective": "tet", "articulated": "link"}[name.split("-")[0]]
    )
    assert row["items"] > 0 and row["forward_items_per_s"] > 0.0 and row["gradient_items_per_s"] > 0.0


def test_threads_are_compared(start):
    """Worlds of particles and of rigid bodies, and a single body."""
    names = ["mpm-2d-5k", "articulated-chain", "mass-spring-1m"]
    said = start(BENCHMARKS / "threads.py", "--only", *names, "--repeats", "1", "--no-peer")
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in said.splitlines()[2:]]
    assert [row[:2] for row in rows] == [[name, worlds] for name, worlds in zip(names, "221", strict=True)]
    assert all(float(cell) > 0.0 for row in rows for cell in row[2:6])


def test_runner_measures_memory(start):
    require(["/proc/self/status"])
    rows = [json.loads(line) for line in start(BENCHMARKS / "run.py", "--memory", "--json").splitlines()]
    assert {row["schedule"] for row in rows} == {"sqrt", "every", "all"}


@pytest.mark.parametrize(
    ("name", "computed"),
    [pytest.param(n, p, marks=of(p) + [pytest.mark.slow] * (n in LONG)) for n, p in PAPERS.items()],
)
def test_script_of_a_paper(name, computed, start, tmp_path):
    require(NEEDS.get(name, []))
    words = WORDS.get(name, [])
    if name in ("cronos_cylinder", "marchal_cylinder"):
        import trimesh

        trimesh.creation.cylinder(0.019, 0.178).export(tmp_path / "truthCylinder-Deformed.obj")
        words = [str(tmp_path)]
    if name == "films":
        words = ["chainqueen_biped", "cronos_gait", "--out", str(tmp_path), "--usd"]
    assert start(BENCHMARKS / "papers" / f"{name}.py", *words)


@pytest.mark.parametrize(
    ("name", "computed"),
    [pytest.param(n, PAPERS[n], marks=of(PAPERS[n]) + [pytest.mark.slow] * (n in LONG)) for n in STORED],
)
def test_stored_results_are_played_finer(name, computed, start):
    """Each row of the table has the result as it was found, in half the step and on the finer grid."""
    require(NEEDS.get(name, []))
    rows = [line for line in start(BENCHMARKS / "papers" / f"{name}.py", *STORED[name], "--refine").splitlines() if "%" in line]  # fmt: skip
    assert rows and all(row.count("|") == 5 for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param(name, words, marks=of(PAPERS[name]))
        for name, words in (
            ("chainqueen_biped", []),
            ("chainqueen_shapes", ["rhino"]),
            ("chainqueen_swing_up", ["end"]),
            ("chainqueen_terrain", ["dunes"]),
            ("chainqueen_walkers", ["quadruped"]),
            ("softbody_fish", ["lagging"]),
        )
    ],
)
def test_stored_results_of_full_size_are_played_finer(name, words, start):
    """They have files of their own, with fields at the places of the small size."""
    require(NEEDS.get(name, []))
    table = start(BENCHMARKS / "papers" / f"{name}.py", *words, "--size", "full", "--refine")
    rows = [line for line in table.splitlines() if "%" in line]
    assert rows and all(row.count("|") == 5 for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(path.stem, marks=of("float64" if "swing_up" in path.stem else "float32"))
        for path in sorted((BENCHMARKS / "papers" / "stored").glob("*.npz"))
        if not path.stem.endswith(LIKE)
    ],
)
def test_stored_result_becomes_a_film(name, start, tmp_path):
    start(BENCHMARKS / "papers" / "films.py", name, "--out", str(tmp_path), "--usd")
    assert {path.name for path in tmp_path.iterdir()} >= {f"{name}.gif", f"{name}.usda"}


@pytest.mark.parametrize("computed", [pytest.param("float64", marks=of("float64"))])
def test_swing_of_the_small_arm_is_corrected_on_a_finer_grid(computed, start):
    """A correction is two motions: one for the Jacobian to act on, and one after its step."""
    table = start(BENCHMARKS / "papers" / "chainqueen_swing_up.py", "end", "--size", "middle")
    assert [line.split("|")[1].strip() for line in table.splitlines() if "2 rollouts" in line] == [
        "E = 300",
        "E = 400",
        "designed",
    ]


@pytest.mark.parametrize("computed", [pytest.param("float64", marks=of("float64"))])
def test_swing_is_corrected_in_several_discretisations(computed, start):
    table = start(BENCHMARKS / "papers" / "chainqueen_swing_up.py", "grids")
    assert [line.split("|")[1].strip() for line in table.splitlines() if "2 rollouts" in line] == ["E = 300", "designed"]  # fmt: skip


@pytest.mark.parametrize("computed", [pytest.param("float64", marks=of("float64"))])
def test_feedback_of_the_arm_answers_to_deviations_alone(computed, start):
    """The motion as it was found is its own plan; in half the step and on another grid there are deviations."""
    table = start(BENCHMARKS / "papers" / "chainqueen_swing_up.py", "end", "--refine")
    played = {}
    for arm, control, how, errors in re.findall(r"at rest, (.*?), (open loop|feedback), (Refinement\(.*?\)): (.*)", table):  # fmt: skip
        played.setdefault((arm, how), {})[control] = errors
    as_found = {how for _, how in played if how == "Refinement(steps=1, cells=1.0)"}
    assert as_found and len(played) == 3 * 4
    for (_, how), motion in played.items():
        assert (motion["open loop"] == motion["feedback"]) == (how in as_found)


def test_every_script_of_a_paper_is_started():
    scripts = {p.stem for p in (BENCHMARKS / "papers").glob("*.py") if "__main__" in p.read_text()}
    assert scripts == set(PAPERS)
    peers = {p.stem for p in (BENCHMARKS / "peers").glob("*.py") if "__main__" in p.read_text()}
    assert peers == {*PEERS, *BESIDE.values()}
    assert {p.stem for p in (BENCHMARKS / "tasks").glob("*.py") if "__main__" in p.read_text()} == {*TASKS, "ground"}


def test_launches_are_counted_and_compiled(start, tmp_path):
    """A step of springs is three kernels, six that keep lost worlds where they were, and one that looks for faults; its
    adjoint four, four for lost worlds, and four. The six and the four belong to the control interval."""
    table = start(BENCHMARKS / "launches.py", "mass-spring-10k", "--ptx", str(tmp_path))
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines()]
    assert [row[:3] for row in rows[2:]] == [
        ["mass-spring-10k", "forwards", "10"],
        ["mass-spring-10k", "backwards", "12"],
    ]
    assert len(list(tmp_path.glob("*.sm90.ptx"))) >= 3


def test_registers_are_listed(start, tmp_path):
    """As the assembler says them, the kernels with most spills first."""
    said = "".join(
        f"ptxas info    : Compiling entry function '{name}' for 'sm_90'\nptxas info    : Function properties for {name}\n"
        f"    {stack} bytes stack frame, {stack} bytes spill stores, {stack + 4} bytes spill loads\n"
        f"ptxas info    : Used {used} registers, used 0 barriers, 600 bytes cmem[0]\n"
        for name, used, stack in (("a_kernel__locals__a_0123abcd_cuda_kernel_forward", 32, 0), ("b_kernel_0123abcd_cuda_kernel_backward", 255, 8))
    )  # fmt: skip
    (tmp_path / "module.ptx").write_bytes(b"code\0")
    assembler = tmp_path / "ptxas"
    assembler.write_text(f"#!{sys.executable}\nimport sys\nsys.stderr.write({said!r})\n")
    assembler.chmod(0o755)
    lines = start(BENCHMARKS / "registers.py", str(assembler), str(tmp_path)).splitlines()
    assert lines[2:] == ["| b (adjoint) | 255 | 8 | 8 | 12 |", "| a | 32 | 0 | 0 | 4 |"]
    lines = start(BENCHMARKS / "registers.py", str(assembler), str(tmp_path), "--least", "64").splitlines()
    assert len(lines) == 3


@pytest.mark.slow
def test_hands_learn_by_sac(start, tmp_path):
    """The loss of the policy is finite, and the curve has the loss of every episode."""
    require(NEEDS["diffhand_learning"])
    path = tmp_path / "found.json"
    start(BENCHMARKS / "papers" / "diffhand_learning.py", "reach", "--method", "sac", "--episodes", "8", "--json", str(path))  # fmt: skip
    (run,) = json.loads(path.read_text())["reach"]
    assert run["episodes"] == len(run["curve"]) >= 8 and np.isfinite(run["loss"])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ppo", "sac", "shac", "cma"])
def test_learning(method, start, tmp_path):
    """A curve of a few samples; the other methods of a task differ in their settings alone."""
    require({"ppo": ["stable_baselines3"], "sac": ["stable_baselines3"], "cma": ["cma"]}.get(method, []))
    settings = (BENCHMARKS / "learning" / "finger_reach.toml").read_text()
    few = re.sub(r"samples = \d+", "samples = 1920", settings).replace("evaluations = 20", "evaluations = 2")
    (tmp_path / "few.toml").write_text(few.replace("judged_worlds = 16", "judged_worlds = 1"))
    start(BENCHMARKS / "learning" / "learn.py", str(tmp_path / "few.toml"), method, "--out", str(tmp_path))
    rows = list(csv.DictReader((tmp_path / f"{method}-0.csv").read_text().splitlines()))
    assert int(rows[-1]["samples"]) == 1920
    returns = [float(row["return"]) for row in rows]
    assert np.isfinite(returns).all()
    assert returns[-1] != returns[0]  # the policy has changed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.toml", "cma"], r"there is no file none\.toml, from .* or beside this file, which has ant\.toml, "),
        (["mine.toml", "cma"], r"mine\.toml has no settings of cma, which is a section \[cma\]"),
        (["walker_2d.toml", "cma", "--draw", "nowhere"], r"there are no curves, METHOD-SEED\.csv, in nowhere"),
    ],
)
def test_learning_from_files_that_are_not_there(words, said, start, tmp_path, monkeypatch, capsys):
    """One sentence each; files are looked for where one stands, and then beside the script."""
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text('task = "walker_2d"\n[ppo]\nsamples = 1\n')
    with pytest.raises(pytest.fail.Exception):
        start(BENCHMARKS / "learning" / "learn.py", *words)
    assert re.search(said, capsys.readouterr().err)


def test_sweep_of_cloth(start):
    """Every step of two scenes is found."""
    assert "2 scenes: 4 steps taken whole, 0 taken as 0 shorter ones, 0 scenes lost" in start(
        BENCHMARKS / "cloth_sweep.py"
    )


@pytest.mark.slow
def test_comparison_of_solvers(start):
    assert "in 0.02 s" in start(BENCHMARKS / "solvers.py")


def test_comparison_of_compositions(start):
    """Each at four refinements; together they keep the momentum."""
    said = start(BENCHMARKS / "compositions.py")
    rows = re.findall(r"\| (.*) \| [\d.]+ \| [\d.]+ \| [-\d.]+ \| \d+ \| (\S+) \| \S+ \|", said)
    assert len(rows) == 4 * len({title for title, _ in rows}) >= 8
    assert all(float(error) < 1e-5 for _, error in rows)


@pytest.mark.verification
def test_comparison_of_elements(start):
    require(["skfem"])
    said = start(BENCHMARKS / "elements.py")
    rows = re.findall(r"hexahedra, nu 0.3, (\w+), 3 decades: compliance ([+-][\d.]+) %, (\d+) and \d+ iterations", said)
    assert [how for how, *_ in rows] == ["iterative", "adaptive", "direct"]
    assert all(abs(float(error)) < 0.01 for _, error, _ in rows)
    assert int(rows[2][2]) <= 2 < int(rows[0][2])
    assert re.search(r"quadratic_tetrahedra, nu 0.3, 1 cells, \d+ nodes: [+-]", said)


@pytest.mark.slow
def test_outcomes_of_files_of_others(start, tmp_path):
    """One of each kind and outcome; a mass that differs from the file, and a process that takes too long."""
    require(["mujoco"])
    ball = "<mujoco><worldbody><body><freejoint/><geom size='.1'/>{}</body></worldbody>{}</mujoco>"
    urdf = "<robot name='r'><link name='a'><inertial><mass value='2'/>{}</inertial></link></robot>"
    inertia = "<inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/>"
    stage = '#usda 1.0\n(\n    metersPerUnit = 1\n)\ndef Sphere "a" {}\n'
    texts = {
        "robots/ball.xml": ball.format("", ""), "robots/empty.xml": "<mujoco/>", "robots/other.xml": "<other/>",
        "robots/mesh.xml": ball.format("<geom type='mesh' mesh='m'/>", "<asset><mesh name='m' file='no.stl'/></asset>"),
        "robots/grey.xml": ball.format("", "<option density='1'/>"), "robots/odd.xml": ball.format("<odd/>", ""),
        "arm.urdf": urdf.format(inertia), "stage.usda": stage.replace("{}", "{\n}"), "broken.usda": "#usda 1.0\ndef",
        "open.obj": "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n",
        "closed.obj": "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    script, table = BENCHMARKS / "third_party_files.py", tmp_path / "rows.csv"
    said = start(script, str(tmp_path), "--motion", "--jobs", "1", "--csv", str(table))
    with table.open() as file:
        rows = {Path(row["path"]).name: row for row in csv.DictReader(file)}
    assert {name: row["outcome"] for name, row in rows.items()} == {
        "arm.urdf": "loads", "ball.xml": "loads", "empty.xml": "holds no bodies", "mesh.xml": "a file is not there",
        "grey.xml": "loads, with a warning", "odd.xml": "refused", "stage.usda": "loads, after an answer",
        "broken.usda": "refused", "open.obj": "refused", "closed.obj": "loads",
    }  # fmt: skip
    assert "masses: 3 compared, 0 differ" in said and "2 compared, median" in said and "0 over" in said
    assert float(rows["ball.xml"]["mass"]) == pytest.approx(4e3 / 3 * np.pi * 1e-3, rel=1e-9)
    assert "timed out\nafter 0 s" in start(script, str(tmp_path / "arm.urdf"), "--seconds", "0")


def test_degenerate_contacts(start):
    assert "| soft | 0.01 | 1 | 0 | 0 |" in start(BENCHMARKS / "degenerate_contacts.py", "--under", "soft")


def test_comparison_of_contacts(start):
    """Incremental potential contact finds its step, and its result approaches ours as its barriers become shorter."""
    require(["ipctk"])
    said = start(BENCHMARKS / "contacts_compared.py", "--under", "fixed")
    assert re.search(r"\| fixed \| 0.01 \| 1 \| 0 \| [\d.]+ \(\d+\) \| 1 \|", said)
    distances = [float(row) for row in re.findall(r"\| fixed \| [\d.]+ \| 1 \| (\d+\.\d{3}) \|", said)]
    assert distances[0] > 2.0 * distances[1] > 4.0 * distances[2] > 0.0


def test_rolling_and_bouncing(start):
    require(["mujoco"])
    said = start(BENCHMARKS / "simbenchmark.py", "--balls", "2", "--time", "0.1")
    error = re.search(r"rolling, 0.001 s, squared velocity error \[m\^2/s\^2\]: warpbots (\S+), MuJoCo", said)
    assert float(error[1]) < 1e-9
    assert re.search(r"bouncing, 0.001 s, squared energy error \[J\^2\]: warpbots \S+, MuJoCo \S+; published ODE", said)


def test_standing_robots(start, tmp_path):
    require(["mujoco"])
    (tmp_path / "arm.xml").write_text(
        """<mujoco><worldbody><body><joint name="j" axis="0 1 0"/><geom type="capsule" fromto="0 0 1 .3 0 1" size=".02"/>
        </body></worldbody></mujoco>"""
    )
    said = start(
        BENCHMARKS / "robots_standing.py", f"{tmp_path / 'arm.xml'},j=0.5", "--picture", str(tmp_path / "arm.png")
    )
    assert "arm.xml | 1 | 0.4" in said and (tmp_path / "arm.png").stat().st_size > 1000


def quadruped() -> str:
    """MJCF of a robot with the joints of the A1 of MuJoCo Menagerie, and spheres as feet."""
    leg = """<body pos="{x} {y} 0"><joint name="{n}_hip" axis="1 0 0" range="-.8 .8" damping="1"/>
        <geom type="box" size=".03 .03 .03"/><body><joint name="{n}_thigh" axis="0 1 0" range="-1 4" damping="2"/>
        <geom type="capsule" fromto="0 0 -.05 0 0 -.15" size=".015"/><body pos="0 0 -.2">
        <joint name="{n}_calf" axis="0 1 0" range="-2.7 -.9" damping="2"/>
        <geom type="capsule" fromto="0 0 -.05 0 0 -.15" size=".01"/>
        <geom type="sphere" pos="0 0 -.2" size=".02" friction=".8"/></body></body></body>"""
    places = {"FR": (0.18, -0.13), "FL": (0.18, 0.13), "RR": (-0.18, -0.13), "RL": (-0.18, 0.13)}
    legs = "".join(leg.format(n=n, x=x, y=y) for n, (x, y) in places.items())
    motors = "".join(
        f'<position joint="{n}_{part}" kp="100" ctrlrange="{low} {high}"/>'
        for n in places
        for part, low, high in (("hip", -0.8, 0.8), ("thigh", -1.0, 4.0), ("calf", -2.7, -0.9))
    )
    home = " ".join(["0 0.9 -1.8"] * 4)
    return f"""<mujoco><compiler angle="radian"/><worldbody><body name="trunk" pos="0 0 .3"><freejoint/>
        <geom type="box" size=".12 .08 .05"/>{legs}</body></worldbody><actuator>{motors}</actuator>
        <keyframe><key name="home" qpos="0 0 .27 1 0 0 0 {home}" ctrl="{home}"/></keyframe></mujoco>"""


@pytest.mark.slow
def test_quadruped_on_three_grounds(start, tmp_path):
    """A robot of primitives instead of the public one, which is not part of the repository."""
    require(["mujoco", "cma"])
    script, robot, usd = BENCHMARKS / "tasks" / "ground.py", tmp_path / "robot.xml", tmp_path / "walk.usda"
    robot.write_text(quadruped())
    for stage, ground in (("begin", "floor"), ("learn", "sand"), ("learn", "snow")):
        name = "begun" if stage == "begin" else ground
        assert f"{name} adam 0: " in start(script, stage, str(robot), ground)
    assert "begun cma 0: " in start(script, "begin", str(robot), "--method", "cma")
    assert "| snow | 40 |" in start(script, "stand", str(robot))
    assert re.search(r"\| u = 0 \|  \| -?\d+ \| -?\d+ \| -?\d+ \|", start(script, "table", str(robot)))
    assert re.search(r"\| cells of 32 mm \| -?\d+ \| -?\d+ \| \d", start(script, "check", str(robot), "sand"))
    assert "distance" in start(script, "play", str(robot), "sand", "--policy", "floor", "--usd", str(usd))
    assert usd.is_file()


@pytest.mark.slow
@pytest.mark.parametrize("name", PEERS)
def test_peer(name, tmp_path):
    """In a process of its own, as the runner starts it: it brings another program with it."""
    require(PEERS[name])
    request = {"dt": 1e-4, "steps": 2, "repeats": 1}
    if name == "newton_chain":
        request |= {"links": 2, "worlds": 1}
    elif name == "mujoco_batch":
        request |= {"hand": True, "worlds": 2, "threads": 2}
    elif name == "newton_springs":
        np.savez(
            tmp_path / "x.npz", position=0.1 * np.eye(3), mass=np.ones(3), ends=[[0, 1], [1, 2]], stiffness=np.ones(2)
        )
        request |= {"lattice": str(tmp_path / "x.npz")}
    else:
        np.save(tmp_path / "x.npy", 0.3 + 0.01 * np.mgrid[:4, :4].reshape(2, -1).T)
        request |= {
            "dim": 2, "positions": str(tmp_path / "x.npy"), "dx": 0.02, "resolution": [40, 40], "youngs_modulus": 1e5,
            "poissons_ratio": 0.3, "density": 1000.0, "gradient": True, "precision": "float32", "threads": 1,
        }  # fmt: skip
    words = [sys.executable, str(BENCHMARKS / "peers" / f"{name}.py"), json.dumps(request)]
    child = subprocess.run(words, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    peer = json.loads(child.stdout.strip().splitlines()[-1])
    assert peer["items"] > 0 and peer["forward_s_per_step"] > 0.0
    assert name == "mujoco_batch" or peer["gradient_s_per_step"] > 0.0


@pytest.mark.parametrize("name", ["robot", *(pytest.param(n, marks=pytest.mark.slow) for n in ("walker", "hand"))])
def test_experiment_beside_peers(name, start):
    """Our own side learns from a gradient that agrees with its differences."""
    if name == "hand":
        require(["mujoco"])
    said = start(BENCHMARKS / "beside_peers.py", name, "--no-peer", "--episodes", "3")
    errors = [abs(float(e)) for e in re.findall(r"([+-]\S+) % \(", said)]
    assert len(errors) == 3 and min(errors) < 2.0
    before, after = re.search(r"seed 0, warpbots: .* (\S+) to (\S+), \S+ s an episode", said).groups()
    assert float(after) < float(before) if name == "hand" else float(after) > float(before)
    assert re.search(r"\n\| warpbots \| \S+ \| \S+ \| \S+ \| [\d.]+ \|\n", said)
    timed = re.findall(r"warpbots, \d+ worlds, (?:forward|with gradient): first episode \S+ s, later \S+ ms", said)
    assert len(timed) == (4 if name == "hand" else 0)


def test_a_missing_peer_is_named(start, tmp_path, capsys):
    """With the command that installs it; our own side runs. Any other fault of a peer ends the run."""
    python = tmp_path / "python"
    words = [BENCHMARKS / "beside_peers.py", "robot", "--peer-python", f"robot={python}"]
    python.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'newton'\" >&2\nexit 1\n")
    python.chmod(0o755)
    assert "| warpbots |" in start(*words)
    assert "No module named 'newton'; `pip install newton` into an environment of its own" in capsys.readouterr().err
    python.write_text("#!/bin/sh\necho 'ValueError: no' >&2\nexit 1\n")
    with pytest.raises(RuntimeError, match="newton_robot.py failed: ValueError: no"):
        start(*words)


@pytest.mark.slow
@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.skipif(precision != "float32", reason="computes in float32: runs there")
def test_training_beside_a_peer(name, start):
    """Both sides move alike, and both learn."""
    require({"walker": ["taichi"], "robot": ["newton"], "hand": ["mujoco", "jax"]}[name])
    said = start(BENCHMARKS / "beside_peers.py", name)
    assert "motions differ by" in said
    assert len(re.findall(rf"^{name}, seed 0, ", said, re.M)) == 2


def commands():
    """Every command in a text of the project, and its place."""
    texts = [*ROOT.glob("*.md"), *ROOT.glob("*/*.md"), *ROOT.glob("*/*/*.md"), *(ROOT / "warpbots").rglob("*.py"), *BENCHMARKS.rglob("*.py"), ROOT / "run.py", ROOT / "usd_scenes" / "build.py"]  # fmt: skip
    pattern = re.compile(
        r"(?:python3? [\w/]+\.py|warpbots (?:train|simulate|info|view|render|convert|new) [A-Z'\w/.]+)[^`\n#]*"
    )
    return {(line, path.name) for path in texts for line in pattern.findall(path.read_text())}


def with_imported(script):
    """A script and all modules beside it that it imports, also through one another."""
    found, new = set(), {script}
    while new:
        found |= new
        names = {name for path in new for name in re.findall(r"^(?:from|import) (\w+)", path.read_text(), re.M)}
        new = {path for name in names if (path := script.parent / f"{name}.py").is_file()} - found
    return found


def test_commands_in_texts_name_what_exists():
    """Scripts exist and, like the command line, accept the options in the text."""
    folder = ROOT / "warpbots" / "cli"
    cli = "".join(path.read_text() for path in folder.glob("*.py"))
    found = commands()
    assert len(found) > 20
    for line, where in found:
        program, script, *_ = re.sub(r"['\")]", " ", line).split()
        options = set(re.findall(r"--[a-z][\w-]*", line))
        if program == "warpbots":
            source = cli
        else:
            places = (ROOT, BENCHMARKS / "peers", folder / "project")
            at = next((place / script for place in places if (place / script).is_file()), None)
            assert at, (line, where)
            source = "".join(path.read_text() for path in with_imported(at)) + cli * (at == ROOT / "run.py")
        assert all(f'"{option}"' in source for option in options), (line, where)
