// Package crew starts the goroutines of an owner and waits for them, as sync.WaitGroup
// does. They begin with a function of ours: that is how the runtime of a program on Loam
// knows the kernel's goroutines from the program's, and those that WaitGroup.Go starts
// begin with one of sync's.
package crew

import "sync"

// Crew is the goroutines of one owner. The zero value has none, and must not be copied
// once it has.
type Crew struct{ wait sync.WaitGroup }

// Start starts a goroutine that calls loop. It must not be called while Wait waits for
// the last one.
func (c *Crew) Start(loop func()) {
	c.wait.Add(1)
	go func() {
		defer c.wait.Done()
		loop()
	}()
}

// Wait waits until all have ended.
func (c *Crew) Wait() { c.wait.Wait() }
