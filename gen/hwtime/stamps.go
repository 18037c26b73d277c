//go:build linux

package hwtime

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ErrNone is in the error of Open for a device without such a clock.
var ErrNone = errors.New("the device takes no times of frames by itself")

// Stamps are the times of a device. They are used by one goroutine.
type Stamps struct {
	device device
	before unix.HwTstampConfig // what Close puts back
	clock  Clock
}

// device is what is asked of a device.
type device interface {
	// filters are the kinds of frames that it takes the time of, as bits of
	// HWTSTAMP_FILTER_*; clock tells whether its clock can be read.
	abilities() (filters uint32, clock bool, err error)
	config() (unix.HwTstampConfig, error)
	configure(unix.HwTstampConfig) error
	sample() (Sample, error)
	close() error
}

// Open has the device of an interface take the time of each frame that it receives,
// from now until Close. It needs CAP_NET_ADMIN, and so does Close. A process that is
// killed leaves it switched on, which nobody else notices.
func Open(name string) (*Stamps, error) {
	d, err := openDevice(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s, err := start(d)
	if err != nil {
		d.close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

func start(d device) (*Stamps, error) {
	filters, clock, err := d.abilities()
	if err != nil {
		return nil, err
	}
	if filters&(1<<unix.HWTSTAMP_FILTER_ALL) == 0 || !clock {
		return nil, ErrNone
	}
	s := &Stamps{device: d}
	if s.before, err = d.config(); err != nil {
		return nil, err
	}
	wanted := s.before
	wanted.Rx_filter = unix.HWTSTAMP_FILTER_ALL
	if err := d.configure(wanted); err != nil {
		return nil, err
	}
	first, err := d.sample()
	if err != nil {
		return nil, errors.Join(err, d.configure(s.before))
	}
	s.clock.Add(first)
	return s, nil
}

// System is the system's time at the device's time t, which is that of a frame which
// has just come. Where the device's clock cannot be read any more, it goes on by what
// is known of it.
func (s *Stamps) System(t int64) int64 {
	if s.clock.Stale(t) {
		if now, err := s.device.sample(); err == nil {
			s.clock.Add(now)
		}
	}
	return s.clock.System(t)
}

// Close leaves the device as it was.
func (s *Stamps) Close() error {
	return errors.Join(s.device.configure(s.before), s.device.close())
}
