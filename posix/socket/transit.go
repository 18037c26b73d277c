package socket

import (
	"encoding/binary"
	"sync"

	"loam/abi/linux"
	"loam/posix/file"
)

// Transit counts the descriptors in messages that have been sent and not received (SCM_RIGHTS, unix(7)), for each user. The
// zero value has no messages.
type Transit struct {
	mu    sync.Mutex
	users map[uint32]int
}

// maxPassed is the maximum number of descriptors in a message (SCM_MAX_FD).
const maxPassed = 253

// Pass replaces the descriptor numbers in the Data of an SCM_RIGHTS message by references to their descriptions. As on Linux since 4.14, the depth of
// sockets in messages to sockets has no limit. Errors: EINVAL; EBADF; ETOOMANYREFS if the user has more than a number of
// descriptors in messages already.
func (t *Transit) Pass(c *Control, fds *file.Table, user uint32, most int) linux.Errno {
	if len(c.Data) > maxPassed*4 {
		return linux.EINVAL
	}
	var list []*file.Description
	errno := linux.Errno(0)
	for b := c.Data; len(b) >= 4; b = b[4:] { // Linux ignores the rest
		o := fds.Get(int(int32(binary.NativeEndian.Uint32(b))))
		if o == nil || !o.Hold() {
			errno = linux.EBADF
			break
		}
		list = append(list, o)
	}
	if errno == 0 && !t.begin(user, len(list), most) {
		errno = linux.ETOOMANYREFS
	}
	if errno != 0 {
		for _, o := range list {
			o.Release()
		}
		return errno
	}
	c.Passed, c.transit, c.user = list, t, user
	return 0
}

// begin counts n descriptors, unless the user has more than a number of them already. As on Linux, the last message may
// exceed the limit.
func (t *Transit) begin(user uint32, n, most int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n > 0 && t.users[user] > most {
		return false
	}
	t.add(user, n)
	return true
}

// add changes the number of descriptors of a user. The caller holds mu.
func (t *Transit) add(user uint32, n int) {
	if t.users == nil {
		t.users = map[uint32]int{}
	}
	if t.users[user] += n; t.users[user] == 0 {
		delete(t.users, user)
	}
}

// Take returns the descriptions of a message, which is no longer in transit. The caller releases them.
func (c *Control) Take() []*file.Description {
	list := c.Passed
	c.Passed = nil
	if len(list) > 0 && c.transit != nil {
		c.transit.mu.Lock()
		defer c.transit.mu.Unlock()
		c.transit.add(c.user, -len(list))
	}
	return list
}

// DropControl releases the descriptions in control messages that are not delivered.
func DropControl(list []Control) {
	for i := range list {
		for _, o := range list[i].Take() {
			o.Release()
		}
	}
}

// mostHeld bounds the estimate of heldBy: a socket in a message to itself would otherwise double it.
const mostHeld = 1 << 40

// heldBy estimates the bytes of the kernel's heap that the descriptions in control messages hold, when they are sent. The
// estimate of a socket contains the messages to it, so the end of a chain of sockets counts for the whole chain.
func heldBy(list []Control) (n int64) {
	for i := range list {
		for _, o := range list[i].Passed {
			n = min(n+o.Held(), mostHeld)
		}
	}
	return n
}
