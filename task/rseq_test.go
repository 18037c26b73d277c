package task

import (
	"testing"

	"loam/abi/linux"
)

// A thread in a critical section (rseq) continues at its abort handler after it was moved to another CPU, and when a
// signal is delivered. Outside of a critical section it continues where it was interrupted.
func TestRestartableSequence(t *testing.T) {
	const at, section, start, abort, signature = dataAt, dataAt + 64, textAt + 0x300, dataAt + 0x1004, 0x53053053
	run(t, func(u *user) {
		is(t, "length", u.call(linux.SYS_RSEQ, at, 16, 0, signature), failed(linux.EINVAL))
		is(t, "alignment", u.call(linux.SYS_RSEQ, at+8, 32, 0, signature), failed(linux.EINVAL))
		is(t, "register", u.call(linux.SYS_RSEQ, at, 32, 0, signature), 0)
		is(t, "again", u.call(linux.SYS_RSEQ, at, 32, 0, signature), failed(linux.EBUSY))
		if !u.watched {
			t.Error("the thread is not watched")
		}
		set := func(at, v uint64) { u.store32(at, uint32(v)); u.store32(at+4, uint32(v>>32)) }
		get := func(at uint64) uint64 { return uint64(u.load32(at)) | uint64(u.load32(at+4))<<32 }
		for i, v := range []uint64{0, start, 16, abort} {
			set(section+uint64(i)*8, v)
		}
		set(abort-4, signature) // stored in front of the abort handler, as rseq(2) requires
		moved := func(ip uint64) uint64 {
			set(at+8, section)
			u.frame.IP = ip
			u.stop(Moved)
			return u.frame.IP
		}
		for ip, want := range map[uint64]uint64{start: abort, start + 15: abort, start + 16: start + 16, start - 1: start - 1} {
			if got := moved(ip); got != want || get(at+8) != 0 {
				t.Errorf("from %x to %x, want %x; the section is %x", ip, got, want, get(at+8))
			}
		}
		if got := get(at); got != 1|1<<32 {
			t.Errorf("CPU %x", got)
		}
		is(t, "getcpu", u.call(linux.SYS_GETCPU, section, section+4, 0), 0)
		is(t, "the CPU of getcpu", int64(get(section)), 1)
		is(t, "another signature", u.call(linux.SYS_RSEQ, at, 32, 1, 5), failed(linux.EPERM))
		is(t, "unregister", u.call(linux.SYS_RSEQ, at, 32, 1, signature), 0)
		if got := get(at); got != 0xffffffff00000000 || u.watched {
			t.Errorf("after the end: CPU %x", got)
		}
		u.call(linux.SYS_EXIT_GROUP, 0)
	})
}
