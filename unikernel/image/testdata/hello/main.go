// Command hello is an ordinary Linux program, built without Loam. It uses threads, memory and the garbage collector,
// and prints its arguments and environment.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
)

type list struct {
	next *list
	n    int
}

func main() {
	var wg sync.WaitGroup
	sums := make([]int, 4)
	for i := range sums {
		wg.Go(func() {
			var head *list
			for n := range 20000 {
				head = &list{head, n}
				if n%5000 == 0 {
					runtime.GC()
				}
			}
			for l := head; l != nil; l = l.next {
				sums[i] += l.n
			}
		})
	}
	wg.Wait()
	fmt.Println("hello from ring 3", os.Args, sums)
	os.Exit(42)
}
