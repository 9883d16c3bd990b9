"""How every command begins: settings, and logging set up by them."""

from cortex.base.log import Blotter, set_up
from cortex.base.settings import Settings, load_settings


def settings_in_force() -> Settings:
    """The settings, with logging set up by them. ConfigError for a wrong one."""
    settings = load_settings()
    set_up(settings.log_level, Blotter(*settings.known_secrets))
    return settings
