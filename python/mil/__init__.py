"""Golden cases for the operators of Core ML's ML programs; see `mil_cases.py`."""
