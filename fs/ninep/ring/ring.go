// Package ring carries the messages of fs/ninep between two processes of a host, in memory that both have mapped.
//
// Each direction is a ring of bytes. One process is its sender, and the other process its receiver. A sender copies
// bytes into the ring and then advances the position header.written; a receiver copies bytes out and then advances
// header.read. Neither makes a system call while both processes run.
//
// A socket connects the processes too. A receiver that finds nothing sets header.asleep and then waits for the socket;
// a sender that finds this mark removes it and wakes the receiver by a byte on the socket. The socket also reports that
// the other process has ended. Bytes that a process has sent before its end are still received.
//
// # Trust
//
// The other process may write anything anywhere into the memory, at any time. So each process keeps its own positions
// outside of the memory, checks the position that it reads, and copies bytes out once before it interprets them. A
// process that breaks the rules only damages its own connection. The memory must not shrink: the creator seals its
// size (F_SEAL_SHRINK), because an access to a page that does not exist would be fatal.
package ring

import (
	"errors"
	"io"
	"sync/atomic"

	"loam/abi/linux"
)

// Sizes of the shared memory's parts in bytes.
const (
	room       = 512 << 10 // length of a ring
	headerRoom = 4096      // the headers of both directions
	Size       = headerRoom + 2*room
	// piece is the number of bytes of a long write that the receiver can read while the rest is copied.
	piece = 32 << 10
)

// header is the state of one direction. Each field has a cache line of its own, because different processes write them.
type header struct {
	written atomic.Uint64 // number of bytes sent since the start; stored by the sender
	_       [56]byte
	read    atomic.Uint64 // number of bytes received since the start; stored by the receiver
	_       [56]byte
	asleep  atomic.Uint32 // 1: the receiver waits to be woken
	_       [60]byte
}

// ErrPosition is returned after the other process has stored an impossible position.
var ErrPosition = errors.New("ring: the other process has damaged the memory of the connection")

// Peer wakes and awaits the other process. It is a socket.
type Peer interface {
	// Wake ends a Wait of the other process. An error means that the other process has ended.
	Wake() error
	// Wait waits for a Wake of the other process. An error means that the connection has ended.
	Wait() error
	// Pause waits for a millisecond, or until the connection has ended, which is an error.
	Pause() error
	// Yield lets another thread use this CPU.
	Yield()
	// Close closes this end.
	Close() error
}

// Conn is one end of a connection. One goroutine at a time may read, and one may write.
type Conn struct {
	Peer
	in  direction
	out direction
}

// direction is the view of one process on one direction. at is its own position: the number of bytes that it has sent or
// received.
type direction struct {
	*header
	data []byte
	at   uint64
	// seen is the receiver's position when the sender last loaded it. The sender loads it again only if the ring seems to be full,
	// because each load after a change moves a cache line between the CPUs.
	seen uint64
}

// space returns the number of bytes that can be sent, which is 0 if the ring is full. It is exact if there is less room than
// wanted. Errors: ErrPosition.
func (d *direction) space(wanted int) (uint64, error) {
	if used := d.at - d.seen; used+uint64(min(wanted, piece)) <= room {
		return room - used, nil
	}
	read := d.read.Load()
	if d.at-read > room {
		return 0, ErrPosition
	}
	d.seen = read
	return room - (d.at - read), nil
}

// New returns an end of a connection in memory, which has Size bytes. second is true in one of the two processes. The
// memory is zero before either of them uses it.
func New(memory []byte, p Peer, second bool) *Conn {
	ends := [2]direction{
		{header: headerAt(memory, 0), data: memory[headerRoom:][:room:room]},
		{header: headerAt(memory, headerRoom/2), data: memory[headerRoom+room:][:room:room]},
	}
	if second {
		return &Conn{Peer: p, in: ends[0], out: ends[1]}
	}
	return &Conn{Peer: p, in: ends[1], out: ends[0]}
}

// TryRead reads bytes that have arrived. Errors: EAGAIN if there are none, ErrPosition.
func (c *Conn) TryRead(p []byte) (int, error) {
	d := &c.in
	n := d.written.Load() - d.at
	switch {
	case n > room:
		return 0, ErrPosition
	case n == 0:
		return 0, linux.EAGAIN
	}
	p = p[:min(n, uint64(len(p)))]
	k := copy(p, d.data[d.at%room:])
	copy(p[k:], d.data)
	d.at += uint64(len(p))
	d.read.Store(d.at)
	return len(p), nil
}

// Read reads bytes, and waits for them without polling. Errors: io.EOF, ErrPosition.
func (c *Conn) Read(p []byte) (int, error) {
	for {
		n, err := c.TryRead(p)
		if err != linux.EAGAIN {
			return n, err
		}
		c.in.asleep.Store(1)
		n, err = c.TryRead(p) // the sender may have looked at the mark before it was set
		var ended error
		if err == linux.EAGAIN {
			ended = c.Wait()
		}
		c.in.asleep.Store(0)
		switch {
		case err != linux.EAGAIN:
			return n, err
		case ended != nil:
			if n, err = c.TryRead(p); err == linux.EAGAIN {
				err = io.EOF
			}
			return n, err
		}
	}
}

// looks is how often a sender looks for room before it pauses.
const looks = 64

// Write sends bytes. It waits while the ring is full.
func (c *Conn) Write(p []byte) (int, error) {
	d := &c.out
	done := 0
	for tries := 0; done < len(p); {
		space, err := d.space(len(p) - done)
		switch {
		case err != nil:
			return done, err
		case space == 0 && tries < looks:
			tries++
			c.Yield()
			continue
		case space == 0:
			if err := c.Pause(); err != nil {
				return done, err
			}
			continue
		}
		tries = 0
		part := p[done:min(uint64(len(p)), uint64(done)+space, uint64(done)+piece)]
		k := copy(d.data[d.at%room:], part)
		copy(d.data, part[k:])
		d.at += uint64(len(part))
		d.written.Store(d.at)
		done += len(part)
		if d.asleep.Load() != 0 && d.asleep.Swap(0) != 0 {
			if err := c.Wake(); err != nil {
				return done, err
			}
		}
	}
	return done, nil
}

// Awake reports whether the other process receives without being woken.
func (c *Conn) Awake() bool { return c.out.asleep.Load() == 0 }
