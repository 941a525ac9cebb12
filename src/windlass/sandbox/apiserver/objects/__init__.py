"""The rules for one object: kinds, schemas, defaults, validation, admission, patches, managed fields."""
