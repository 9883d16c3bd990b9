"""Ports of this machine that stay a test's own, whether somebody listens there just now or not."""

import socket
import weakref


def port_for(holder: object) -> int:
    """A port of 127.0.0.1 that nobody else is given as long as `holder` lives.

    A socket stays bound to it and never listens. Linux lets a server with SO_REUSEADDR listen on it all the same, and
    gives it to nobody who asks for any free port: not while a program that was killed starts again, nor between a
    choice and its use.
    """
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", 0))
    weakref.finalize(holder, bound.close)
    return int(bound.getsockname()[1])
