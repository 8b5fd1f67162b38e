"""Solving for the end of a step: fixed-point iterations, the factored matrix of the global step, MINRES."""

__all__: list[str] = []
