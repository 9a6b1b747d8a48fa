#!/usr/bin/env python3
"""Draws the pictures of docs/methods.md and docs/gpus.md: draw.py [--check] writes NAME.svg beside itself for each
function below, or says which would change.

All have a white ground, so they read the same on light and dark pages. Colours: blue what comes from A, orange from B,
green the result, grey what is not looked at.
"""
import os
import sys

INK, DIM, LINE = '#1f2328', '#57606a', '#8c959f'
A, B, C, NONE, OUT = '#b6d4fe', '#ffd8a8', '#b7e4c7', '#eaeef2', '#ffffff'


class Picture:
    def __init__(self, title, width=780, height=190):
        self.title, self.width, self.height, self.parts = title, width, height, []

    def text(self, x, y, words, size=12, anchor='start', fill=INK, mono=False):
        words = words.replace('&', '&amp;').replace('<', '&lt;')
        self.parts.append('<text x="%g" y="%g" font-size="%g" text-anchor="%s" fill="%s"%s>%s</text>' % (x, y, size, anchor, fill, ' font-family="monospace"' if mono else '', words))

    def box(self, x, y, w, h, fill=OUT, words='', size=11, stroke=LINE):
        self.parts.append('<rect x="%g" y="%g" width="%g" height="%g" fill="%s" stroke="%s"/>' % (x, y, w, h, fill, stroke))
        if words != '':
            self.text(x + w / 2, y + h / 2 + size * 0.35, str(words), size, 'middle')

    def cells(self, x, y, words, fill, w=26, h=20):
        """a list: one cell for each word; fill is a colour, or one for each"""
        for k, word in enumerate(words):
            self.box(x + k * w, y, w, h, fill if isinstance(fill, str) else fill[k], word)
        return x + len(words) * w

    def grid(self, x, y, rows, side=14, fill=A):
        """a pattern: a string for each row, '.' for no entry; letters name other colours"""
        colours = {'#': fill, 'a': A, 'b': B, 'c': C, 'n': NONE}
        for r, row in enumerate(rows):
            for k, mark in enumerate(row):
                self.box(x + k * side, y + r * side, side, side, colours.get(mark, OUT), stroke='#d0d7de')

    def arrow(self, x0, y0, x1, y1, dashed=False):
        self.parts.append('<line x1="%g" y1="%g" x2="%g" y2="%g" stroke="%s" stroke-width="1.4"%s marker-end="url(#tip)"/>' % (x0, y0, x1, y1, DIM, ' stroke-dasharray="4 3"' if dashed else ''))

    def line(self, x0, y0, x1, y1, colour=LINE, width=1.4):
        self.parts.append('<line x1="%g" y1="%g" x2="%g" y2="%g" stroke="%s" stroke-width="%g"/>' % (x0, y0, x1, y1, colour, width))

    def dot(self, x, y, fill, radius=9, words=''):
        self.parts.append('<circle cx="%g" cy="%g" r="%g" fill="%s" stroke="%s"/>' % (x, y, radius, fill, LINE))
        if words != '':
            self.text(x, y + 3.6, str(words), 10, 'middle')

    def svg(self):
        head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" font-family="sans-serif" role="img">' % (self.width, self.height, self.width)
        tip = '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="%s"/></marker></defs>' % DIM
        return '\n'.join([head, '<title>%s</title>' % self.title.replace('&', '&amp;').replace('<', '&lt;'), tip, '<rect width="100%" height="100%" fill="#ffffff"/>'] + self.parts + ['</svg>', ''])


def binned():
    p = Picture('binned: rows go to bins by their number of products; each bin has its own way to add them', height=200)
    p.text(20, 24, 'rows of A: how many products')
    for k, (n, to) in enumerate(((1, 0), (5, 1), (300, 2), (7, 1), (90000, 3))):
        p.box(20, 38 + 30 * k, 84, 20, A, 'row %d' % k)
        p.text(150, 52 + 30 * k, str(n), 12, 'end')
        p.arrow(158, 48 + 30 * k, 266, 54 + 40 * to)
    for k, (name, how) in enumerate((('1', 'copied'), ('2 to 32', 'a heap, one thread a row'), ('33 to 512', 'expand, sort (bitonic network), add up equal columns'), ('more', 'merge row after row into a sorted list, which grows'))):
        p.box(270, 44 + 40 * k, 74, 20, B, name)
        p.text(354, 58 + 40 * k, how, 11)
    p.text(270, 24, 'bins (on a GPU)')
    return p


def rowmerge():
    p = Picture('rowmerge: a row of C is the merge of the rows of B that the row of A names')
    p.text(20, 24, 'row of A')
    p.cells(20, 34, ('1', '4', '6'), A)
    p.text(130, 24, 'rows 1, 4 and 6 of B: sorted columns')
    for k, row in enumerate((('2', '5', '9'), ('2', '3', '9'), ('5', '7'))):
        p.cells(130, 34 + 34 * k, row, [B if w in ('2',) else OUT for w in row])
        p.text(248, 48 + 34 * k, 'head: %s' % row[0], 11, fill=DIM)
        p.arrow(302, 44 + 34 * k, 384, 78)
    p.box(388, 60, 110, 36, NONE, 'least head: 2')
    p.arrow(498, 78, 530, 78)
    p.text(530, 56, 'row of C')
    p.cells(534, 68, ('2', '3', '5', '7', '9'), [C, OUT, OUT, OUT, OUT])
    p.text(20, 160, 'Take the least head, add the products of the rows that have it, step on in these. Rows of A with many entries are')
    p.text(20, 176, 'merged in pieces of W, then the pieces, and so on.')
    return p


def segmerge():
    p = Picture('segmerge: all products of some rows as sorted lists, merged by pairs in rounds, the same number of places a thread')
    p.text(20, 24, 'segments: the products of two rows of C, one sorted list for each entry of A')
    x = 20
    for words, colour in ((('1', '4', '8', '9'), A), (('2',), B), (('4', '5'), A), (('3',), B)):
        x = p.cells(x, 34, words, colour)
    p.line(x, 28, x, 60, INK, 2)
    for words, colour in ((('0', '2', '7'), A), (('2', '6', '7', '8'), B)):
        x = p.cells(x, 34, words, colour)
    x1 = x
    p.text(20, 86, 'one round: neighbouring lists become one; threads take equal parts of the output, whatever the lists\' lengths')
    x = 20
    for words in (('1', '2', '4', '8', '9'), ('3', '4', '5')):
        x = p.cells(x, 96, words, C)
    p.line(x, 90, x, 122, INK, 2)
    x = p.cells(x, 96, ('0', '2', '2', '6', '7', '7', '8'), C)
    for k in range(5):
        left, right = 20 + k * 3 * 26, min(20 + (k + 1) * 3 * 26, x1)
        p.line(left + 2, 126, right - 2, 126, '#1f6feb', 3)
        p.text((left + right) / 2, 141, 'thread %d' % k, 10, 'middle', DIM)
    p.text(20, 170, 'After the last round equal columns stand side by side, in the order of A\'s entries: runs are counted and added up.')
    return p


def hash_():
    p = Picture('hash: a row of C as a table of blocks of 32 columns, each with a mask of those present; counted bits are places', height=210)
    p.text(20, 24, 'products of one row: columns')
    p.cells(20, 34, ('3', '5', '70', '4', '5', '66'), B)
    p.arrow(180, 44, 222, 44)
    p.text(230, 24, 'table: block of 32 columns, mask')
    for k, (block, mask) in enumerate((('block 0', '00011100...'), ('block 2', '00100010...'))):
        p.box(230, 34 + 26 * k, 62, 20, A, block)
        p.box(292, 34 + 26 * k, 110, 20, OUT)
        p.text(300, 48 + 26 * k, mask, 11, mono=True)
    p.arrow(406, 56, 496, 56)
    p.text(500, 24, 'row of C')
    p.cells(500, 44, ('3', '4', '5', '66', '70'), C)
    p.text(20, 118, 'Place of column 70 = entries of blocks before it (3) + bits below its own in the mask (1) = 4.')
    p.text(20, 138, 'No column is ever sorted, only the few blocks; one insertion serves several neighbouring columns.')
    p.text(20, 168, 'Values: a group of threads goes along a row of B and adds each product at its place; entries of A one after the other,')
    p.text(20, 184, 'so sums have the same bits in every run.')
    return p


def masks():
    p = Picture('masks: for new values each entry of A has a mask that says which entries of the row of C its row of B has', height=210)
    p.text(20, 24, 'row of C, its pattern known; a thread keeps the sum of each entry')
    p.cells(20, 34, ('2', '3', '5', '7', '9'), C, 40)
    for k in range(5):
        p.text(40 + 40 * k, 68, 'sum %d' % k, 10, 'middle', DIM)
    for k, (row, mask, cols) in enumerate((('a1', '11001', ('2', '3', '9')), ('a2', '00110', ('5', '7')), ('a3', '10100', ('2', '5')))):
        y = 84 + 30 * k
        p.box(260, y, 40, 20, A, row)
        for bit in range(5):
            p.box(20 + 40 * bit, y, 40, 20, B if mask[bit] == '1' else OUT, mask[bit])
        p.text(312, y + 14, 'row of B:', 11, fill=DIM)
        p.cells(366, y, cols, B)
    p.text(20, 196, 'The thread of entry e tests bit e; the number of bits below tells which entry of the row of B it adds.')
    return p


def shape():
    p = Picture('shape: rows with the same columns relative to their first one are of one class; what one of them needs is found once', height=200)
    p.text(20, 24, 'grid: one colour, one shape')
    for r in range(5):
        for k in range(7):
            edge = (r in (0, 4)) + (k in (0, 6))
            p.dot(34 + 26 * k, 48 + 28 * r, (C, A, B)[edge], 8)
    p.arrow(222, 104, 262, 104)
    p.text(270, 24, 'a representative for each')
    for k, (colour, words) in enumerate(((C, ('-n', '-1', '0', '+1', '+n')), (A, ('-1', '0', '+1', '+n')), (B, ('0', '+1', '+n')))):
        p.dot(280, 56 + 44 * k, colour, 8)
        p.cells(298, 46 + 44 * k, words, colour, 32)
    p.arrow(466, 104, 496, 104)
    p.text(500, 60, 'where each product goes:')
    p.text(500, 76, 'a table for each class,')
    p.text(500, 92, 'for millions of rows')
    p.text(500, 120, 'y = A x: the columns are')
    p.text(500, 136, 'row + offset, and none')
    p.text(500, 152, 'is read from memory')
    return p


def diagonal():
    p = Picture('diagonal: rows as words of bits, one a diagonal; words of C are shifted words of B', height=200)
    n = 7
    band = [''.join('#' if abs(r - k) <= 1 else '.' for k in range(n)) for r in range(n)]
    wide = [''.join('#' if abs(r - k) <= 2 else '.' for k in range(n)) for r in range(n)]
    p.grid(20, 40, band)
    p.text(20 + 49, 30, 'A', 12, 'middle')
    p.text(128, 94, 'x', 14, 'middle')
    p.grid(140, 40, band, fill=B)
    p.text(140 + 49, 30, 'B', 12, 'middle')
    p.text(250, 94, '=', 14, 'middle')
    p.grid(264, 40, wide, fill=C)
    p.text(264 + 49, 30, 'C', 12, 'middle')
    p.text(390, 40, 'row r of A has diagonals -1, 0, +1')
    for k, (d, word) in enumerate((('-1', '111..'), (' 0', '.111.'), ('+1', '..111'))):
        p.text(390, 66 + 20 * k, 'B row r%s, shifted' % d.replace(' 0', '+0'), 11, fill=DIM)
        for bit, mark in enumerate(word):
            p.box(530 + 18 * bit, 53 + 20 * k, 18, 16, B if mark == '1' else OUT)
    p.text(390, 136, 'row r of C: their OR', 11)
    for bit in range(5):
        p.box(530 + 18 * bit, 123, 18, 16, C)
    p.text(20, 172, 'Diagonal d1 of A meets diagonal d2 of B in diagonal d1 + d2 of C. Neighbouring rows read neighbouring values;')
    p.text(20, 188, 'no column index is looked at.')
    return p


def block():
    p = Picture('block: with several unknowns at a point, blocks are counted and placed, not entries', height=190)
    for k, (x, colour, name) in enumerate(((20, A, 'A'), (170, B, 'B'), (320, C, 'C'))):
        blocks = (((0, 0), (0, 1), (1, 1), (2, 0), (2, 2)), ((0, 0), (1, 1), (1, 2), (2, 2)), ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 0), (2, 2)))[k]
        p.text(x + 54, 26, name, 12, 'middle')
        p.grid(x, 34, ['.' * 9] * 9, 12)
        for r, c in blocks:
            p.grid(x + 36 * c, 34 + 36 * r, ['###'] * 3, 12, colour)
            p.parts.append('<rect x="%d" y="%d" width="36" height="36" fill="none" stroke="%s" stroke-width="1.6"/>' % (x + 36 * c, 34 + 36 * r, INK))
    p.text(150, 92, 'x', 14, 'middle')
    p.text(298, 92, '=', 14, 'middle')
    p.text(450, 56, 'found once for bs x bs x bs products:')
    p.text(450, 76, 'the place of each pair of blocks')
    p.text(450, 106, 'values stay in CSR:')
    p.text(450, 126, 'nothing is converted')
    p.text(20, 172, 'y = A x reads one column index for each block.')
    return p


def tile():
    p = Picture('tile: tiles of 8 x 8 with maps of 64 bits; pairs whose boolean product is empty are dropped, the others go to tensor cores', height=200)
    a = ['#.......', '.#......', '..#.....', '...#....', '#...#...', '.....#..', '......#.', '.#.....#']
    b = ['........', '.#..#...', '........', '...#....', '.#......', '........', '..#.....', '........']
    p.text(20, 24, 'tile of A: 8 x 8, one bit an entry')
    p.grid(20, 34, a, 12)
    p.text(226, 24, 'tile of B')
    p.grid(226, 34, b, 12, B)
    p.text(170, 86, 'x', 14, 'middle')
    p.arrow(330, 60, 372, 48)
    p.box(376, 34, 120, 28, NONE, 'maps: empty?')
    p.arrow(496, 48, 536, 48)
    p.text(542, 52, 'yes: dropped')
    p.arrow(436, 62, 436, 84)
    p.text(444, 78, 'no', 11)
    p.box(376, 86, 120, 28, C, 'tensor cores')
    p.text(504, 104, 'twice 8 x 8 x 4, doubles')
    p.text(20, 160, 'Each pair of tiles (A, B) is a task; tasks of one tile of C stand behind each other and are added in A\'s order.')
    p.text(20, 178, 'The maps also count the entries of C exactly, before anything is multiplied.')
    return p


def fused():
    p = Picture('fused P^T A P: row i of A P is formed on the spot and added to the rows of C that row i of P names', height=200)
    p.text(20, 24, 'row i of A')
    p.cells(20, 34, ('k1', 'k2', 'k3'), A, 30)
    p.arrow(112, 44, 146, 44)
    p.text(150, 24, 'these rows of P')
    for k, row in enumerate(('##..', '.##.', '..#.')):
        p.grid(150, 34 + 20 * k, [row], 18, B)
    p.arrow(228, 60, 262, 60)
    p.text(266, 24, 'v = row i of A P')
    p.cells(266, 50, ('v1', 'v2', 'v3', ''), [NONE, NONE, NONE, OUT], 28)
    p.arrow(382, 60, 424, 60)
    p.text(430, 24, 'C: rows that row i of P names')
    p.grid(430, 34, ['....', 'ccc.', 'ccc.', '....'], 22)
    p.text(526, 71, '+= P(i,1) v', 11)
    p.text(526, 93, '+= P(i,2) v', 11)
    p.text(20, 152, 'Neither A P nor P^T is stored. Kept for new values: the columns of each v, and where they go in the rows of C.')
    p.text(20, 172, 'In stages instead: A P is stored, P^T made once and kept, then P^T times A P, each by a method above.')
    return p


def segsum():
    p = Picture('segsum: the nonzeros are divided, not the rows; bits mark where rows begin, sums go by segments', height=175)
    p.text(20, 24, 'rows of very different lengths; each colour is a row')
    colours, starts = [], []
    for length, colour in ((2, A), (9, B), (1, C), (3, A), (5, B), (4, C)):
        starts.append(len(colours))
        colours += [colour] * length
    p.cells(20, 34, [''] * 24, colours, 26)
    for k in range(24):
        p.text(33 + 26 * k, 70, '1' if k in starts else '0', 11, 'middle', INK if k in starts else LINE, True)
    for t in range(3):
        p.line(22 + 208 * t, 80, 18 + 208 * (t + 1), 80, '#1f6feb', 3)
        p.text(124 + 208 * t, 96, 'tile %d: 8 entries' % t, 11, 'middle', DIM)
    p.arrow(200, 112, 238, 112)
    p.text(244, 116, 'what a row has in the next tile is carried on', 11)
    p.text(20, 142, 'A tile takes its s-th segment for its s-th row. Empty rows have no bit; if bits and rows do not match, the tile is')
    p.text(20, 158, '"dirty", and its sums are put to the right rows. The work of a tile never depends on the rows\' lengths.')
    return p


def rowgroup():
    p = Picture('rowgroup: as many threads a row as its length wants', height=185)
    p.text(20, 24, 'rows of A')
    for k, (n, lanes) in enumerate(((4, 1), (6, 1), (14, 2), (22, 4))):
        y = 36 + 30 * k
        for e in range(n):
            p.box(20 + 18 * e, y, 18, 18, (A, B, C, NONE)[e % lanes] if lanes > 1 else A)
        p.text(430, y + 13, ('one thread', 'one thread', '2 threads, each every second entry', '4 threads, each every fourth entry')[k], 11)
    p.text(20, 172, 'Up to a warp (32 threads), then a block, then several blocks a row. The host (csr): one pass, four sums under way.')
    return p


def rowlist():
    p = Picture('rowlist: only rows that have entries are listed and touched', height=180)
    p.text(20, 24, 'off-diagonal block of a parallel matrix: most rows are empty')
    rows = ['........', '........', '.#..#...', '........', '........', '........', '..#.....', '#.....#.']
    p.grid(20, 34, rows, 15)
    p.arrow(150, 90, 196, 90)
    p.text(200, 60, 'list: rows that have entries')
    p.cells(200, 76, ('2', '6', '7'), A, 32)
    p.arrow(304, 86, 394, 86)
    p.text(400, 60, 'y: the others stay as they are, or zero')
    p.cells(400, 76, [''] * 8, [OUT, OUT, C, OUT, OUT, OUT, C, C], 26)
    return p


def gamg():
    p = Picture('GAMG: roots are found in rounds that need no order of work, and are the same that PETSc\'s loop finds', height=230)
    order = ((12, 15, 5, 16, 8, 14), (4, 13, 0, 10, 1, 2), (17, 6, 11, 3, 9, 7))
    titles = ('the order in which PETSc asks', 'round 1: first within two steps', 'round 2: of those left')
    for t in range(3):
        x0 = 40 + 220 * t
        p.text(x0 - 14, 24, titles[t], 12)
        for r in range(3):
            for k in range(6):
                x, y = x0 + 32 * k, 54 + 42 * r
                if k < 5:
                    p.line(x, y, x + 32, y, '#d0d7de', 1)
                if r < 2:
                    p.line(x, y, x, y + 42, '#d0d7de', 1)
        states = rounds(order, t)
        for r in range(3):
            for k in range(6):
                p.dot(x0 + 32 * k, 54 + 42 * r, states[r][k], 10, order[r][k])
    p.dot(34, 184, C, 7)
    p.text(48, 188, 'root of an aggregate', 11)
    p.dot(194, 184, NONE, 7)
    p.text(208, 188, 'within two steps of a root', 11)
    p.dot(384, 184, OUT, 7)
    p.text(398, 188, 'undecided', 11)
    p.text(20, 216, 'A vertex becomes a root when no undecided one of a lower number is within two steps: PETSc\'s roots, without its loop.')
    return p


def rounds(order, n):
    """colours after n rounds of the rule that the caption states"""
    places = [(r, k) for r in range(3) for k in range(6)]
    state = {v: OUT for v in places}
    near = {v: [w for w in places if w != v and abs(v[0] - w[0]) + abs(v[1] - w[1]) <= 2] for v in places}
    for _ in range(n):
        undecided = [v for v in places if state[v] == OUT]
        for v in [v for v in undecided if all(state[w] != OUT or order[w[0]][w[1]] > order[v[0]][v[1]] for w in near[v])]:
            state[v] = C
        for v in undecided:
            if state[v] == OUT and any(state[w] == C for w in near[v]):
                state[v] = NONE
    return [[state[r, k] for k in range(6)] for r in range(3)]


def ways():
    p = Picture('how entries get from one card to another: peer, gpuaware, mpi', height=226)
    for x, title in ((20, 'node 1'), (400, 'node 2')):
        p.box(x, 20, 360, 196, '#f6f8fa')
        p.text(x + 10, 38, title, 12, fill=DIM)
    for x, name in ((40, 'card 0'), (230, 'card 1'), (570, 'card 2')):
        p.box(x, 48, 120, 40, C, name, 13)
    for x in (40, 570):
        p.box(x, 166, 120, 40, A, 'memory of the host', 11)
    p.arrow(160, 60, 230, 60)
    p.text(195, 54, 'peer', 12, 'middle')
    p.text(164, 104, 'over NVLink or PCIe, within a node', 11, fill=DIM)
    p.line(130, 88, 130, 138, DIM)
    p.line(130, 138, 600, 138, DIM)
    p.arrow(600, 138, 600, 88)
    p.text(390, 132, 'gpuaware: MPI reads and writes the memory of cards', 12, 'middle')
    p.arrow(70, 88, 70, 166)
    p.arrow(160, 186, 570, 186)
    p.arrow(660, 166, 660, 88)
    p.text(390, 180, 'mpi: through the memory of the hosts', 12, 'middle')
    return p


PICTURES = (binned, rowmerge, segmerge, hash_, masks, shape, diagonal, block, tile, fused, segsum, rowgroup, rowlist, gamg, ways)
if __name__ == '__main__':
    changed = 0
    for picture in PICTURES:
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), picture.__name__.rstrip('_') + '.svg')
        text = picture().svg()
        if not os.path.exists(path) or open(path).read() != text:
            changed += 1
            if '--check' in sys.argv:
                print('%s is not what draw.py draws' % path)
            else:
                with open(path, 'w') as f:
                    f.write(text)
    print('pictures: %d, %d %s' % (len(PICTURES), changed, 'differ' if '--check' in sys.argv else 'written'))
    sys.exit(1 if changed and '--check' in sys.argv else 0)
