"""MySQL's dialect of sqlglot, written so that MariaDB and MySQL both read what was meant."""

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.mysql import MySQL
from sqlglot.generators.mysql import MySQLGenerator


def _scalar(self: Any, node: exp.JSONExtractScalar) -> str:  # Any: sqlglot's generator
    return f"JSON_UNQUOTE({self.func('JSON_EXTRACT', node.this, node.expression)})"


class Aether(MySQL):
    """`REGEXP`, `->>` and UTC_DATE in the spelling that both servers have."""

    class Generator(MySQLGenerator):
        """Writes the statement that is sent."""

        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **MySQLGenerator.TRANSFORMS,
            exp.RegexpLike: lambda self, node: self.binary(node, "REGEXP"),
            exp.JSONExtractScalar: _scalar,
            exp.UtcDate: lambda self, node: "UTC_DATE()",
        }
