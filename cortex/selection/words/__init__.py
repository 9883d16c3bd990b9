"""Words and sentences as selection reads them: cut, mended, what they mean and how they are meant. Knows no tool."""
