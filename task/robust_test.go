package task

import (
	"encoding/binary"
	"testing"

	"loam/abi/linux"
)

// A thread that ends, or whose process executes another program, releases its robust futexes before the word of
// set_tid_address(2) is cleared. Otherwise a thread that pthread_join(3) has woken still finds the dead owner in a futex.
func TestRobustBeforeClearedID(t *testing.T) {
	const list, entry, word, id = dataAt, dataAt + 0x40, dataAt + 0x48, dataAt + 0x80
	for name, leave := range map[string]func(u *user){
		"exit":   func(u *user) { u.call(linux.SYS_EXIT, 0) },
		"execve": func(u *user) { u.call(linux.SYS_EXECVE, u.text(dataAt+0x100, "/1"), 0, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			released := false
			run(t, func(u *user) {
				own := uint32(u.call(linux.SYS_SET_TID_ADDRESS, id))
				u.store32(id, own)
				u.store32(word, own)
				le := binary.LittleEndian
				u.store(list, le.AppendUint64(le.AppendUint64(le.AppendUint64(nil, entry), word-entry), 0))
				u.store(entry, le.AppendUint64(nil, list))
				is(t, "set_robust_list", u.call(linux.SYS_SET_ROBUST_LIST, list, 24), 0)
				u.space.machine.swapping = func(addr uint64) {
					if addr == word {
						released = true
						is(t, "ID while the futex is released", int64(u.load32(id)), int64(own))
					}
				}
				leave(u)
			}, func(u *user) { exit(u, 0) })
			if !released {
				t.Error("the futex was not released")
			}
		})
	}
}
