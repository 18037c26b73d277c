//go:build linux

package method

import (
	"time"

	"loam/link/afxdp"
	"loam/wire"
)

// xdpMemory is the memory for the method xdp (AF_XDP). Frames are written into memory that the driver reads, or the
// kernel in place of the driver. One system call notifies the driver of a batch, if the driver needs a notification at
// all. The kernel's network stack is not involved.
//
// Sending needs no XDP program, so the interface's configuration does not change.
type xdpMemory struct {
	*afxdp.Tx
	port *xdpPort
	size int
}

// xdpTxFrames is the maximum number of frames that are being sent. In copy mode, at most one batch is being sent. A
// device with zero copy has a ring of its own, which this number keeps filled.
const xdpTxFrames = 1024

// openXDP opens the method xdp for sending on one queue.
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

// pause sleeps, because the kernel does not report when a buffer becomes free.
func (m *xdpMemory) pause() error {
	time.Sleep(20 * time.Microsecond)
	return nil
}

func (m *xdpMemory) handed() uint64 { return m.Handed() }
func (m *xdpMemory) gone() uint64   { return m.Left() }
func (m *xdpMemory) close() error   { return m.port.leave(&m.port.sends) }
