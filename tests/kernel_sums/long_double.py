"""Right values for the summation methods: attention with dense arrays in long double."""

import numpy as np


def mean(queries, keys, values, weights, key_bias=None):
    """Σ_j e^{s_ij} w_zj y_j / Σ_j e^{s_ij} w_zj with s_ij = ⟨q_i, k_j⟩ + b_j, (labels, n, d) in long double."""
    terms, _ = _terms(queries, keys, weights, key_bias)
    return (terms @ values.astype(np.longdouble)) / terms.sum(axis=2, keepdims=True)


def log_partition(queries, keys, weights, key_bias=None):
    """log Σ_j e^{s_ij} w_zj, (labels, n) in long double."""
    terms, shift = _terms(queries, keys, weights, key_bias)
    return np.log(terms.sum(axis=2)) + shift


def _terms(queries, keys, weights, key_bias):
    scores = queries.astype(np.longdouble) @ keys.astype(np.longdouble).T
    scores = scores if key_bias is None else scores + key_bias
    present = np.asarray(weights)[:, None, :] != 0
    shift = np.where(present, scores, -np.inf).max(axis=2)
    exponents = np.minimum(scores - shift[:, :, None], 0)
    return np.exp(exponents) * np.asarray(weights)[:, None, :], shift
