"""Which parts a reading statement may be made of: everything that is not listed here is refused, wherever it stands."""

from sqlglot import exp

from cortex.base.errors import ToolFailed

QUERIES = """
    Select Union Intersect Except With CTE Subquery From Where Group Having Order Ordered Limit Offset Join Distinct
    Table TableAlias Alias Aliases Column Identifier Star Tuple Paren Values IndexTableHint Lateral Rollup Cube
    Window WindowSpec WithinGroup IgnoreNulls RespectNulls JSONColumnDef JSONSchema JSONTable Partition
"""
VALUES = """
    Literal Null Boolean National RawString HexString BitString Introducer CharacterSet CharacterSetSpec Collate
    Interval IntervalSpan Var DataType DataTypeParam Dot Cast TryCast Case If JSONPath JSONPathRoot JSONPathKey
    JSONPathSubscript JSONPathWildcard JSONPathRecursive JSONKeyValue FormatJson WeightString Convert JSONValue
"""
OPERATORS = """
    Add Sub Mul Div IntDiv Mod Neg And Or Xor Not EQ NEQ NullSafeEQ NullSafeNEQ GT GTE LT LTE Is In Between Like ILike
    RegexpLike Escape BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitwiseLeftShift BitwiseRightShift Exists Any All
    Binary SafeDivide JSONExtract JSONExtractScalar MatchAgainst DPipe
"""
ALLOWED_PARTS = frozenset(" ".join((QUERIES, VALUES, OPERATORS)).split())
REFUSED_CALLS = frozenset(
    {"CurrentUser", "SessionUser", "CurrentRole", "CurrentDatabase", "CurrentSchemas", "NextValueFor"}
)
WORDS = {
    "Lock": ("FOR UPDATE and other locks are", "leave them out"),
    "Into": ("INTO is", "the rows come back as the result"),
    "Parameter": ("Variables with @ are", "write the value itself"),
    "SessionParameter": ("The server's own variables (@@) are", "leave them out"),
    "Placeholder": ("Placeholders are", "write the value itself"),
    "PropertyEQ": ("Assignments (:=) are", "use a window function"),
    "Hint": ("Optimizer hints are", "leave them out"),
    "Version": ("Reading a table as it was (FOR SYSTEM_TIME) is", "read it as it is"),
}
STATEMENTS = frozenset({"Insert", "Update", "Delete", "Merge", "Create", "Drop", "Alter", "Set", "Command", "LoadData"})


def check_parts(tree: exp.Expr) -> None:
    """ToolFailed for the first part that is not on the list; modifiers that change nothing of the rows are dropped."""
    for part in tree.walk():
        kind = type(part).__name__
        if isinstance(part, exp.Func) and kind not in REFUSED_CALLS and kind not in STATEMENTS:
            _check_call(part)
        elif kind not in ALLOWED_PARTS:
            raise ToolFailed(_refusal(kind))
        if isinstance(part, exp.Dot) and not isinstance(part.expression, exp.Identifier | exp.Star):
            raise ToolFailed("Functions stored in the database are refused: compute with built-in functions.")
        if isinstance(part, exp.Select):
            _check_select(part)


def _check_call(part: exp.Func) -> None:
    if isinstance(part, exp.Anonymous) and not isinstance(part.this, str):
        raise ToolFailed(f"A function's name in quotes ({part.name[:60]}) is refused: write it without them.")


def _check_select(part: exp.Select) -> None:
    """SQL_CALC_FOUND_ROWS, SQL_NO_CACHE and the like are dropped; what makes a table is refused."""
    if part.args.get("into"):
        raise ToolFailed(_refusal("Into"))
    part.set("operation_modifiers", None)


def _refusal(kind: str) -> str:
    if kind in WORDS:
        what, instead = WORDS[kind]
        return f"{what} refused, only plain reading is allowed: {instead}."
    if kind in STATEMENTS:
        return f"{kind.upper()} inside a statement is refused, only reading is allowed: use SELECT."
    return f"{kind} is not among the parts of a statement that are allowed here: write it in plain SELECT."
