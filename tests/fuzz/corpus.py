#!/usr/bin/env python3
"""The corpus of the rooms' fuzzer, kept as text, one input in a line, in hexadecimal digits.

    corpus.py rooms.hex DIR          writes each line to a file of DIR
    corpus.py -gather DIR rooms.hex the reverse, from what `./fuzz -merge=1 DIR corpus` left in DIR: at most 64 of them,
    of all lengths
"""
import hashlib, os, sys

if sys.argv[1] == "-gather":
    inputs = sorted((open(os.path.join(sys.argv[2], n), "rb").read() for n in os.listdir(sys.argv[2])), key=lambda b: (len(b), b))
    with open(sys.argv[3], "w") as f:
        f.write("".join(b.hex() + "\n" for b in inputs[::max(1, (len(inputs) + 63) // 64)] if b))
else:
    for line in open(sys.argv[1]):
        data = bytes.fromhex(line.strip())
        with open(os.path.join(sys.argv[2], hashlib.sha1(data).hexdigest()), "wb") as f:
            f.write(data)
