package machine

import (
	"errors"
	"sync"
	"time"

	"loam/abi/linux"
	"loam/driver/rng"
	"loam/driver/virtio"
	"loam/kernel"
	"loam/kernel/device"
)

// The machine's entropy device adds to the kernel's random numbers. If the processor has a random source,
// the kernel is already seeded before the program starts. The device is then read only after the start.

// The entropy device is first read feedDelay after the start, then every feedInterval.
const (
	feedDelay    = time.Second
	feedInterval = 5 * time.Minute
)

// openEntropy opens the device, once.
var openEntropy = sync.OnceValues(func() (*rng.Device, error) {
	d, err := hardware().find(virtio.Entropy, 0)
	if d == nil {
		return nil, errors.Join(err, linux.ENXIO)
	}
	return rng.Open(d)
})

// seedRandom reads the device before the program starts, if the kernel is not seeded yet.
func seedRandom() {
	if kernel.Seeded() {
		return
	}
	if d, err := openEntropy(); err == nil {
		feed(d)
	}
}

// feedRandom reads the device periodically, until it fails or if there is none.
func feedRandom() {
	time.Sleep(feedDelay)
	d, err := openEntropy()
	for err == nil && feed(d) == nil {
		time.Sleep(feedInterval)
	}
}

// feed reads the device once and adds the bytes to the kernel's random state.
func feed(d *rng.Device) error {
	var b [32]byte
	_, err := d.Read(b[:])
	if err == nil {
		device.Stir(b)
	}
	return err
}
