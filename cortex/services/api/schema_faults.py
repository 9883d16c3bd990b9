"""Why a value does not fit a JSON schema. Loaded with the first answer that one is asked of: jsonschema takes 3 MB."""

from typing import Any

from jsonschema import Draft202012Validator


def first_fault(schema: dict[str, Any], value: Any) -> str:
    """The first reason, with its place; "" where it fits. schema: one that `toolkit/json_schema.py: harmless` gave."""
    fault = next(Draft202012Validator(schema).iter_errors(value), None)
    if fault is None:
        return ""
    place = ".".join(map(str, fault.absolute_path))
    return f"{place}: {fault.message}".removeprefix(": ")
