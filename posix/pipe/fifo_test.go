package pipe

import (
	"testing"
	"testing/synctest"

	"loam/posix/file"
)

// An open of a FIFO ends although the other end was closed again before the open began to wait.
func TestOtherEndCloses(t *testing.T) {
	for kind, other := range [...]int{reads: writes, writes: reads} {
		synctest.Test(t, func(t *testing.T) {
			shared, _ := new(System).newPipe(1, Creator{})
			e := shared.newEnd([2]bool{reads: kind == reads, writes: kind == writes})
			shared.newEnd([2]bool{reads: other == reads, writes: other == writes}).Close()
			if errno := e.await(other, file.Task{}); errno != 0 {
				t.Error(errno)
			}
		})
	}
}
