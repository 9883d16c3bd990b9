"""Encrypts a stream under a passphrase, so that a change, a cut and a wrong order of its pieces are all noticed.

Key: scrypt (RFC 7914). Stream: AES-256-GCM over pieces of 64 KiB whose nonce is a random prefix, the piece's number and
a mark on the last one (STREAM: Hoang, Reyhanitabar, Rogaway, Vizár 2015). Loaded late: cryptography weighs 7 MB.
"""

import io
import os
from typing import BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from cortex.base.errors import UserError

MAGIC = b"cortex-backup-1\n"
COST = 16  # scrypt's N as a power of two: 64 MB and about 0.2 s a try
SALT_BYTES, PREFIX_BYTES, TAG_BYTES = 16, 7, 16
HEADER_BYTES = len(MAGIC) + SALT_BYTES + PREFIX_BYTES
PIECE_BYTES = 65_536
LAST_PIECE = 2**32 - 1


def is_sealed(path: "os.PathLike[str]") -> bool:
    """Tell whether the file begins as one that this module wrote."""
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


class SealingWriter(io.RawIOBase):
    """Writes what it is given, encrypted, to `file`. Nothing is whole before `close`, which leaves `file` open."""

    def __init__(self, file: BinaryIO, passphrase: str) -> None:
        header = MAGIC + os.urandom(SALT_BYTES + PREFIX_BYTES)
        self._stream = _Stream(header, passphrase)
        self._file = file
        self._waiting = bytearray()
        file.write(header)

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: object) -> int:
        """Take the bytes; whole pieces go on to the file, and the last one stays until it is known to be the last."""
        given = memoryview(data).cast("B")  # type: ignore[arg-type]  # io types it as any buffer
        self._waiting += given
        while len(self._waiting) > PIECE_BYTES:
            self._file.write(self._stream.seal(bytes(self._waiting[:PIECE_BYTES]), is_last=False))
            del self._waiting[:PIECE_BYTES]
        return len(given)

    def close(self) -> None:
        """Write the last piece."""
        if not self.closed:
            self._file.write(self._stream.seal(bytes(self._waiting), is_last=True))
        super().close()


class OpeningReader(io.RawIOBase):
    """Reads what `SealingWriter` wrote. UserError for a wrong passphrase and for a file that is cut or changed."""

    def __init__(self, file: BinaryIO, passphrase: str) -> None:
        header = file.read(HEADER_BYTES)
        if len(header) < HEADER_BYTES or not header.startswith(MAGIC):
            raise UserError("This is not an encrypted Cortex backup, or only the first part of one.")
        self._stream = _Stream(header, passphrase)
        self._file = file
        self._ahead = file.read(PIECE_BYTES + TAG_BYTES)
        self._open = b""
        self._is_first = True

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill the buffer as far as one piece goes; 0 at the true end alone."""
        target = memoryview(buffer).cast("B")  # type: ignore[arg-type]  # io types it as any buffer
        while not self._open and (self._ahead or self._is_first):
            self._open = self._next()
        given, self._open = self._open[: len(target)], self._open[len(target) :]
        target[: len(given)] = given
        return len(given)

    def _next(self) -> bytes:
        piece, self._ahead = self._ahead, self._file.read(PIECE_BYTES + TAG_BYTES)
        try:
            text = self._stream.unseal(piece, is_last=not self._ahead)
        except InvalidTag:
            if self._is_first:
                raise UserError("The passphrase is wrong, or the beginning of the file is damaged.") from None
            raise UserError("The backup is damaged: a part of it is changed or missing.") from None
        self._is_first = False
        return text


class _Stream:
    """The cipher of one file and the number of the next piece."""

    def __init__(self, header: bytes, passphrase: str) -> None:
        salt = header[len(MAGIC) : len(MAGIC) + SALT_BYTES]
        key = Scrypt(salt=salt, length=32, n=2**COST, r=8, p=1).derive(passphrase.encode())
        self._cipher, self._header, self._number = AESGCM(key), header, 0

    def seal(self, data: bytes, *, is_last: bool) -> bytes:
        return self._cipher.encrypt(self._nonce(is_last=is_last), data, self._header)

    def unseal(self, data: bytes, *, is_last: bool) -> bytes:
        return self._cipher.decrypt(self._nonce(is_last=is_last), data, self._header)

    def _nonce(self, *, is_last: bool) -> bytes:
        if self._number > LAST_PIECE:
            raise UserError("A backup holds at most 256 TB.")
        number = self._number.to_bytes(4, "big")
        self._number += 1
        return self._header[-PREFIX_BYTES:] + number + bytes([is_last])
