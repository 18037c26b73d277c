// Command profile serves profiles of itself. It computes in one function, keeps memory that a second has allocated, and
// has a goroutine that blocks in a third.
package main

import (
	"net/http"
	_ "net/http/pprof"
	"os"

	"example.com/guest/internal/check"
)

func main() {
	hoard()
	go wait(make(chan int))
	go func() {
		for {
			hot()
		}
	}()
	http.HandleFunc("/quit", func(http.ResponseWriter, *http.Request) { os.Exit(0) })
	check.Nil(http.ListenAndServe(":80", nil), "serve")
}

var (
	sum  uint64
	kept [][]byte
)

// hot uses most of the CPU time.
//
//go:noinline
func hot() {
	for i := range uint64(1 << 20) {
		sum = sum*31 + i
	}
}

// hoard allocates most of the memory.
//
//go:noinline
func hoard() {
	for range 32 {
		kept = append(kept, make([]byte, 1<<20))
	}
}

// wait blocks for ever.
//
//go:noinline
func wait(c chan int) { <-c }
