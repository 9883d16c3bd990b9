"""Who people are: accounts, logins, passwords."""
