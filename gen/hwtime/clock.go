// Package hwtime reads the times at which a network device received frames, measured by the device's own clock, and
// converts them to this machine's clock.
//
// Reading order: clock.go (the conversion), stamps.go (enabling and disabling), device.go (the system calls).
package hwtime

import "time"

// Sample is one moment in the time of both clocks, in nanoseconds. System counts from 1970, Device from an arbitrary
// start.
type Sample struct{ Device, System int64 }

// Clock converts the device's time to the system's time. The rates of the two clocks differ by some parts per million.
// So a Clock regularly needs a new Sample: see Stale. Before the first Sample it returns times unchanged.
type Clock struct {
	last  Sample
	drift float64 // relative rate error: nanoseconds that the system's clock gains per nanosecond
	known bool    // the Clock has had a Sample
}

// resample is the maximum age of a sample. If the drift is known to one part per million, the error at this age is one
// microsecond.
const resample = time.Second

// maxDrift is the largest plausible drift. A larger value means that one of the clocks was set.
const maxDrift = 1e-3

// Stale reports whether a new sample is needed to convert t, the device time at which a frame was received.
func (c *Clock) Stale(t int64) bool {
	return !c.known || t-c.last.Device > int64(resample)
}

// Add adds a sample, which must be later than the previous one.
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

// System converts device time t to system time.
func (c *Clock) System(t int64) int64 {
	if !c.known {
		return t
	}
	since := t - c.last.Device
	return c.last.System + since + int64(float64(since)*c.drift)
}
