#!/usr/bin/env python3
"""elasticity.py [N]: writes the matrix of a linear elasticity problem in Matrix Market format to standard output.

A cube of N^3 trilinear finite elements (default 20) is clamped on one face. Each vertex has three unknowns, so the
matrix has 3 N (N + 1)^2 rows and block size 3. Needs nothing but Python.
"""
import sys

N = int(sys.argv[1]) if len(sys.argv) > 1 else 20
LAME, SHEAR = 0.6, 0.4  # Young's modulus 1, Poisson's ratio 0.3


def line(i, j):
    """Integrals along one axis of hat functions i and j: values, slope of i, slope of j, both slopes."""
    ends = (i < N) + (i > 0)
    if i == j:
        slope = ((i > 0) - (i < N)) / 2
        return ends / 3, slope, slope, ends
    return 1 / 6, (i - j) / 2, (j - i) / 2, -1


def entry(v, w, a, b):
    """The entry of direction a at vertex v and direction b at vertex w."""
    lines = [line(i, j) for i, j in zip(v, w)]

    def integral(p, q):
        """of the p-th derivative of v's function times the q-th derivative of w's"""
        product = 1
        for axis, values in enumerate(lines):
            product *= values[(axis == p) + 2 * (axis == q)]
        return product

    same = sum(integral(d, d) for d in range(3)) if a == b else 0
    return LAME * integral(a, b) + SHEAR * (integral(b, a) + same)


def number(v):
    return (v[0] - 1) * (N + 1) ** 2 + v[1] * (N + 1) + v[2]


entries, shapes = [], {}
for x in range(1, N + 1):  # the vertices with x = 0 are clamped
    for y in range(N + 1):
        for z in range(N + 1):
            v = x, y, z
            for w in [(p, q, r) for p in (x - 1, x, x + 1) for q in (y - 1, y, y + 1) for r in (z - 1, z, z + 1)]:
                if not (1 <= w[0] <= N and 0 <= w[1] <= N and 0 <= w[2] <= N and number(w) <= number(v)):
                    continue
                # vertices inside are alike: compute each kind once
                kind = tuple((c - d, c == 0, c == N, d == 0, d == N) for c, d in zip(v, w))
                if kind not in shapes:
                    shapes[kind] = [[entry(v, w, a, b) for b in range(3)] for a in range(3)]
                for a in range(3):
                    for b in range(3):
                        row, column = 3 * number(v) + a + 1, 3 * number(w) + b + 1
                        if column <= row:
                            entries.append('%d %d %.12g' % (row, column, shapes[kind][a][b]))
rows = 3 * N * (N + 1) ** 2
print('%%MatrixMarket matrix coordinate real symmetric')
print(rows, rows, len(entries))
print('\n'.join(entries))
