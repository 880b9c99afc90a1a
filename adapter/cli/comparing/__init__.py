"""``leadtime diff``: what two policies say differently, and what that comes to on a history."""
