"""Where admins and people change how tools are chosen and try it out."""
