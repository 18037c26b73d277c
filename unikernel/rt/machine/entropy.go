package machine

import (
	"errors"
	"sync"
	"syscall"
	"time"

	"loam/driver/rng"
	"loam/driver/virtio"
	"loam/kernel"
	"loam/kernel/device"
)

// The entropy device of the machine adds to the random numbers that the kernel makes. A
// processor that has a source of its own has seeded these before the program began, and
// then the device can wait until the program is up.

// When the device is asked: a time after the start, and then again and again.
const (
	feedDelay    = time.Second
	feedInterval = 5 * time.Minute
)

// openEntropy opens the device, once for all.
var openEntropy = sync.OnceValues(func() (*rng.Device, error) {
	d, err := hardware().find(virtio.Entropy, 0)
	if d == nil {
		return nil, errors.Join(err, syscall.ENXIO)
	}
	return rng.Open(d)
})

// seedRandom waits for the device where the processor has nothing.
func seedRandom() {
	if kernel.Seeded() {
		return
	}
	if d, err := openEntropy(); err == nil {
		feed(d)
	}
}

// feedRandom asks the device for ever, or as long as there is one that answers.
func feedRandom() {
	time.Sleep(feedDelay)
	d, err := openEntropy()
	for err == nil && feed(d) == nil {
		time.Sleep(feedInterval)
	}
}

// feed has the device give once.
func feed(d *rng.Device) error {
	var b [32]byte
	_, err := d.Read(b[:])
	if err == nil {
		device.Stir(b)
	}
	return err
}
