"""From typed functions to tools: schemas, `@tool`, the registry. Pure; tool files live in `cortex/tools`."""
