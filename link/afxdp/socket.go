//go:build linux

package afxdp

import (
	"errors"
	"fmt"
	"math/bits"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Socket is one queue of an interface. It has a sending half and a receiving half. Each half may be
// used by one goroutine at a time. The halves share no state, so the two goroutines may differ. A
// queue can have only one Socket at a time.
//
// In the kernel each half is a socket of its own, and the two share the queue (XDP_SHARED_UMEM).
// With a single socket, a goroutine that waits for frames would also send, because poll(2) sends in
// copy mode, and the two goroutines would block each other. Measured: that took a fifth of their
// time.
//
// An open socket can send. It receives only the frames that an XDP program on the interface steers
// to it: see Program.
type Socket struct {
	Tx Tx
	Rx Rx

	name     string
	index    int // index of the interface
	queue    int
	memory   *memory
	own      bool // Close also closes the memory, since no other socket uses it
	zeroCopy bool
	multi    bool // a frame may take several chunks of the memory
}

// Copying selects what copies frames between the memory and the network card.
type Copying uint8

// The copying modes.
const (
	BestCopying Copying = iota // ZeroCopy if the driver supports it, otherwise Copy
	Copy                       // the kernel copies frames
	ZeroCopy                   // the network card accesses the memory directly; opening fails if the driver cannot
)

// SocketConfig describes a socket to open.
type SocketConfig struct {
	Interface string
	Queue     int
	Copying   Copying
	// TxFrames is the number of frames that may be in transmission, and RxFrames the number that
	// may wait to be read. Both are rounded up to a power of two. Default 1024 and 4096.
	TxFrames, RxFrames int
	// Size is the longest frame in bytes. Default: the longest frame of the interface, with two
	// VLAN tags.
	Size int
	// BusyPoll is how long a system call of this socket polls the device itself instead of waiting
	// for interrupts (SO_PREFER_BUSY_POLL). 0 turns busy polling off.
	BusyPoll time.Duration
}

const (
	defaultTxFrames = 1024
	defaultRxFrames = 4096
	maxFrames       = 1 << 16
	tags            = 2 * 4 // length of two VLAN tags in bytes
)

// OpenSocket opens a socket with memory of its own.
func OpenSocket(c SocketConfig) (*Socket, error) {
	sockets, err := openSockets(c, 1)
	if err != nil {
		return nil, err
	}
	sockets[0].own = true
	return sockets[0], nil
}

// openSockets opens sockets for n queues, starting at c.Queue. They share one memory
// (XDP_SHARED_UMEM). The caller closes the memory after the sockets.
func openSockets(c SocketConfig, n int) (sockets []*Socket, err error) {
	i, err := net.InterfaceByName(c.Interface)
	if err != nil {
		return nil, fmt.Errorf("there is no interface %q: ip link lists those that there are", c.Interface)
	}
	if c.Size == 0 {
		c.Size = i.MTU + ethernetLen + tags
	}
	if c.TxFrames, err = powerOfTwo(c.TxFrames, defaultTxFrames); err != nil {
		return nil, err
	}
	if c.RxFrames, err = powerOfTwo(c.RxFrames, defaultRxFrames); err != nil {
		return nil, err
	}
	shape := layOut(c.Size, c.TxFrames, c.RxFrames)
	m, err := newMemory(shape, n)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			closeSockets(sockets)
			m.close()
		}
	}()
	for k := range n {
		s := &Socket{name: c.Interface, index: i.Index, queue: c.Queue + k, memory: m, multi: shape.multi()}
		s.Rx.fd, s.Tx.fd = -1, -1
		sockets = append(sockets, s)
		if err := s.open(c, k); err != nil {
			return sockets, s.explain(err)
		}
	}
	return sockets, nil
}

func powerOfTwo(n, ifZero int) (int, error) {
	if n == 0 {
		n = ifZero
	}
	if n < 0 || n > maxFrames {
		return 0, fmt.Errorf("%d frames are more than a ring of %d takes", n, maxFrames)
	}
	return 1 << bits.Len(uint(n-1)), nil
}

// open opens the k-th socket of those that share the memory. The first one registers the memory.
func (s *Socket) open(c SocketConfig, k int) (err error) {
	for _, fd := range []*int{&s.Rx.fd, &s.Tx.fd} {
		if *fd, err = unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			return os.NewSyscallError("socket", err)
		}
	}
	if k == 0 {
		s.memory.owner = s.Rx.fd
		if err := register(s.Rx.fd, s.memory.bytes, s.memory.chunk); err != nil {
			return fmt.Errorf("XDP_UMEM_REG of %d bytes: %w", len(s.memory.bytes), err)
		}
	}
	if err := s.makeRings(); err != nil {
		return err
	}
	if err := s.pollBusily(c.BusyPoll); err != nil {
		return err
	}
	s.Rx.fillAll(s.memory, k) // filled before bind, because some drivers read the fill ring during bind
	s.Tx.ownAll(s.memory, k)
	if err := s.bind(s.Rx.fd, s.memory.owner, c.Copying); err != nil {
		return err
	}
	if err := s.bind(s.Tx.fd, s.Rx.fd, c.Copying); err != nil {
		return err
	}
	flags, err := options(s.Rx.fd)
	s.zeroCopy = flags&unix.XDP_OPTIONS_ZEROCOPY != 0
	s.Tx.zeroCopy = s.zeroCopy
	return err
}

// option is a socket option with an integer value.
type option struct {
	fd, level, name, to int
	wish                bool // optional: an older kernel or a lack of privilege is not an error
}

// makeRings creates and maps the four rings. The fill and completion rings of the queue belong to
// the receiving half. Every ring has as many slots as there are chunks, so no ring can overflow.
func (s *Socket) makeRings() error {
	tx, rx := s.memory.txChunks(), s.memory.rxFrames
	err := set(
		option{s.Rx.fd, unix.SOL_XDP, unix.XDP_UMEM_FILL_RING, rx, false},
		option{s.Rx.fd, unix.SOL_XDP, unix.XDP_UMEM_COMPLETION_RING, tx, false},
		option{s.Rx.fd, unix.SOL_XDP, unix.XDP_RX_RING, rx, false},
		option{s.Tx.fd, unix.SOL_XDP, unix.XDP_TX_RING, tx, false},
		// In copy mode: most frames that one system call sends (Linux 6.17; 32 before).
		option{s.Tx.fd, unix.SOL_XDP, unix.XDP_MAX_TX_SKB_BUDGET, tx, true},
		// In copy mode: most bytes in transmission, as the kernel counts them.
		option{s.Tx.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendBuffer, true})
	if err != nil {
		return err
	}
	at, err := mapOffsets(s.Rx.fd)
	if err != nil {
		return err
	}
	return errors.Join(s.Rx.mapRings(at, rx), s.Tx.mapRings(s.Rx.fd, at, tx))
}

// pollBusily makes both halves poll the device themselves, for d each time.
func (s *Socket) pollBusily(d time.Duration) error {
	s.Rx.busy = d > 0
	if d == 0 {
		return nil
	}
	for _, fd := range []int{s.Rx.fd, s.Tx.fd} {
		err := set(
			option{fd, unix.SOL_SOCKET, unix.SO_PREFER_BUSY_POLL, 1, false},
			option{fd, unix.SOL_SOCKET, unix.SO_BUSY_POLL, int(max(1, d.Microseconds())), false},
			option{fd, unix.SOL_SOCKET, unix.SO_BUSY_POLL_BUDGET, busyBudget, false})
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	sendBuffer = 64 << 20
	busyBudget = 64 // most frames that one poll of the device takes
)

func set(options ...option) error {
	for _, o := range options {
		if err := unix.SetsockoptInt(o.fd, o.level, o.name, o.to); err != nil && !o.wish {
			return os.NewSyscallError("setsockopt", err)
		}
	}
	return nil
}

// bindPatience is how long bind retries while a queue is in use. The kernel releases the queue of a
// closed socket in the background.
const bindPatience = time.Second

// bind binds one half to the queue. A half that shares the memory of socket owner also inherits its
// flags.
func (s *Socket) bind(fd, owner int, copying Copying) error {
	a := unix.SockaddrXDP{Ifindex: uint32(s.index), QueueID: uint32(s.queue)}
	if fd != owner {
		a.Flags, a.SharedUmemFD = unix.XDP_SHARED_UMEM, uint32(owner)
	} else {
		a.Flags = unix.XDP_USE_NEED_WAKEUP
		switch copying {
		case Copy:
			a.Flags |= unix.XDP_COPY
		case ZeroCopy:
			a.Flags |= unix.XDP_ZEROCOPY
		}
		if s.multi {
			a.Flags |= unix.XDP_USE_SG
		}
	}
	for end := time.Now().Add(bindPatience); ; time.Sleep(time.Millisecond) {
		err := unix.Bind(fd, &a)
		if err != unix.EBUSY || time.Now().After(end) {
			return os.NewSyscallError("bind", err)
		}
	}
}

// explain adds advice to an error of opening.
func (s *Socket) explain(err error) error {
	say := func(why string) error { return fmt.Errorf("%s, queue %d: %w: %s", s.name, s.queue, err, why) }
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return say("AF_XDP needs CAP_NET_RAW: run as root")
	case errors.Is(err, unix.EAFNOSUPPORT):
		return say("this kernel is built without CONFIG_XDP_SOCKETS")
	case errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ENOMEM):
		return say("too little memory may be locked: ulimit -l unlimited, or run as root")
	case errors.Is(err, unix.EBUSY):
		return say("another AF_XDP socket has this queue: end its program, or take another queue")
	case errors.Is(err, unix.EOPNOTSUPP):
		return say("the driver has no zero copy, or none for frames of this size: copy")
	case errors.Is(err, unix.EINVAL):
		rx, tx := Queues(s.name)
		if least := min(rx, tx); least > 0 && s.queue >= least {
			return say(fmt.Sprintf("the interface uses %d queues to receive and %d to send: take no more, or give it more by ethtool -L", rx, tx))
		}
		return say(fmt.Sprintf("the interface uses %d queues to receive and %d to send, or this kernel is too old", rx, tx))
	}
	return fmt.Errorf("%s, queue %d: %w", s.name, s.queue, err)
}

// ZeroCopy reports whether the network card accesses the memory directly.
func (s *Socket) ZeroCopy() bool { return s.zeroCopy }

// Queue returns the number of the socket's queue.
func (s *Socket) Queue() int { return s.queue }

// Drops returns the number of frames steered to the socket and dropped: because there was no room,
// or because they were longer than SocketConfig.Size. Any goroutine may call it while the socket is
// open.
func (s *Socket) Drops() uint64 {
	c, err := statistics(s.Rx.fd)
	if err != nil {
		return 0
	}
	return c.Rx_dropped + c.Rx_ring_full
}

// Close closes the socket. Frames that have not left are lost. No goroutine may use either half
// during or after Close. It may be called more than once.
func (s *Socket) Close() error {
	err := errors.Join(s.Tx.close(), s.Rx.close())
	if s.own {
		s.memory.close()
	}
	return err
}

// closeHalf closes a descriptor and sets it to -1, so that it is closed only once.
func closeHalf(fd *int) error {
	if *fd < 0 {
		return nil
	}
	err := unix.Close(*fd)
	*fd = -1
	return os.NewSyscallError("close", err)
}

func closeSockets(sockets []*Socket) {
	for _, s := range sockets {
		s.Close()
	}
}
