# Python runs this as it starts: random names are the same each time.
import random

random.seed(1)
