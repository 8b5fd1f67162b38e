"""Solvers for the end of a step: fixed-point iterations, the factored matrix of the global step, and MINRES."""

__all__: list[str] = []
