// Package crew starts the goroutines of an owner and waits for them, like sync.WaitGroup. The first function of such a
// goroutine belongs to this module. From the first function, the Go runtime of a program on Loam knows whether a
// goroutine belongs to Loam or to the program. A goroutine started by WaitGroup.Go begins with a function of package
// sync, so it would count as one of the program's.
package crew

import "sync"

// Crew is the set of goroutines of one owner. The zero value is empty. A Crew must not be copied after
// its first use.
type Crew struct{ wait sync.WaitGroup }

// Start starts a goroutine that calls loop. It must not be called while Wait waits for the last
// goroutine.
func (c *Crew) Start(loop func()) {
	c.wait.Add(1)
	go func() {
		defer c.wait.Done()
		loop()
	}()
}

// Wait waits until all goroutines have ended.
func (c *Crew) Wait() { c.wait.Wait() }
