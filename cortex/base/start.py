"""How commands begin: settings, logging set up by them, and the database that several processes share."""

from cortex.base import private
from cortex.base.errors import ConfigError
from cortex.base.log import SecretFilter, set_up
from cortex.base.settings import Settings, load_settings


def settings_in_force(*, is_looking: bool = False) -> Settings:
    """The settings, with logging set up by them. ConfigError for a wrong one, and for a HOME of another user.

    is_looking: for who only says what is wrong with HOME.
    """
    settings = load_settings()
    if not is_looking:
        private.own(settings.home)
    set_up(settings.log_level, SecretFilter(*settings.known_secrets))
    return settings


def shared_database(settings: Settings) -> str:
    """The engine's database, which several processes can share; ConfigError where they cannot."""
    if not (settings.is_postgresql and settings.engine_database.startswith("postgres")):
        raise ConfigError(
            "CORTEX_DATABASE_URL: `cortex web` and `cortex worker` share a PostgreSQL database, so name one "
            "(postgresql://user:password@host/name). With SQLite, `cortex serve` does everything in one process."
        )
    return settings.engine_database
