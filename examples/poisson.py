"""Poisson's equation on the unit cube by petsc4py: CG, GAMG, and the plugin in one line.

    python3 poisson.py [-n 40] [PETSc's options]

-Laplace(u) = f with u = sin(pi x) sin(pi y) sin(pi z), zero on the boundary; 7-point differences on n x n x n inner
points. Solved twice, the second time with new values in the same pattern, as a time step or a Newton iteration would
have them. Exit status 1: not converged, or the error is not that of the differences.
"""
import sys
import time

import numpy

# all AIJ matrices below are of the type aijhybridgpu. Without the package it is plain PETSc, or what PETSC_OPTIONS says
try:
    import petsc_aijhybridgpu as start
except ImportError:
    import petsc4py as start
start.init(sys.argv)
from petsc4py import PETSc


def pattern(n, first, last):
    """Rows first to last of the 7-point operator: starts of rows, columns, and which entries are the diagonal's"""
    row = numpy.arange(first, last)
    x, y, z = row % n, row // n % n, row // n // n
    inside = numpy.stack((z > 0, y > 0, x > 0, x >= 0, x < n - 1, y < n - 1, z < n - 1), axis=1)
    columns = row[:, None] + numpy.array((-n * n, -n, -1, 0, 1, n, n * n))
    diagonal = numpy.zeros(inside.shape, bool)
    diagonal[:, 3] = True
    starts = numpy.concatenate(([0], numpy.cumsum(inside.sum(axis=1))))
    return starts.astype(PETSc.IntType), columns[inside].astype(PETSc.IntType), diagonal[inside]


def main():
    n = PETSc.Options().getInt('n', 40)
    h = 1.0 / (n + 1)
    A = PETSc.Mat().create()
    A.setSizes((n**3, n**3))
    A.setFromOptions()
    A.setUp()
    first, last = A.getOwnershipRange()
    start = time.perf_counter()
    starts, columns, diagonal = pattern(n, first, last)
    A.setPreallocationCSR((starts, columns))
    A.setOption(PETSc.Mat.Option.SPD, True)
    PETSc.Sys.Print('matrix    %d rows, type %s, pattern %.3f s' % (n**3, A.getType(), time.perf_counter() - start))

    row = numpy.arange(first, last)
    point = [h * (c + 1) for c in (row % n, row // n % n, row // n // n)]
    exact, b = A.createVecs()
    exact.setArray(numpy.prod([numpy.sin(numpy.pi * c) for c in point], axis=0))
    x = b.duplicate()
    ksp = PETSc.KSP().create()
    ksp.setType('cg')
    ksp.getPC().setType('gamg')
    ksp.setTolerances(rtol=1e-8)
    ksp.setFromOptions()
    good = True
    for shift in (0.0, 10.0):  # -Laplace(u) + shift u
        start = time.perf_counter()
        A.setValuesCSR(starts, columns, numpy.where(diagonal, 6 / h**2 + shift, -1 / h**2).astype(PETSc.ScalarType))
        A.assemble()
        filled = time.perf_counter()
        ksp.setOperators(A)  # says that the values are new
        ksp.setUp()
        ready = time.perf_counter()
        exact.copy(b)
        b.scale(3 * numpy.pi**2 + shift)
        ksp.solve(b, x)
        solved = time.perf_counter()
        x.axpy(-1, exact)
        error = x.norm(PETSc.NormType.INFINITY)
        PETSc.Sys.Print('shift %-4g values %.3f s, setup %.3f s, solve %.3f s, %d iterations, error %.2e'
                        % (shift, filled - start, ready - filled, solved - ready, ksp.getIterationNumber(), error))
        # differences of second order: the error is near pi^2 h^2 / 12
        good = good and ksp.getConvergedReason() > 0 and error < numpy.pi**2 * h**2 / 10 + 1e-7
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
