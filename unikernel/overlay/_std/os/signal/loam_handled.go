package signal

import (
	"os"
	_ "unsafe" // for go:linkname
)

// loamHandled reports whether a channel other than c receives a signal.
//
//go:linkname loamHandled
func loamHandled(c chan<- os.Signal, number int) bool {
	handlers.Lock()
	defer handlers.Unlock()
	for other, h := range handlers.m {
		if other != c && h.want(number) {
			return true
		}
	}
	return false
}
