package lock

import (
	"testing"
	"testing/synctest"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
	"loam/posix/file"
)

// Two attempts to open a file wait for the holder of a lease: for a weaker lease, and at most for the time of a break.
func TestLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Leases
		tree := fs.NewTree(memfs.New(memfs.Config{}))
		node := fs.Node(tree.Root().Node)
		reports := 0
		set := func(owner, kind int, want linux.Errno) {
			t.Helper()
			if errno := l.Set(tree, node, Lock{Owner: owner}, kind, func() { reports++ }); errno != want {
				t.Errorf("owner %d, lease %d: %v, want %v", owner, kind, errno, want)
			}
		}
		open := func(flags fs.Flags, waits time.Duration) {
			t.Helper()
			c, ok := l.MayOpen(node, flags).(*Conflict)
			start := time.Now()
			if ok {
				c.Wait(file.Task{}, 0)
			}
			if took := time.Since(start); took != waits {
				t.Errorf("an attempt waits for %v, want %v", took, waits)
			}
		}
		set(1, linux.F_UNLCK, linux.EAGAIN)
		set(1, linux.F_RDLCK, 0)
		set(2, linux.F_RDLCK, 0)
		set(2, linux.F_WRLCK, linux.EAGAIN)
		open(fs.ReadOnly, 0)
		l.SetBreakTime(3)
		open(fs.WriteOnly, 3*time.Second)
		if reports != 2 || l.Kind(node, 1) != linux.F_UNLCK || l.Kind(node, 2) != linux.F_UNLCK {
			t.Errorf("%d reports; leases stay", reports)
		}
		set(1, linux.F_WRLCK, 0)
		time.AfterFunc(time.Second, func() { l.Set(tree, node, Lock{Owner: 1}, linux.F_RDLCK, nil) })
		open(fs.ReadOnly, time.Second)
		time.AfterFunc(time.Second, func() { l.Release(tree, node, 1) })
		open(fs.ReadWrite, time.Second)
		open(fs.ReadWrite, 0)
		set(1, linux.F_WRLCK, 0)
		time.AfterFunc(time.Second, func() { // the writer has the file open already
			set(1, linux.F_RDLCK, linux.EAGAIN)
			l.Release(tree, node, 1)
		})
		open(fs.WriteOnly, time.Second)
		l.SetBreakTime(0)
		set(1, linux.F_WRLCK, 0)
		time.AfterFunc(time.Hour, func() { l.Release(tree, node, 1) })
		open(fs.ReadOnly, time.Hour)
		if len(l.held) != 0 || l.count.Load() != 0 {
			t.Error("a lease stays")
		}
	})
}
