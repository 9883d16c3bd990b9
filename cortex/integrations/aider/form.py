"""What an admin enters for the coding agent: which repositories it has, which model it asks, where its program is."""

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, Field, field_validator


class AiderForm(BaseModel):
    """The folders are git repositories on this machine."""

    repositories: tuple[str, ...] = Field(
        default=(),
        title="Repositories",
        description="Each as name=/folder, such as shop=/srv/shop. People call them by name; the agent works in clones "
        "of them.",
    )
    model: str = Field(
        default="",
        title="Model",
        description="A name on the Models page of the person who asks; empty: the model of the role coder. Its tokens "
        "count for that person.",
        max_length=100,
    )
    program: str = Field(
        default="",
        title="Program",
        description="Path to aider, in its own environment. Leave empty to search for it. `cortex tools install "
        "aider` creates one.",
        max_length=500,
    )
    timeout_s: float = Field(default=900.0, title="Seconds that a run may take", ge=10, le=7_200)

    @field_validator("program")
    @classmethod
    def _is_place(cls, text: str) -> str:
        if text and not Path(text).is_absolute():
            raise ValueError("write an absolute path, such as /srv/tools/aider")
        return text

    @field_validator("repositories")
    @classmethod
    def _are_pairs(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for one in given:
            name, sign, folder = one.partition("=")
            if not sign or not name.replace("-", "_").isidentifier() or not Path(folder).is_absolute():
                raise ValueError("write each as name=/folder")
        return given

    @property
    def folders(self) -> Mapping[str, str]:
        """The folder of each repository, by its name."""
        return {name: folder for name, _, folder in (one.partition("=") for one in self.repositories)}
