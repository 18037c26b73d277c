// Package hwtime reads the times at which a network device saw frames, by the device's
// own clock, and gives them by the clock of this machine.
//
// Read clock.go (the arithmetic), stamps.go (switching it on and off), device.go (the
// system calls).
package hwtime

import "time"

// Sample is one moment by both clocks, in nanoseconds since 1970, or, for the device,
// since whenever.
type Sample struct{ Device, System int64 }

// Clock turns the device's times into the system's. The two go at rates that differ by
// some parts in a million, so it wants a new Sample now and then: see Stale. Before the
// first one it gives times back as they are.
type Clock struct {
	last  Sample
	drift float64 // by how much the system's clock is faster: nanoseconds in one
	known bool    // there was a sample
}

// resample is for how long a sample is good: at a drift that is known to a part in a
// million, the error is then a microsecond.
const resample = time.Second

// maxDrift is what the rates of two clocks can differ by: beyond, one of them was set.
const maxDrift = 1e-3

// Stale reports whether a frame that was seen at device time t wants a new sample.
func (c *Clock) Stale(t int64) bool {
	return !c.known || t-c.last.Device > int64(resample)
}

// Add takes in a sample, later than the one before.
func (c *Clock) Add(s Sample) {
	if c.known && s.Device > c.last.Device {
		device, system := float64(s.Device-c.last.Device), float64(s.System-c.last.System)
		c.drift = system/device - 1
		if c.drift > maxDrift || c.drift < -maxDrift {
			c.drift = 0
		}
	}
	c.last, c.known = s, true
}

// System is the system's time at the device's time t.
func (c *Clock) System(t int64) int64 {
	if !c.known {
		return t
	}
	since := t - c.last.Device
	return c.last.System + since + int64(float64(since)*c.drift)
}
