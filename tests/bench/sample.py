"""An answer as models write them, with everything that markdown brings, for the measures that need text."""

ANSWER = """## Night of the 20th

All **four** jobs ran; one of them had to try twice. The backup took longer than usual because the `photos` folder grew
by 2.1 GB, most of it from the phone.

| job | began | took | state |
|---|---|--:|---|
| backup | 02:00 | 41 min | good |
| mail digest | 06:30 | 12 s | good |
| prices | 06:45 | 3 s | second try |
| report | 07:00 | 9 s | good |

1. The first try of *prices* met a time limit; the second one, five minutes later, was answered at once.
2. Nothing is left to do. If it happens again, raise the limit:
   - in the job's own settings, or
   - for all of them at once.

```python
def next_try(count: int, first_s: float = 60.0) -> float:
    \"\"\"How long to wait before the next try.\"\"\"
    return min(first_s * 2**count, 3600.0)
```

More about it stands in [the guide](https://example.org/guide), in the part about limits.

"""
