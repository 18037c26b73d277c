package user

import (
	"testing"

	"loam/kernel"
)

// A thread that enters ring 3 has the interrupts served that have arrived; otherwise they would wait until the thread is preempted.
func TestInterruptIsServed(t *testing.T) {
	defer func() { kernel.Rung, served = 0, 0 }()
	c := &Context{page: new(page)}
	c.Enter()
	if served != 0 {
		t.Errorf("without an interrupt, interrupts are served %d times", served)
	}
	kernel.Rung = 1
	if c.Run(); served != 1 {
		t.Errorf("with an interrupt, interrupts are served %d times", served)
	}
}
