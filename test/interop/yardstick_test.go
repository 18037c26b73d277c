//go:build linux

package interop

import (
	"testing"
	"time"
)

// TestFaultyYardstick sends the same stream over the same faults from Loam and from Linux, both to Linux, and logs
// the ratio of the times. It checks only that the streams arrive; the rates are only printed, with -v.
func TestFaultyYardstick(t *testing.T) {
	for i, v := range faultVariants {
		t.Run(v.name, func(t *testing.T) {
			size := scale(min(v.size, 64), quickSize) << 20
			v.setup.wrap = faulty(uint64(10 + i))
			loam := sendingTime(newLab(t, v.setup), size)
			linux := sendingTime(newLinuxLab(t, v.setup), size)
			t.Logf("%d MiB: Loam %v, Linux %v, ratio of speeds %.2f", size>>20, loam, linux, linux.Seconds()/loam.Seconds())
		})
	}
}

// sendingTime returns the time that a stream takes from the host whose link drops and delays packets.
func sendingTime(l *lab, size int) time.Duration {
	l.Helper()
	streamHash(size)
	client, server := l.connect(direction{l.loam, l.linux})
	began := time.Now()
	l.must(transfer(client, server, size))
	return time.Since(began).Round(time.Millisecond)
}
