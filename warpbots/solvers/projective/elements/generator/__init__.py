"""Kernels of elements with an energy of F = sum_a x_a G_a^T, from shape functions, parameters and an energy density.

An element has the gradients G_a of the shape functions of its nodes with respect to m coordinates at rest (3 in solids,
2 in sheets, 1 along bars, fibres and attachments) at points of quadrature, and the volumes V for which these stand:

    E = sum V Psi(F),   f_a = -sum V P(F) G_a,   K_ab = sum V G_a . dP/dF . G_b

A file beside this folder defines a kind of elements by its energy, Psi and P, the modulus with which it is in the
matrix of the global step, and the parameters that it takes. Kernels are made of these by closure.
"""

__all__: list[str] = []
