"""The backend for the library `limits`."""
