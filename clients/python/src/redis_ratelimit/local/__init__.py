"""Answers without a round trip: tokens taken ahead, and a share of a limit while the server does not answer."""
