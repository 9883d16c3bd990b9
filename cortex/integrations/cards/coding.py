"""The card of the coding agent."""

from cortex.integrations.aider.form import AiderForm
from cortex.integrations.aider.system import AiderSystem
from cortex.integrations.cards import IntegrationHost
from cortex.ports.integrations import IntegrationKind


def integration(host: IntegrationHost) -> IntegrationKind:
    """Return what its card says."""
    return IntegrationKind(
        name="coding",
        title="Coding agent",
        about="Changes code in clones of your repositories with aider. You review each diff before it is merged.",
        order=100,
        note="Admins only. It runs in the sandbox without network access: Cortex calls the model for it, "
        "within the budget of the person who started it.",
        ports=("CodingAgent", "AllowedFolders"),
        form=AiderForm,
        open=lambda form, _: AiderSystem(form, host.aider),
        more="/admin/coding",
        more_label="Runs and folders",
        more_of_all="Runs and folders",
    )
