"""Tables and files: the only floor that writes queries or touches a user's folder."""
