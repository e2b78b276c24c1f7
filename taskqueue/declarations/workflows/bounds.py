"""The bounds of workflows; anything beyond them is refused before it is written."""

MAX_STEPS = 10_000
MAX_EDGES = 50_000
# Calls of one map.
MAX_CALLS = 100_000
# Members of all maps of a workflow, with its children.
MAX_MEMBERS = 1_000_000
# Workflows, or fan-outs, within each other.
MAX_NESTING = 10
# Characters of the name of a step or a workflow.
LONGEST_NAME = 100
# Bytes of JSON.
LARGEST_CONTEXT = 64 * 1024
LARGEST_GRAPH = 1024 * 1024
# A value of more bytes of JSON compares only by its length, and with null.
LARGEST_COMPARED = 4 * 1024
