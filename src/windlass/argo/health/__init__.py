"""The health of an object: Argo CD's built-in rules, Lua checks, and the assessment that combines them."""
