// Package work is something to compute that goes wrong when registers or memory do: a
// machine and who looks after it both do it, and compare.
package work

import (
	"math"
	"sync"
)

// Sum has several goroutines compute with floating-point numbers in memory that the collector
// takes back soon, and adds up what they found. It depends on seed alone.
func Sum(seed int) float64 {
	const workers, rounds, numbers = 4, 20, 4096
	var sums [workers]float64
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			for round := range rounds {
				all := make([]float64, numbers)
				for i := range all {
					all[i] = math.Sqrt(float64(seed+w+round*numbers+i)) * math.Pi
				}
				for _, x := range all {
					sums[w] += x / float64(round+1)
				}
			}
		})
	}
	wait.Wait()
	sum := 0.0
	for _, s := range sums {
		sum += s
	}
	return sum
}
