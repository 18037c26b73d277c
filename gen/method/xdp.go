//go:build linux

package method

import (
	"time"

	"loam/link/afxdp"
	"loam/wire"
)

// xdpMemory is the memory of the method xdp: frames are written where the driver, or
// the kernel in its place, reads them, and one call tells of a batch, where the
// driver wants to be told at all. Nothing of the kernel's network stack is in
// between.
//
// Sending takes no XDP program, and so changes nothing about the interface.
type xdpMemory struct {
	*afxdp.Tx
	port *xdpPort
	size int
}

// xdpTxFrames is how many frames may be under way. In copy mode only as many as a
// batch ever are; a device with zero copy has its own ring to keep filled.
const xdpTxFrames = 1024

func openXDP(c Config) (Sender, error) {
	c = c.WithDefaults()
	p, err := takePort(c, true)
	if err != nil {
		return nil, err
	}
	return &memorySender{m: &xdpMemory{Tx: &p.socket.Tx, port: p, size: c.Size}}, nil
}

func (m *xdpMemory) slot() []byte {
	slot := m.Slot()
	if slot == nil {
		return nil
	}
	return slot[:m.size]
}

func (m *xdpMemory) fits(n int) bool { return n >= wire.EthernetLen && n <= m.port.longest }

func (m *xdpMemory) put(n int) { m.Put(n) }

func (m *xdpMemory) repeat(frame []byte, n int) int { return m.Repeat(frame, n) }

func (m *xdpMemory) kick() error { return m.KickAtOnce() }

// pause: nobody tells when memory comes back.
func (m *xdpMemory) pause() error {
	time.Sleep(20 * time.Microsecond)
	return nil
}

func (m *xdpMemory) handed() uint64 { return m.Handed() }
func (m *xdpMemory) gone() uint64   { return m.Left() }
func (m *xdpMemory) close() error   { return m.port.leave(&m.port.sends) }
