"""Meshes that look right and are not: open ones, fractions for indices, and numbers for marks."""

import numpy as np
import pytest
import torch
import trimesh

from warpbots.design import Cage, CagedBody, Part, box_cage, mass_properties

BOX = trimesh.creation.box((0.01, 0.01, 0.01))
VERTICES, FACES = np.array(BOX.vertices), np.array(BOX.faces)


def test_the_mass_of_an_open_mesh_is_refused():
    with pytest.raises(ValueError, match="mass_properties: the mesh is open at the edge of vertices"):
        mass_properties(torch.tensor(VERTICES), torch.tensor(FACES[:10]))
    with pytest.raises(ValueError, match="CagedBody 'b': the mesh is open at the edge of vertices"):
        CagedBody("b", VERTICES, FACES[:10], box_cage((-0.01,) * 3, (0.01,) * 3))


def test_a_mesh_is_closed_if_its_vertices_coincide():
    apart = torch.tensor(VERTICES[FACES].reshape(-1, 3)), torch.arange(3 * len(FACES)).reshape(-1, 3)
    assert mass_properties(*apart, 1000.0).mass.item() == pytest.approx(1e-3)


@pytest.mark.parametrize("density", [-1000.0, 0.0, torch.tensor(-1.0)])
def test_a_density_that_is_not_positive_is_refused(density):
    with pytest.raises(ValueError, match="mass_properties: density must be positive"):
        mass_properties(torch.tensor(VERTICES), torch.tensor(FACES), density)


def test_fractions_are_no_indices():
    with pytest.raises(ValueError, match="Part: faces must be whole numbers"):
        Part.of_mesh(VERTICES, FACES + 0.4)
    with pytest.raises(ValueError, match="Part: faces must be whole numbers"):
        Part(VERTICES, FACES + 0.4, np.ones(len(FACES), dtype=bool))
    with pytest.raises(ValueError, match="Cage: faces must be whole numbers"):
        Cage(VERTICES, FACES + 0.4)


def test_marks_of_faces_and_cells_are_true_or_false():
    exposed = np.ones(len(FACES), dtype=int)
    exposed[:2] = 0  # as indices these would be faces 0 and 1, several times
    with pytest.raises(ValueError, match="Part: exposed must be True or False for each face"):
        Part(VERTICES, FACES, exposed, 20)
    nodes = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 3)] * 3, indexing="ij"), axis=-1)
    with pytest.raises(ValueError, match="Part: filled must be True or False for each cell"):
        Part.of_cells(nodes, np.ones((2, 2, 2), dtype=int))
    with pytest.raises(ValueError, match=r"Part: filled must have shape \(2, 2, 2\), got \(2, 2, 1\)"):
        Part.of_cells(nodes, np.ones((2, 2, 1), dtype=bool))
