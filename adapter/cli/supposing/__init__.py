"""``leadtime whatif``: numbers that somebody supposes, and what the loop decides on them."""
