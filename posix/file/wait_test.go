package file

import (
	"testing"
	"testing/synctest"
	"time"
)

// A wait ends by its event, by its time, or by an interrupt, whichever comes first. Task.Asleep is called once with
// true when the wait begins, and once with false when it ends.
func TestWait(t *testing.T) {
	const never = 1000
	for name, c := range map[string]struct {
		event, most, interrupt time.Duration // seconds since the beginning of the wait; negative: does not happen
		want                   End
		after                  time.Duration
	}{
		"event":                        {1, -1, -1, Occurred, 1},
		"event before the time":        {1, 2, -1, Occurred, 1},
		"event before the interrupt":   {1, 3, 2, Occurred, 1},
		"time":                         {-1, 2, -1, Late, 2},
		"time before the event":        {3, 2, -1, Late, 2},
		"time before the interrupt":    {-1, 2, 3, Late, 2},
		"no time":                      {-1, 0, -1, Late, 0},
		"interrupt":                    {-1, -1, 2, Interrupted, 2},
		"interrupt before the time":    {-1, 3, 2, Interrupted, 2},
		"interrupt before the event":   {3, never, 2, Interrupted, 2},
		"event of a task without time": {2, -1, never, Occurred, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var accounts []bool
				event, interrupt := make(chan struct{}), NewInterrupt()
				task := Task{Asleep: func(on bool) { accounts = append(accounts, on) }}
				if c.interrupt >= 0 {
					task.Interrupt = interrupt
					go func() { time.Sleep(c.interrupt * time.Second); interrupt.Raise() }()
				}
				if c.event >= 0 {
					go func() { time.Sleep(c.event * time.Second); close(event) }()
				}
				began := time.Now()
				if got := task.WaitFor(event, c.most*time.Second); got != c.want || time.Since(began) != c.after*time.Second {
					t.Errorf("it ended by %d after %v, want %d after %v", got, time.Since(began), c.want, c.after*time.Second)
				}
				if len(accounts) != 2 || !accounts[0] || accounts[1] {
					t.Errorf("accounted: %v", accounts)
				}
				time.Sleep(never * time.Second) // sleeps until the other goroutines have ended
			})
		})
	}
}

// An interrupt that a wait does not use ends the next wait.
func TestInterruptIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		interrupt, event := NewInterrupt(), make(chan struct{})
		task := Task{Interrupt: interrupt}
		go func() { time.Sleep(2 * time.Second); interrupt.Raise() }()
		go func() { time.Sleep(time.Second); close(event) }()
		if got := task.Wait(event, nil); got != Occurred {
			t.Errorf("the first wait ended by %d", got)
		}
		time.Sleep(2 * time.Second)
		if got := task.Wait(nil, nil); got != Interrupted {
			t.Errorf("the second wait ended by %d", got)
		}
	})
}
