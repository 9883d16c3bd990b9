"""How commands begin: settings, logging set up by them, and the database that several processes share."""

from cortex.base import private, versions
from cortex.base.errors import ConfigError
from cortex.base.log import SecretFilter, set_up
from cortex.base.settings import Settings, load_settings


def settings_in_force(*, is_looking: bool = False, is_serving: bool = False, follows: bool = True) -> Settings:
    """The settings, with logging set up by them. ConfigError for a wrong one, and for a HOME of another user.

    is_looking: for who only says what is wrong with HOME. follows: hand over to the version that was updated to, where
    there is one; is_serving: as the daemon, which counts its tries.
    """
    settings = load_settings()
    if not is_looking:
        private.own(settings.home)
    set_up(settings.log_level, SecretFilter(*settings.known_secrets))
    if follows and not settings.container:
        versions.follow(settings.home, is_serving=is_serving)
    return settings


def shared_database(settings: Settings) -> str:
    """The engine's database, which several processes can share; ConfigError where they cannot."""
    if not (settings.is_postgresql and settings.engine_database.startswith("postgres")):
        raise ConfigError(
            "CORTEX_DATABASE_URL: `cortex web` and `cortex worker` share a PostgreSQL database, so name one "
            "(postgresql://user:password@host/name). With SQLite, `cortex serve` does everything in one process."
        )
    return settings.engine_database
