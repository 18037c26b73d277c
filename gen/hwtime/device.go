//go:build linux

package hwtime

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// linuxDevice is a Linux network interface and its clock, which is a character device
// (Documentation/networking/timestamping.rst and Documentation/driver-api/ptp.rst of the kernel).
type linuxDevice struct {
	name   string
	socket int
	clock  int // descriptor of the clock's device file, or -1
}

func openDevice(name string) (*linuxDevice, error) {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	return &linuxDevice{name: name, socket: s, clock: -1}, nil
}

func (d *linuxDevice) abilities() (filters uint32, clock bool, err error) {
	info, err := unix.IoctlGetEthtoolTsInfo(d.socket, d.name)
	if err != nil {
		return 0, false, os.NewSyscallError("ETHTOOL_GET_TS_INFO", err)
	}
	if info.Phc_index < 0 {
		return info.Rx_filters, false, nil
	}
	d.clock, err = unix.Open(fmt.Sprintf("/dev/ptp%d", info.Phc_index), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, false, fmt.Errorf("/dev/ptp%d: %w", info.Phc_index, err)
	}
	return info.Rx_filters, true, nil
}

func (d *linuxDevice) config() (unix.HwTstampConfig, error) {
	c, err := unix.IoctlGetHwTstamp(d.socket, d.name)
	if err != nil {
		return unix.HwTstampConfig{}, os.NewSyscallError("SIOCGHWTSTAMP", err)
	}
	return *c, nil
}

func (d *linuxDevice) configure(c unix.HwTstampConfig) error {
	return os.NewSyscallError("SIOCSHWTSTAMP", unix.IoctlSetHwTstamp(d.socket, d.name, &c))
}

// attempts is the number of times that both clocks are read for a sample. The sample is the attempt that took the
// shortest time.
const attempts = 5

// sample reads both clocks (PTP_SYS_OFFSET_EXTENDED): the system's clock before and after the device's clock.
func (d *linuxDevice) sample() (Sample, error) {
	o, err := unix.IoctlPtpSysOffsetExtended(d.clock, attempts)
	if err != nil {
		return Sample{}, os.NewSyscallError("PTP_SYS_OFFSET_EXTENDED", err)
	}
	return closest(o.Ts[:attempts]), nil
}

// closest returns the attempt whose two readings of the system's clock are closest together.
func closest(all [][3]unix.PtpClockTime) (best Sample) {
	shortest := int64(-1)
	for _, one := range all {
		before, device, after := nanoseconds(one[0]), nanoseconds(one[1]), nanoseconds(one[2])
		if took := after - before; shortest < 0 || took < shortest {
			shortest, best = took, Sample{device, before + took/2}
		}
	}
	return best
}

func nanoseconds(t unix.PtpClockTime) int64 { return t.Sec*1e9 + int64(t.Nsec) }

func (d *linuxDevice) close() error {
	err := unix.Close(d.socket)
	if d.clock >= 0 {
		err = errors.Join(err, unix.Close(d.clock))
	}
	return err
}
