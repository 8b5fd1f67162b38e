"""Tests of the repository, which the published source does not collect."""

REPOSITORY = (
    "fuzz/",
    "morphology/test_shaped.py",
    "orders/",
    "projective/test_degenerate_contact.py",
    "projective/test_fish.py",
    "projective/test_incremental_potential.py",
    "projective/test_obstacle_edges.py",
    "projective/test_obstacle_paths.py",
    "projective/test_paper_experiments.py",
    "robots/test_hand_in_mujoco.py",
    "test_architecture.py",
    "test_commands.py",
    "test_cuda_source.py",
    "test_every_command.py",
    "test_package.py",
    "test_processes.py",
    "test_publishing.py",
    "test_readme.py",
    "test_site.py",
    "test_solver_table.py",
    "test_tutorials.py",
    "tutorials/",
    "usd/test_usd_attributes.py",
)
"""Tests that need more of the repository than the published source has: pages, tutorials, benchmarks, scenes."""
