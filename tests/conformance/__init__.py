"""The numbered cases of the inference semantics, run through the product.

`HEADRACE_CONFORMANCE_CASES` names another case file in the same format.
"""
