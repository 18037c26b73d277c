package unikernel

import (
	"encoding/binary"
	"io"
	"slices"
	"testing"
	"time"
)

// A goroutine that is made by one which then computes, and calls nothing, starts all the
// same: on a thread that nobody else has a reason to wake, or in place of the other, where
// there is one thread only and the runtime's monitor sleeps.
func TestOwedWake(t *testing.T) {
	for _, procs := range []string{"GOMAXPROCS=1", "GOMAXPROCS=2"} {
		t.Run(procs, func(t *testing.T) { testOwedWake(t, Options{Env: []string{procs}}) })
	}
}

func testOwedWake(t *testing.T, o Options) {
	c := dialProgram(t, o, "late")
	defer c.Close() // the program ends
	var late []time.Duration
	for b := make([]byte, 8); len(late) < 300; {
		if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(b[:1]); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, b); err != nil {
			t.Fatalf("after %d goroutines one did not start: %v", len(late), err)
		}
		late = append(late, time.Duration(binary.LittleEndian.Uint64(b)))
	}
	slices.Sort(late)
	t.Logf("median %v, 90 %% %v, longest %v", late[150], late[270], late[299])
}
