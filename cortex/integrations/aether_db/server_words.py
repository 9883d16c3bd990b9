"""A server's errors as one sentence each: what happened, and what to do."""

import ssl

from pymysql.err import Error, InterfaceError

from cortex.base.errors import ServiceDown, ToolFailed, chain
from cortex.integrations.aether_db.open_names import Access

ADMIN = "an admin can look under Integrations"
LOST = (2003, 2006, 2013, 2014, 2055, 1053, 4031, 1927)
REFUSED = (1044, 1045, 1698, 1862, 4151, 3118, 1130, 3159)
FULL = (1040, 1203, 1226)
SLOW = (1969, 3024)
STOPPED = (1317, 1028)
NO_SUCH_SETTING = 1193
WRITES = (1792, 1290, 1836)
NOT_ALLOWED = (1142, 1143, 1227, 1370, 1345)
WORDS_SHOWN = 300
# RuntimeError: the driver's word for a server that asks for a file, and for a connection closed under it.
DRIVER_ERRORS = (Error, OSError, TimeoutError, RuntimeError, EOFError, AssertionError, IndexError, UnicodeError)


def is_lost(error: BaseException) -> bool:
    """Tell whether the connection is gone: another one may do."""
    return isinstance(error, OSError | EOFError | InterfaceError) or _number(error) in LOST


def failure(error: BaseException, access: Access) -> ToolFailed:
    """The sentence for what a driver raised."""
    number, where = _number(error), f"The database at {access.place}"
    if isinstance(error, TimeoutError):
        return ServiceDown(f"{where} did not answer in time: try again later, or {ADMIN}.")
    certificate = _certificate(error)
    if certificate:
        return ServiceDown(f"{where} shows a certificate that is not trusted ({certificate}): {ADMIN}.")
    if is_lost(error):
        return ServiceDown(f"{where} does not answer: try again later, or {ADMIN}.")
    if number in REFUSED:
        # MariaDB says the same of an account, or a server, that takes encrypted connections only.
        plain = ", or takes encrypted connections only (TLS is off there)" if access.tls == "off" else ""
        return ServiceDown(f"{where} refuses the user name or password of its card{plain}: {ADMIN}.")
    if number in FULL:
        return ServiceDown(f"{where} has no free connection now: try again in a minute.")
    if number == NO_SUCH_SETTING:
        return ServiceDown(
            f"{where} is too old to limit a statement's time: MariaDB 10.1 and MySQL 5.7.8 are the first."
        )
    return _of_statement(number, error, access)


def _of_statement(number: int, error: BaseException, access: Access) -> ToolFailed:
    """Return what the server has against this statement alone."""
    if number in SLOW:
        seconds = f"{access.limits.statement_s:g} seconds"
        return ToolFailed(f"The statement took longer than {seconds} and was stopped: narrow it by WHERE.")
    if number in STOPPED:
        return ToolFailed("The statement was stopped at the server: try again, or narrow it.")
    if number in WRITES:
        return ToolFailed("The statement would change something, and only reading is allowed: use SELECT.")
    if number in NOT_ALLOWED:
        return _quoting("The database's account may not read that", error, "read something else")
    return _quoting("The database refused it", error, "correct the statement, or look with ae_db_describe")


def _quoting(what: str, error: BaseException, instead: str) -> ToolFailed:
    """A sentence with the server's own words, which may hold anybody's."""
    words = " ".join(str(error.args[-1] if error.args else error).split())[:WORDS_SHOWN].rstrip(".")
    return ToolFailed(f"{what}: {words or type(error).__name__}; {instead}.", is_tainted=True)


def _number(error: BaseException) -> int:
    first = error.args[0] if error.args else -1
    return first if isinstance(error, Error) and isinstance(first, int) else -1


def _certificate(refused: BaseException) -> str:
    for error in chain(refused):
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message
        if isinstance(error, ssl.SSLError):
            return "TLS failed"
    return ""
