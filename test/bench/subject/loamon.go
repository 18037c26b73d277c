package subject

import (
	"errors"
	"net/netip"

	"loam/link"
	"loam/link/afpacket"
	"loam/link/afxdp"
)

// loamOn is Loam's stack on an interface of Linux, in one of several ways. It runs only on one end of a
// veth pair, which package cell creates.
type loamOn struct {
	name string
	open func(device string) (link.Device, error)
}

var (
	loamPacket = loamOn{LoamPacket, func(device string) (link.Device, error) {
		return afpacket.Open(afpacket.Config{Interface: device})
	}}
	loamRing = loamOn{LoamRing, func(device string) (link.Device, error) {
		return afpacket.Open(afpacket.Config{Interface: device, Ring: true})
	}}
	loamXDP = loamOn{LoamXDP, func(device string) (link.Device, error) {
		return afxdp.Open(afxdp.Config{Interface: device})
	}}
)

var errOnInterface = errors.New("subject: stands on an interface only; use a veth")

func (l loamOn) Name() string                         { return l.name }
func (loamOn) Pipe(bool) (a, b Host, err error)       { return nil, nil, errOnInterface }
func (loamOn) Loop() (Host, error)                    { return nil, errOnInterface }
func (loamOn) Tap(string, netip.Prefix) (Host, error) { return nil, errOnInterface }

// Interface implements OnInterface.
func (l loamOn) Interface(name string, addr netip.Prefix) (Host, error) {
	device, err := l.open(name)
	if err != nil {
		return nil, err
	}
	return newLoamHost(device, addr)
}
