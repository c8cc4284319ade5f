"""The schema of the commands' JSON, and whether a text is as it says."""

import json
from functools import cache
from importlib.resources import files as package_files

import jsonschema

SCHEMA = json.loads((package_files("shortlist.cli") / "schema.json").read_text())


def check(kind: str, text: str) -> dict:
    """Raise unless the text is JSON as the schema describes it for a command."""
    entry = json.loads(text)
    _validator(kind).validate(entry)
    return entry


@cache
def _validator(kind: str) -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    own = {**SCHEMA, "oneOf": [{"$ref": f"#/$defs/{kind.replace(' ', '%20')}"}]}
    return jsonschema.Draft202012Validator(own)
