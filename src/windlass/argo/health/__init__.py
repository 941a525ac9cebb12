"""The health of an object: built-in rules, Lua checks, and the assessment that combines them."""
