"""Linear elasticity of a clamped cube by FEniCSx, CG and GAMG: a program that knows nothing of the plugin and takes
everything from PETSC_OPTIONS."""
import numpy
import ufl
from dolfinx import fem, mesh
from dolfinx.fem.petsc import LinearProblem
from mpi4py import MPI
from petsc4py import PETSc

cube = mesh.create_unit_cube(MPI.COMM_WORLD, 10, 10, 10)
V = fem.VectorFunctionSpace(cube, ('Lagrange', 1))
young, poisson = 1.0e9, 0.3
mu, lmbda = young / (2 * (1 + poisson)), young * poisson / ((1 + poisson) * (1 - 2 * poisson))


def strain(v):
    return ufl.sym(ufl.grad(v))


def stress(v):
    return 2 * mu * strain(v) + lmbda * ufl.tr(strain(v)) * ufl.Identity(3)


u, v, x = ufl.TrialFunction(V), ufl.TestFunction(V), ufl.SpatialCoordinate(cube)
clamped = mesh.locate_entities_boundary(cube, 2, lambda p: numpy.isclose(p[0], 0))
bc = fem.dirichletbc(numpy.zeros(3, dtype=PETSc.ScalarType), fem.locate_dofs_topological(V, 2, clamped), V)
problem = LinearProblem(ufl.inner(stress(u), strain(v)) * ufl.dx, ufl.inner(ufl.as_vector((x[0], 0 * x[0], -x[2])), v) * ufl.dx, bcs=[bc],
                        petsc_options={'ksp_type': 'cg', 'pc_type': 'gamg', 'ksp_rtol': 1e-8})
solution = problem.solve()
norm = problem.solver.getSolution().norm()
if cube.comm.rank == 0:
    # not the number of iterations: at the tolerance, rounding decides between n and n + 1
    print('converged reason %d, |u| = %.6e' % (problem.solver.getConvergedReason(), norm))
