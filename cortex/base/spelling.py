"""How alike words and names are spelt: slips of the keys, Jaro-Winkler, shared words. Pure Python, no table.

The figures are those of the textbook definitions, to the last bit, so that what was fitted on them goes on to hold.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

PREFIX_LETTERS, PREFIX_WEIGHT, PREFIX_LEAST = 4, 0.1, 0.7
ROUNDING = 1e-9


def slips(one: str, other: str) -> int:
    """The fewest letters changed, added, left out or swapped with their neighbour (Damerau-Levenshtein, Zhao 2019)."""
    start, end = _shared(one, other)
    one, other = one[start : len(one) - end], other[start : len(other) - end]
    if not one or not other:
        return len(one) + len(other)
    width, most = len(other), max(len(one), len(other)) + 1
    kept, before = [most] * (width + 2), [most] * (width + 2)
    row: list[int] = [*range(width + 1), most]
    rows: dict[str, int] = {}
    for i, letter in enumerate(one, 1):
        row, before = before, row
        column, left_above, swap, row[0] = -1, row[0], most, i
        for j, second in enumerate(other, 1):
            least = min(before[j - 1] + (letter != second), row[j - 1] + 1, before[j] + 1)
            if letter == second:
                column, kept[j], swap = j, before[j - 2], left_above
            elif j - column == 1:
                least = min(least, kept[j] + i - rows.get(second, -1))
            elif i - rows.get(second, -1) == 1:
                least = min(least, swap + j - column)
            left_above, row[j] = row[j], least
        rows[letter] = i
    return row[width]


def first_slip(one: str, others: Sequence[str], most: int = 1) -> str:
    """Of the others, a letter longer or shorter at most, the first with the fewest slips, up to `most`; "" for none."""
    letters, found, fewest = set(one), "", most + 1
    for other in others:
        if abs(len(other) - len(one)) <= 1 and len(letters.difference(other)) < fewest:
            count = slips(one, other)
            if count < fewest:
                found, fewest = other, count
                if not count:
                    break
    return found


def likeness(one: str, other: str) -> float:
    """From 0 to 1; a common beginning counts more (Jaro-Winkler)."""
    spelt = _jaro(one, other)
    if spelt <= PREFIX_LEAST:
        return spelt
    return min(spelt + _prefix(one, other) * PREFIX_WEIGHT * (1.0 - spelt), 1.0)


def alike(one: str, others: Iterable[str], least: float) -> Iterator[str]:
    """Those of the others whose likeness is at least this, in their order.

    Of ten thousand names nearly all are too long, too short, or of other letters: seen far sooner than how alike.
    """
    counts = Counter(one)
    for other in others:
        prefix = _prefix(one, other) * PREFIX_WEIGHT
        lengths = len(one), len(other)
        # What of the letters the other must have, were all that both have in order: from the definition of `_jaro`.
        met = 3.0 * (least - prefix) / (1.0 - prefix) - 1.0 - ROUNDING
        if lengths[0] and min(lengths) / max(lengths) + 1.0 < met:
            continue
        both = sum(min(count, other.count(letter)) for letter, count in counts.items())
        if (not both or both / lengths[0] + both / lengths[1] >= met) and likeness(one, other) >= least:
            yield other


def closest(one: str, others: Sequence[str], least: float) -> str:
    """The most alike of the others, the first of equals; "" when none is alike by more than `least`."""
    found = max(others, key=lambda other: likeness(one, other), default="")
    return found if likeness(one, found) > least + ROUNDING else ""


def shared_words(one: str, other: str) -> float:
    """From 0 to 100 by the words that both have and how alike the rest is, in any order (token set ratio)."""
    first, second = set(one.split()), set(other.split())
    both = first & second
    if not first or not second:
        return 0.0
    if both and (first == both or second == both):
        return 100.0
    rest, other_rest = " ".join(sorted(first - both)), " ".join(sorted(second - both))
    common = len(" ".join(both))
    blank = bool(common)
    length, other_length = common + blank + len(rest), common + blank + len(other_rest)
    apart = len(rest) + len(other_rest) - 2 * _in_order(rest, other_rest)
    best = _share(apart, length + other_length)
    if not common:
        return best
    return max(
        best,
        _share(blank + len(rest), common + length),
        _share(blank + len(other_rest), common + other_length),
    )


def best_of(scored: Iterable[tuple[float, str]], most: int, least: float) -> tuple[str, ...]:
    """Return the `most` that score highest, at least `least`: the best first, equals in their order."""
    fitting = sorted((pair for pair in scored if pair[0] >= least), key=lambda pair: -pair[0])
    return tuple(name for _, name in fitting[:most])


def _shared(one: str, other: str) -> tuple[int, int]:
    """Count the letters that both begin with, and those of the rest that they end with."""
    most, start, end = min(len(one), len(other)), 0, 0
    while start < most and one[start] == other[start]:
        start += 1
    while end < most - start and one[-1 - end] == other[-1 - end]:
        end += 1
    return start, end


def _prefix(one: str, other: str) -> int:
    """Count the letters that both begin with, as far as they tell."""
    prefix = 0
    for first, second in zip(one[:PREFIX_LETTERS], other, strict=False):
        if first != second:
            break
        prefix += 1
    return prefix


def _jaro(one: str, other: str) -> float:
    """The letters found in the other near the same place, and how many of them are out of order."""
    if not one or not other:
        return float(one == other)
    if len(one) == 1 == len(other):
        return float(one == other)
    reach = max(len(one), len(other)) // 2 - 1
    free, met, places = list(other), [], []
    for at, letter in enumerate(one):
        try:
            place = free.index(letter, max(0, at - reach), at + reach + 1)
        except ValueError:
            continue
        free[place] = ""
        met.append(letter)
        places.append(place)
    if not met:
        return 0.0
    count = len(met)
    swapped = sum(letter != other[place] for letter, place in zip(met, sorted(places), strict=True)) // 2
    return (count / len(one) + count / len(other) + (count - swapped) / count) / 3.0


def _in_order(one: str, other: str) -> int:
    """The length of the longest subsequence that both have, all of a row at once in the bits of an int (Hyyrö 2004)."""
    at: dict[str, int] = {}
    for place, letter in enumerate(one):
        at[letter] = at.get(letter, 0) | 1 << place
    full = (1 << len(one)) - 1
    row = full
    for letter in other:
        met = row & at.get(letter, 0)
        row = (row + met | row - met) & full
    return len(one) - row.bit_count()


def _share(apart: int, length: int) -> float:
    return 100.0 - 100.0 * apart / length if length else 100.0
