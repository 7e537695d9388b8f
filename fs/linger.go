package fs

import (
	"time"
)

const defaultLinger = 10 * time.Second
