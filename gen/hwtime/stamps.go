//go:build linux

package hwtime

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ErrNone is wrapped by the error of Open for a device without a usable clock.
var ErrNone = errors.New("the device takes no times of frames by itself")

// Stamps provides the receive times of a device. It is not safe for concurrent use.
type Stamps struct {
	device device
	before unix.HwTstampConfig // the device's earlier configuration, which Close restores
	clock  Clock
}

// device gives access to a network device and its clock.
type device interface {
	// abilities returns the frame kinds that the device can time stamp, as bits of HWTSTAMP_FILTER_*, and whether
	// its clock can be read.
	abilities() (filters uint32, clock bool, err error)
	config() (unix.HwTstampConfig, error)
	configure(unix.HwTstampConfig) error
	sample() (Sample, error)
	close() error
}

// Open makes the device of an interface time stamp every received frame until Close. Open and Close need
// CAP_NET_ADMIN. If the process is killed, time stamping stays enabled, which has no effect on other programs.
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

// start enables time stamps for all received frames and takes the first sample. On error it restores the device's
// configuration.
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

// System converts the device time t of a frame that has just been received to system time. If the device's clock can no
// longer be read, the conversion continues with the last known drift.
func (s *Stamps) System(t int64) int64 {
	if s.clock.Stale(t) {
		if now, err := s.device.sample(); err == nil {
			s.clock.Add(now)
		}
	}
	return s.clock.System(t)
}

// Close restores the earlier time stamp configuration of the device.
func (s *Stamps) Close() error {
	return errors.Join(s.device.configure(s.before), s.device.close())
}
