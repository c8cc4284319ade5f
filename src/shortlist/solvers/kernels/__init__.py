"""Compiled loops over examples: visits of SDCA, visits on the support, values and gradients.

Kernels see examples through the functions of ``rows`` and duals through those of
``dual_rows``, chosen by type while they compile: each loop is written once.
"""
