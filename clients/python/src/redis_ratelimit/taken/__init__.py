"""What was taken and must end: leases, holds, endings that are repeated, renewals, closing."""
