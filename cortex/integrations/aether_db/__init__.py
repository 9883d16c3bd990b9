"""MariaDB or MySQL to be read only three times over: the account, the transaction, and a guard over each statement."""
