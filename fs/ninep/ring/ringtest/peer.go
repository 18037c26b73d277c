// Package ringtest has a ring.Peer for tests of packages that use a ring.
package ringtest

import (
	"io"
	"runtime"
)

// Peer implements ring.Peer by a connection: a byte on it wakes the other process.
type Peer struct{ io.ReadWriteCloser }

// Wake implements ring.Peer.
func (p Peer) Wake() error {
	_, err := p.Write([]byte{0})
	return err
}

// Wait implements ring.Peer. It receives all wakes that have arrived.
func (p Peer) Wait() error {
	_, err := p.Read(make([]byte, 64))
	return err
}

// Pause implements ring.Peer, but waits only until other goroutines have run.
func (p Peer) Pause() error {
	runtime.Gosched()
	return nil
}

// Yield implements ring.Peer.
func (p Peer) Yield() { runtime.Gosched() }
