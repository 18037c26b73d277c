// Command profile serves profiles of itself: it is busy in one function, keeps
// what another has allocated, and has a goroutine that waits in a third.
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

// hot is where the time goes.
//
//go:noinline
func hot() {
	for i := range uint64(1 << 20) {
		sum = sum*31 + i
	}
}

// hoard is where the memory goes.
//
//go:noinline
func hoard() {
	for range 32 {
		kept = append(kept, make([]byte, 1<<20))
	}
}

// wait waits for ever.
//
//go:noinline
func wait(c chan int) { <-c }
