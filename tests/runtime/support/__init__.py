"""What the tests run against: a real API server, and a proxy with faults in front of it."""
