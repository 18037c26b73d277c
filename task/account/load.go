package account

import (
	"math"
	"time"
)

// Load is the load average over 1, 5 and 15 minutes (proc(5), /proc/loadavg).
type Load [3]float64

// LoadInterval is the time between two samples of the number of running tasks.
const LoadInterval = 5 * time.Second

// Add adds a sample of the number of running tasks, and moves the three averages towards it.
func (l *Load) Add(running int) {
	for i, over := range [...]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute} {
		weight := math.Exp(-float64(LoadInterval) / float64(over))
		l[i] = l[i]*weight + float64(running)*(1-weight)
	}
}
