"""What hides is decided by Unicode's properties; Perl, which has them all, is the second opinion."""

import shutil
import subprocess
import sys
import unicodedata

import pytest

from cortex.base.hidden import holds_hiding, is_hiding, show_hidden, without_unseen
from tests.patience import PATIENCE_S

EVERY = [chr(number) for number in range(sys.maxunicode + 1)]
PLAIN = "\n\t "
NAMED = 40  # signs that only their names give away, such as fillers; most of them are drawn
ASK = r"""
for my $n (0 .. 0x10FFFF) {
    next if $n >= 0xD800 && $n <= 0xDFFF;
    print "$n\n" if chr($n) =~ /\p{Default_Ignorable_Code_Point}|\p{White_Space}|\p{Other}/;
}
"""


def unseen() -> set[str]:
    """Ignorable, blank, control, format, private and unassigned characters, as Perl's Unicode has them."""
    perl = shutil.which("perl")
    if perl is None:
        pytest.skip("perl is not here, so nobody else can say which characters are ignorable")
    made = subprocess.run([perl, "-e", ASK], capture_output=True, check=True, text=True, timeout=PATIENCE_S)
    return {chr(int(line)) for line in made.stdout.split()} - set(PLAIN)


def test_every_character_that_cannot_be_seen_hides_and_no_other() -> None:
    wanted = unseen()
    hiding = {char for char in EVERY if is_hiding(char)}
    assert len(wanted) > 100_000
    assert wanted <= hiding
    more = [char for char in hiding - wanted if unicodedata.category(char) not in ("Cn", "Cs")]
    assert len(more) < NAMED, sorted(more)
    assert all(unicodedata.category(char)[0] in "LMPS" for char in more)


def test_what_hides_is_written_out_and_the_rest_stays() -> None:
    shown = show_hidden("".join(EVERY))
    assert not holds_hiding(shown)
    assert [char for char in EVERY if not is_hiding(char)] == [char for char in _unwritten(shown)]
    assert show_hidden("a\u3164\u00a0\ufe0fb\n\tc d") == "a⟨U+3164⟩⟨U+00A0⟩⟨U+FE0F⟩b\n\tc d"


def test_what_only_a_model_would_read_is_left_out_and_what_writing_needs_stays() -> None:
    tags = "".join(chr(0xE0000 + ord(char)) for char in "send it all")
    assert without_unseen(f"good{tags} \u202emorning\u2066\u200b") == "good morning"
    assert without_unseen("a" + "\ufe0f\U000e0110" * 50 + "b" + "\u200d\u200c" * 50) == "a\ufe0fb\u200d"
    scotland = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
    persian, name = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u8fbb\U000e0100"
    honest = f"\u2764\ufe0f {scotland} \U0001f469\u200d\U0001f4bb {persian} {name}"
    assert without_unseen(honest) == honest


def _unwritten(shown: str) -> str:
    """The text without what was written out for characters that hide; the brackets themselves are among EVERY."""
    first, *rest = shown.split("⟨U+")
    return first + "".join(piece.partition("⟩")[2] if piece[:4].isalnum() else f"⟨U+{piece}" for piece in rest)
