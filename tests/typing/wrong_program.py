"""What type checkers are to find: a joint angle of particles, a number for a solver, and a text for a length."""

import warpbots as wb

scene = wb.Scene([wb.SoftBody("block", wb.shapes.Box([0.2, 0.2], [0.4, 0.3]), wb.Material(1e4))])
print(wb.Simulation(scene, wb.MPM(0.02), 5e-3).state().q)
wb.Simulation(scene, 0.02, 5e-3)
wb.shapes.Box("ab", [0.4, 0.3])
