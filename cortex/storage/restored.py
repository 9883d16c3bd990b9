"""What of a backup must not be in force again once it is put back: what was ended, used or sent since it was made.

Only `services/backup` runs it, in the tables of a backup, before anything else reads them.
"""

RESTORED, RESTORED_UNSIGNED = "backup.restored", "backup.restored_unsigned"  # rows of the audit log

# Plain SQL, for sqlite3 and psql alike; the tables are those of the backup's revision.
AT_AN_END = (
    "DELETE FROM logins",  # who logged out, or was shut out, since then stays out: everybody logs in again
    "DELETE FROM setup_links",
    "DELETE FROM action_links",
    "DELETE FROM grants",
    "UPDATE approvals SET state = 'expired' WHERE state IN ('asked', 'allowed')",
    "UPDATE deliveries SET state = 'dropped', next_at = NULL, ended_at = CURRENT_TIMESTAMP, "
    "error = 'A backup was put back; this was sent already, or is out of date.' "
    "WHERE state IN ('pending', 'attempting')",
)
# Where the secret key is another one, nothing can open them, and no server starts while none of its secrets opens.
SEALED = ("DELETE FROM secrets", "DELETE FROM house_secrets")
ACCOUNTS = "SELECT name, rank FROM accounts ORDER BY name"
