"""Linear elasticity of a clamped cube by legacy FEniCS, CG and PETSc's GAMG: a program that takes its matrix type from
PETSC_OPTIONS alone."""
import logging

from dolfin import (Constant, DirichletBC, Function, PETScKrylovSolver, TestFunction, TrialFunction, UnitCubeMesh, VectorFunctionSpace, assemble_system, div, dot, dx, grad,
                    inner, set_log_level, sym)

logging.getLogger('FFC').setLevel(logging.ERROR)
set_log_level(50)
V = VectorFunctionSpace(UnitCubeMesh(8, 8, 8), 'Lagrange', 1)
u, v = TrialFunction(V), TestFunction(V)
clamped = DirichletBC(V, Constant((0, 0, 0)), 'on_boundary && near(x[0], 0)')
A, b = assemble_system((inner(sym(grad(u)), sym(grad(v))) + div(u) * div(v)) * dx, dot(Constant((0, 0, -1)), v) * dx, clamped)
solver = PETScKrylovSolver('cg', 'petsc_amg')
solver.parameters['relative_tolerance'] = 1e-8
solver.set_operator(A)
w = Function(V)
solver.solve(w.vector(), b)
norm = w.vector().norm('l2')
if V.mesh().mpi_comm().rank == 0:
    print('|u| = %.6e' % norm)
