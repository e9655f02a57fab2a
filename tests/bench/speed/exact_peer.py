"""Inputs of cdist, and how far off its results are: exact_peer.py FOLDER make|errors.

make: a.npy and b.npy, of f32. errors: the largest errors, over the largest distance, of d.npy, of PyTorch's direct form
and of its form by a matrix product, beside the direct form in double; one line of JSON, with PyTorch's version.
"""
import json
import pathlib
import sys

import numpy
import torch

FOLDER = pathlib.Path(sys.argv[1])
ROWS, OTHERS, LENGTH = 512, 8192, 128
FROM_ZERO = 10.0  # What the squares of a product's form are of, and cancel.


def make():
    torch.manual_seed(7)
    for name, rows in (("a", ROWS), ("b", OTHERS)):
        numpy.save(FOLDER / f"{name}.npy", (torch.randn(rows, LENGTH) + FROM_ZERO).numpy())


def loaded(name):
    return torch.from_numpy(numpy.load(FOLDER / f"{name}.npy")).cuda()


def errors():
    a, b = loaded("a"), loaded("b")
    direct = {"compute_mode": "donot_use_mm_for_euclid_dist"}
    want = torch.cdist(a.double(), b.double(), **direct)
    found = {"ours": loaded("d"), "direct": torch.cdist(a, b, **direct),
             "product": torch.cdist(a, b, compute_mode="use_mm_for_euclid_dist")}
    off = {name: ((d.double() - want).abs().max() / want.max()).item() for name, d in found.items()}
    print(json.dumps({"torch": torch.__version__, "errors": off}))


if __name__ == "__main__":
    {"make": make, "errors": errors}[sys.argv[2]]()
