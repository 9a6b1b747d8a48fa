#!/usr/bin/env python3
"""What several cards of a host do, from benchmarks/results/gpus-CARD.tsv, as bench-gpus leaves it (of several runs in
one file the mean is taken):

  plot-gpus.py TSV TITLE > SVG     weak scaling, the time beside one card's with as many rows a card, and strong
                                   scaling, how many times faster than one card with all rows
  plot-gpus.py --table TSV         the figures in Markdown, milliseconds
  plot-gpus.py --model TSV         a model of MatMult and of CG with GAMG on more cards and nodes, beside what was
                                   measured
"""
import math
import sys

OPERATIONS = ["MatMult", "A*A first", "A*A second matrix", "A*A again", "MatPtAP first", "MatPtAP second matrix", "MatPtAP again", "GAMG setup", "GAMG setup again", "second solve"]
PEER, MESSAGES = "peer access", "messages"
COLOURS = {PEER: "#1f6feb", MESSAGES: "#d4a72c"}


def read(path):
    runs = {}
    for line in open(path):
        c = line.rstrip("\n").split("\t")
        if len(c) > 6 and c[6] and c[5] in OPERATIONS:
            runs.setdefault((int(c[0]), MESSAGES if c[1].startswith("MPI") else PEER, int(c[2]), int(c[3]), c[5]), []).append(float(c[6]))
    if not runs:
        sys.exit("plot-gpus.py: no figures in " + path)
    return {k: sum(v) / len(v) for k, v in runs.items()}


def scaling(f):
    """(cards, way, points, n, operation): what one card takes for its share, and for all of it, or None"""
    found = {}
    for (cards, way, points, n, op), ms in f.items():
        if cards > 1:
            weak = [m for m in {k[3] for k in f if k[0] == 1 and k[2] == points} if m < n and abs(m * cards ** (1 / 3) - n) < 0.6]
            found[cards, way, points, n, op] = ms, f.get((1, PEER, points, weak[0], op)) if weak else None, f.get((1, PEER, points, n, op))
    return found


def number(t):
    return "" if t is None else "%.0f" % t if t >= 100 else "%.3g" % t


def ratio(a, b):
    return "%.2f" % (a / b) if a and b else ""


def table(f):
    print("| matrix | operation | cards, way | ms | one card, its share | ratio | one card, all of it | times faster |\n|---|---|---|---|---|---|---|---|")
    for (cards, way, points, n, op), (ms, weak, strong) in sorted(scaling(f).items(), key=lambda k: (-k[0][2], OPERATIONS.index(k[0][4]), k[0][0], k[0][1] == MESSAGES)):
        print("| %d-pt %d^3 | %s | %d, %s | %s | %s | %s | %s | %s |" % (points, n, op, cards, way, number(ms), number(weak), ratio(ms, weak), number(strong), ratio(strong, ms)))


def draw(f, title):
    s = scaling(f)
    cards = max(k[0] for k in s)
    problems = sorted({k[2:4] for k in s if k[0] == cards}, reverse=True)
    left, wide, gap, row, top = 150, 250, 40, 30, 70
    tall = row * len(OPERATIONS)
    right = left + 2 * wide + gap
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">' % (right + 20, top + len(problems) * (tall + 60)), '<rect width="100%" height="100%" fill="#ffffff"/>',
           '<text x="12" y="20" font-size="14" fill="#1f2328">%s</text>' % title]
    for k, way in enumerate((PEER, MESSAGES)):
        out.append('<rect x="%d" y="30" width="10" height="10" fill="%s"/><text x="%d" y="39" fill="#1f2328">%s</text>' % (12 + 110 * k, COLOURS[way], 26 + 110 * k, way))
    for p, (points, n) in enumerate(problems):
        y0 = top + p * (tall + 60)
        for panel, what in enumerate(("%d-point on %d cards: time beside one card's (1 is best)", "%d-point %d^3: times faster than one card (%d is best)")):
            x0 = left + panel * (wide + gap)
            shown = {k: (v[0] / v[1] if not panel else v[2] / v[0]) for k, v in s.items() if k[0] == cards and k[2:4] == (points, n) and v[1 + panel]}
            most = max([cards] + [math.ceil(v) for v in shown.values()])
            words = what % ((points, cards) if not panel else (points, n, cards))
            out.append('<text x="%d" y="%d" fill="#57606a" font-size="9">%s</text>' % (x0, y0 - 6, words))
            for tick in range(most + 1):
                x = x0 + tick / most * (wide - 10)
                out.append('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="%s"/>' % (x, x, y0, y0 + tall, "#57606a" if tick == (1 if not panel else cards) else "#d0d7de"))
                out.append('<text x="%.1f" y="%d" text-anchor="middle" fill="#57606a">%d</text>' % (x, y0 + tall + 14, tick))
            for k, op in enumerate(OPERATIONS):
                if not panel:
                    out.append('<text x="%d" y="%d" text-anchor="end" fill="#1f2328">%s</text>' % (left - 8, y0 + k * row + row / 2 + 4, op))
                for w, way in enumerate((PEER, MESSAGES)):
                    v = shown.get((cards, way, points, n, op))
                    if v:
                        out.append('<rect x="%d" y="%.1f" width="%.1f" height="9" fill="%s"/>' % (x0, y0 + k * row + 5 + 10 * w, v / most * (wide - 10), COLOURS[way]))
    out.append("</svg>")
    print("\n".join(out))


# The model's constants: microseconds, bytes a microsecond (1000 is 1 GB/s). Fitted to two H200 of one host: OURS, PUT,
# MESSAGE, HOST. Assumed: the rest.
PUT, OURS = 2, 13            # put and wait by peer access; the product with others' columns
LINK = 350e3                 # NVLink
MESSAGE, HOST = 22, 3.5e3    # a message through page-locked buffers, by MPI's shared memory
NEIGHBOUR = 0.5              # each message more
FARTHER, NETWORK = 3, 25e3 / 3  # between nodes; bus, network, bus one after the other, 25 GB/s each
SUM = {True: 2, False: 5}    # a sum over processes, times log2 of their number; in a node or between
NODE = 8                     # cards


# rows and nonzeros of a card's levels, as measured, and CG's iterations
PROBLEMS = {27: ([(884736, 23393656), (19204, 802092), (1271, 138623), (44, 3270)], 5), 7: ([(2097152, 14581760), (188597, 6122499), (14646, 1792836), (450, 60054)], 6)}


def extra(cards, peer, rows, nonzeros, rate, slabs):
    """microseconds that an exchange adds to a product"""
    whole, near = rows * cards, cards <= NODE
    faces = (whole ** (2 / 3) * min(2, cards - 1)) if slabs else 6 * rows ** (2 / 3)
    neighbours = min(2, cards - 1) if slabs else min(26, cards - 1)
    if peer and near:
        return PUT + OURS + 8 * faces / LINK
    message = MESSAGE + NEIGHBOUR * (neighbours - 1) + (0 if near else FARTHER) + 8 * faces / (HOST if near else NETWORK)
    return max(0, message - nonzeros * rate) + OURS


def model(f):
    print("| matrix | cards | way | rows dealt out in | MatMult, model | measured | solve, model | measured | one card's time, % |\n|---|---|---|---|---|---|---|---|---|")
    for points, (levels, iterations) in PROBLEMS.items():
        side = round(levels[0][0] ** (1 / 3))
        one = [f[1, PEER, points, side, op] for op in ("MatMult", "second solve")]
        rate = 1e3 * one[0] / levels[0][1]
        for cards, way, slabs in [(1, PEER, True)] + [(c, w, True) for c in (2, 4) for w in (PEER, MESSAGES)] + [(c, w, False) for c, w in ((8, PEER), (8, MESSAGES), (16, MESSAGES), (64, MESSAGES), (512, MESSAGES))]:
            mult, solve = (1e3 * t for t in one)
            if cards > 1:
                peer = way == PEER
                mult += extra(cards, peer, *levels[0], rate, slabs)
                # GAMG makes a level more for each twenty times as many rows: as small a one as the last
                there = levels + [levels[-1]] * int(math.log(cards / 2) / math.log(20))
                for k, (rows, nonzeros) in enumerate(there):
                    solve += (4 * (iterations + 1) + (iterations if not k else 0)) * extra(cards, peer, rows, nonzeros, rate, slabs)
                    solve += 2 * (iterations + 1) * extra(cards, peer, min(rows, 10000), 0, rate, slabs)
                solve += 3 * (iterations + 1) * SUM[cards <= NODE] * math.log2(cards)
            n = side if cards == 1 else round(side * cards ** (1 / 3))
            seen = [f.get((cards, way, points, n, op)) for op in ("MatMult", "second solve")]
            print("| %d-pt | %d | %s | %s | %.3f | %s | %.1f | %s | %.0f |" % (points, cards, way if cards > 1 else "", "" if cards == 1 else "slabs" if slabs else "boxes", mult / 1e3, number(seen[0]), solve / 1e3, number(seen[1]), 100e3 * one[1] / solve))


if sys.argv[1] == "--table":
    table(read(sys.argv[2]))
elif sys.argv[1] == "--model":
    model(read(sys.argv[2]))
else:
    draw(read(sys.argv[1]), sys.argv[2])
