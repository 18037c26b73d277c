package lock

import (
	"testing"
	"testing/synctest"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
	"loam/posix/file"
)

// Processes that would wait for each other in a circle get EDEADLK (fcntl(2)). An owner that stops waiting is no
// longer part of the circle.
func TestDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := fs.NewTree(memfs.New(memfs.Config{})).Root().Node
		var locks Table
		lock := func(owner string, at int64) Lock { return Lock{Owner: owner, First: at, Last: at, Write: true} }
		for i, owner := range []string{"a", "b", "c"} {
			if errno := locks.Take(node, lock(owner, int64(i)), false, true, file.Task{}); errno != 0 {
				t.Fatal(errno)
			}
		}
		stop := file.NewInterrupt()
		results := make(chan linux.Errno, 2)
		go func() { results <- locks.Take(node, lock("a", 1), true, true, file.Task{Interrupt: stop}) }()
		go func() { results <- locks.Take(node, lock("b", 2), true, true, file.Task{}) }()
		synctest.Wait()
		if errno := locks.Take(node, lock("c", 0), false, true, file.Task{}); errno != linux.EAGAIN {
			t.Errorf("without waiting: %v", errno)
		}
		if errno := locks.Take(node, lock("c", 0), true, true, file.Task{}); errno != linux.EDEADLK {
			t.Errorf("a circle of three: %v", errno)
		}
		stop.Raise()
		if errno := <-results; errno != linux.EINTR {
			t.Errorf("interrupted: %v", errno)
		}
		go func() { results <- locks.Take(node, lock("c", 0), true, true, file.Task{}) }()
		synctest.Wait()
		locks.Release(node, Whole("a", true))
		if errno := <-results; errno != 0 {
			t.Errorf("after the release: %v", errno)
		}
		locks.Release(node, Whole("c", true))
		if errno := <-results; errno != 0 {
			t.Errorf("after the release: %v", errno)
		}
	})
}
