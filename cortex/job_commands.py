"""`cortex jobs`: what the command line has about scheduled jobs. `preview` stands by itself in `job_preview.py`."""

from cortex.job_preview import jobs

__all__ = ["jobs"]
