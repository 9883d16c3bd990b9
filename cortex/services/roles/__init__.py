"""Roles: what each may use, how many rounds, what people prefer."""
