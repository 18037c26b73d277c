package pipe

import (
	"testing"

	"loam/abi/linux"
)

// A user above the soft limit gets small pipes, and none above the hard limit. Closed pipes do not count.
func TestQuota(t *testing.T) {
	var s System
	s.SetSoftPages(20)
	s.SetHardPages(36)
	user, root := Creator{UID: 1}, Creator{UID: 1, Unlimited: true}
	open := func(who Creator, pages int) *End {
		t.Helper()
		r, w, errno := s.New(1, who)
		if errno != 0 {
			if pages != 0 || errno != linux.ENFILE {
				t.Errorf("%v, want %d pages", errno, pages)
			}
			return nil
		}
		if n := r.Capacity() / pageSize; n != pages {
			t.Errorf("%d pages, want %d", n, pages)
		}
		r.Close()
		return w
	}
	first, second := open(user, 16), open(user, fewPages)
	open(Creator{UID: 2}, 16).Close()
	if _, errno := second.Resize(4*pageSize, user); errno != 0 { // 20 pages in all
		t.Error(errno)
	}
	if _, errno := second.Resize(8*pageSize, user); errno != linux.EPERM {
		t.Error(errno)
	}
	third := open(root, 16) // 36 pages in all
	open(user, 0)
	first.Close()
	open(user, fewPages).Close() // 20 pages are in use, and 36 with a large pipe
	third.Close()
	second.Close()
	if len(s.pages) != 0 {
		t.Errorf("closed pipes count: %v", s.pages)
	}
}

// New pipes have at most the size that a user may set.
func TestMaxSize(t *testing.T) {
	var s System
	s.SetMaxSize(5000)
	r, w, _ := s.New(1, Creator{})
	if n := r.Capacity(); n != 8192 || s.MaxSize() != 8192 {
		t.Errorf("%d bytes, %d", n, s.MaxSize())
	}
	if _, errno := w.Resize(16384, Creator{}); errno != linux.EPERM {
		t.Error(errno)
	}
	if n, errno := w.Resize(16384, Creator{Resource: true, Unlimited: true}); n != 16384 || errno != 0 {
		t.Errorf("%d, %v", n, errno)
	}
	r.Close()
	w.Close()
	if _, errno := w.Resize(8192, Creator{}); errno != linux.EBADF {
		t.Errorf("after the end of the pipe: %v", errno)
	}
}
