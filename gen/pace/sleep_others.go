//go:build !linux

package pace

import "time"

// sleepUntil blocks the calling goroutine until a time of Now.
func sleepUntil(t int64) { time.Sleep(time.Duration(t - Now())) }

// Punctual does nothing on this system.
func Punctual() (undo func()) { return func() {} }
