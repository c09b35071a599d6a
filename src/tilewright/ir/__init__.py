"""Evaluate kernels without a GPU: a Triton kernel's own IR, over concrete integers, in several number systems.

compile.py      function + arguments → TTIR, with the specialisation of a real launch
readers/        IR text → Program
program.py      Program: operations, types, regions, source lines
launch.py       run(): the way in; one launch → Result
arguments.py    a launch's arguments → buffers and values; Arg
evaluate.py     walks a Program, all programs of the grid at once; frames.py holds the values of one scope
memory.py       buffers, bounds, races, uninitialised reads; phantom.py: sizes beyond memory
ops/            one rule an operation, by family
domains/        what a float is: machine (the hardware's bits), real (float64, differentiable), field (residues)
records.py      Result and what it holds
values.py       integers, pointers, descriptors; changes of shape for any value
"""
