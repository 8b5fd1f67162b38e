"""Kernels of elements with an energy of F = sum_a x_a G_a^T, from shape functions, parameters and an energy density.

An element has the gradients G_a of the shape functions of its nodes with respect to m coordinates at rest (3 in solids,
2 in sheets, 1 along bars, fibres and attachments) at points of quadrature, and the volumes V of these points:

    E = sum V Psi(F),   f_a = -sum V P(F) G_a,   K_ab = sum V G_a . dP/dF . G_b

Files beside this folder define kinds of elements by their energy, Psi and P, their modulus in the matrix of the global
step, and their parameters. Kernels are closures over these.
"""

__all__: list[str] = []
