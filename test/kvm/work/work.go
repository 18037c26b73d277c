// Package work is a computation that goes wrong if registers or memory are corrupted. A machine and the
// process that checks it both run it, and the results are compared.
package work

import (
	"math"
	"sync"
)

// Sum computes with floating-point numbers on several goroutines, in short-lived memory, and returns
// the total. The result depends only on seed.
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
