"""Operations of petsc4py's on random sparse matrices beside scipy's: the type comes in by PETSC_OPTIONS, scipy is the
judge."""
import numpy
import scipy.sparse
from petsc4py import PETSc

random = numpy.random.RandomState(7)


def sparse(m, n, density):
    A = scipy.sparse.random(m, n, density, 'csr', random_state=random)
    A.data -= 0.5
    A.sort_indices()
    return A


def petsc(A):
    B = PETSc.Mat().create(PETSc.COMM_SELF)
    B.setSizes(A.shape)
    B.setFromOptions()
    B.setPreallocationCSR((A.indptr.astype(PETSc.IntType), A.indices.astype(PETSc.IntType), A.data.astype(PETSc.ScalarType)))
    return B


def check(what, ours, theirs):
    indptr, indices, data = ours.getValuesCSR()
    error = abs(scipy.sparse.csr_matrix((data, indices, indptr), theirs.shape) - theirs).max()
    assert error < 1e-12, '%s: off by %g' % (what, error)
    print('%s agrees' % what)


for m, n, k, density in ((200, 150, 180, 0.03), (500, 500, 500, 0.01), (300, 40, 70, 0.2)):
    A, B, S, P = sparse(m, n, density), sparse(n, k, density), sparse(m, m, density), sparse(m, n, density)
    a, b, s, p = petsc(A), petsc(B), petsc(S), petsc(P)
    check('A B', a.matMult(b), A @ B)
    check('A^T P', a.transposeMatMult(p), A.T @ P)
    check('P^T S P', s.ptap(p), P.T @ S @ P)
    check('A^T', a.transpose(PETSc.Mat()), A.T)
    x, y = a.createVecs()
    x.setArray(random.rand(n))
    a.mult(x, y)
    assert abs(y.getArray() - A @ x.getArray()).max() < 1e-12
    a.multTranspose(y, x)
    assert abs(x.getArray() - A.T @ y.getArray()).max() < 1e-11
    a.scale(3)
    a.axpy(2, p, PETSc.Mat.Structure.DIFFERENT_NONZERO_PATTERN)
    check('3 A + 2 P', a, 3 * A + 2 * P)
    left, right = a.createVecs('l'), a.createVecs('r')
    left.setArray(random.rand(m))
    right.setArray(random.rand(n))
    a.diagonalScale(left, right)
    C = scipy.sparse.diags(left.getArray()) @ (3 * A + 2 * P) @ scipy.sparse.diags(right.getArray())
    check('L (3 A + 2 P) R', a, C)
    rows, columns = numpy.sort(random.permutation(m)[:m // 3]), numpy.sort(random.permutation(n)[:n // 2])
    sub = a.createSubMatrix(PETSc.IS().createGeneral(rows.astype(PETSc.IntType), PETSc.COMM_SELF), PETSc.IS().createGeneral(columns.astype(PETSc.IntType), PETSc.COMM_SELF))
    check('a submatrix', sub, C.tocsr()[rows][:, columns])
