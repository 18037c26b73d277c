//go:build linux

package tc

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"loam/internal/netns"
	"loam/link/match"
	"loam/wire"
)

func TestMain(m *testing.M) { netns.Main(m) }

// kind is an EtherType for experiments (IEEE 802), which no kernel handles.
const kind = 0x88b5

// frame returns a frame of n bytes with a number.
func frame(n int, number byte) []byte {
	b := bytes.Repeat([]byte{number}, n)
	eth := wire.Ethernet{Dst: wire.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, Src: wire.MAC{2, 0, 0, 0, 0, 1}, Type: kind}
	eth.Put(b)
	return b
}

// ours matches the frames of these tests.
var ours = []match.Rule{{EtherType: kind}}

func openTx(t testing.TB, c TxConfig) *Tx {
	t.Helper()
	tx, err := OpenTx(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Close() })
	return tx
}

func openRx(t testing.TB, c RxConfig) *Rx {
	t.Helper()
	rx, err := OpenRx(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rx.Close() })
	return rx
}

// send sends frames and fails the test unless all are sent.
func send(t testing.TB, tx *Tx, frames ...[]byte) {
	t.Helper()
	for _, f := range frames {
		tx.Put(copy(tx.Slot(), f))
	}
	for end := time.Now().Add(10 * time.Second); ; {
		if errno := tx.Kick(); errno == 0 {
			return
		} else if time.Now().After(end) {
			t.Fatal(errno)
		}
	}
}

// receive receives n frames, and fails the test if they do not arrive in time.
func receive(t testing.TB, rx *Rx, n int) (frames [][]byte) {
	t.Helper()
	defer rx.Release()
	for end := time.Now().Add(10 * time.Second); len(frames) < n; {
		if f, at, ok := rx.Next(); ok {
			if at <= 0 {
				t.Fatalf("taken at %d", at)
			}
			frames = append(frames, bytes.Clone(f))
		} else if time.Now().After(end) {
			t.Fatalf("%d of %d frames", len(frames), n)
		}
	}
	return frames
}

// Frames of all lengths arrive unchanged and in order, also if there are more of them than the sending program passes
// to the kernel in one run.
func TestFramesArrive(t *testing.T) {
	netns.Need(t)
	from, to := netns.Veth(t, 1500, 1)
	tx, rx := openTx(t, TxConfig{Interface: from, Slots: 3 * runLength}), openRx(t, RxConfig{Interface: to, Match: ours})
	for round := range 5 {
		var frames [][]byte
		for i := range 3*runLength - round {
			frames = append(frames, frame(15+(i*97+round)%1499, byte(i)))
		}
		send(t, tx, frames...)
		for i, got := range receive(t, rx, len(frames)) {
			if !bytes.Equal(got, frames[i]) {
				t.Fatalf("frame %d of %d bytes came as one of %d", i, len(frames[i]), len(got))
			}
		}
	}
	if rx.Drops() != 0 || tx.Waiting() != 0 {
		t.Errorf("%d dropped, %d waiting", rx.Drops(), tx.Waiting())
	}
}

// Frames that find no room in the ring are counted. Released room is used again, also across the
// end of the ring.
func TestRingFills(t *testing.T) {
	netns.Need(t)
	from, to := netns.Veth(t, 1500, 1)
	const size = 1 << 13
	tx, rx := openTx(t, TxConfig{Interface: from}), openRx(t, RxConfig{Interface: to, Match: ours, Bytes: size})
	whole := size / (recordHeader + frameAt + int(Sizes[0]))
	for range 4 {
		dropped := rx.Drops()
		for i := range whole + 10 {
			send(t, tx, frame(60, byte(i)))
		}
		n := 0
		for ; ; n++ {
			f, _, ok := rx.Next()
			if !ok {
				break
			}
			if f[20] != byte(n) {
				t.Fatalf("frame %d is %d", n, f[20])
			}
		}
		rx.Release()
		if more := rx.Drops() - dropped; n < whole-1 || int(more) != whole+10-n {
			t.Errorf("%d received, %d dropped of %d", n, more, whole+10)
		}
	}
}

// A frame longer than a record is truncated.
func TestLongFrame(t *testing.T) {
	netns.Need(t)
	from, to := netns.Veth(t, 4000, 1)
	tx, rx := openTx(t, TxConfig{Interface: from, Size: 3500}), openRx(t, RxConfig{Interface: to, Match: ours})
	long := frame(3000, 7)
	send(t, tx, long)
	if got := receive(t, rx, 1)[0]; !bytes.Equal(got, long[:Longest]) {
		t.Errorf("%d bytes", len(got))
	}
}

// Frames that do not match go to the kernel: a receiver of other frames does not see them, and the
// far kernel answers ping.
func TestOthersAreLeftAlone(t *testing.T) {
	f := netns.NewFar(t)
	near, far, n := f.Wire(t)
	rx := openRx(t, RxConfig{Interface: near, Match: ours})
	if out, err := exec.Command("ping", "-c", "1", "-W", "5", fmt.Sprintf("10.%d.0.2", n)).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, _, ok := rx.Next(); ok || rx.Drops() != 0 {
		t.Error("a frame that nobody asked for")
	}
	var tx *Tx
	f.Do(t, func() { tx = openTx(t, TxConfig{Interface: far}) })
	f.Do(t, func() { send(t, tx, frame(60, 1)) })
	receive(t, rx, 1)
}

// Frames with a VLAN tag go to the kernel. They are counted once, even if several Rx inspect them.
func TestPassed(t *testing.T) {
	netns.Need(t)
	from, to := netns.Veth(t, 1500, 1)
	tx := openTx(t, TxConfig{Interface: from})
	var all []*Rx
	for i := range 2 {
		all = append(all, openRx(t, RxConfig{Interface: to, Match: ours, Share: i, Shares: 2}))
	}
	tagged := frame(60, 1)
	copy(tagged[12:], []byte{0x81, 0, 0, 7, 8, 0})
	const count = 10
	for range count {
		send(t, tx, tagged, frame(60, 2))
	}
	received := 0
	for _, rx := range all {
		for _, _, ok := rx.Next(); ok; _, _, ok = rx.Next() {
			received++
		}
	}
	if n := all[0].Passed() + all[1].Passed(); n != count || received != count {
		t.Errorf("%d passed on and %d received, want %d of each", n, received, count)
	}
}

// Several Rx share the frames by processor. Each frame arrives at exactly one of them.
func TestShares(t *testing.T) {
	netns.Need(t)
	from, to := netns.Veth(t, 1500, 1)
	tx := openTx(t, TxConfig{Interface: from})
	var all []*Rx
	for i := range 2 {
		all = append(all, openRx(t, RxConfig{Interface: to, Match: ours, Share: i, Shares: 2}))
	}
	const count = 100
	for i := range count {
		send(t, tx, frame(60, byte(i)))
	}
	n := 0
	for _, rx := range all {
		for _, _, ok := rx.Next(); ok; _, _, ok = rx.Next() {
			n++
		}
	}
	if n != count {
		t.Errorf("%d of %d", n, count)
	}
}

// Frames that cannot be sent wait. They are sent once, when the interface accepts them.
func TestDown(t *testing.T) {
	netns.Need(t)
	from, to := netns.Veth(t, 1500, 1)
	tx, rx := openTx(t, TxConfig{Interface: from}), openRx(t, RxConfig{Interface: to, Match: ours})
	netns.IP(t, "link", "set", from, "down")
	for i := range 3 {
		tx.Put(copy(tx.Slot(), frame(60, byte(i))))
	}
	if errno := tx.Kick(); errno != unix.ENETDOWN || tx.Waiting() != 3 {
		t.Errorf("%v, %d waiting", errno, tx.Waiting())
	}
	netns.IP(t, "link", "set", from, "up")
	send(t, tx)
	for i, f := range receive(t, rx, 3) {
		if f[20] != byte(i) {
			t.Errorf("frame %d is %d", i, f[20])
		}
	}
	if tx.Sent() != 3 {
		t.Errorf("%d sent", tx.Sent())
	}
}

// If the interface has been removed, the error says so.
func TestGone(t *testing.T) {
	netns.Need(t)
	const from = "loamgone"
	netns.IP(t, "link", "add", from, "type", "veth", "peer", "name", from+"2")
	netns.IP(t, "link", "set", from, "up")
	tx := openTx(t, TxConfig{Interface: from})
	netns.IP(t, "link", "del", from)
	tx.Put(copy(tx.Slot(), frame(60, 0)))
	if errno := tx.Kick(); errno != unix.ENODEV || tx.Waiting() != 1 {
		t.Errorf("%v, %d waiting", errno, tx.Waiting())
	}
}

// Sending and receiving a frame allocates no memory.
func TestAllocations(t *testing.T) {
	netns.Need(t)
	from, to := netns.Veth(t, 1500, 1)
	tx, rx := openTx(t, TxConfig{Interface: from}), openRx(t, RxConfig{Interface: to, Match: ours})
	f := frame(60, 1)
	allocs := testing.AllocsPerRun(100, func() {
		for range 10 {
			tx.Put(copy(tx.Slot(), f))
		}
		tx.Kick()
		for _, _, ok := rx.Next(); ok; _, _, ok = rx.Next() {
		}
		rx.Release()
	})
	if allocs > 0 {
		t.Errorf("%v allocations for ten frames", allocs)
	}
}

// An error of opening is one line.
func TestOpenErrors(t *testing.T) {
	netns.Need(t)
	if _, err := OpenTx(TxConfig{Interface: "nosuch0"}); err == nil || !strings.Contains(err.Error(), "nosuch0") {
		t.Error(err)
	}
	if _, err := OpenRx(RxConfig{Interface: "nosuch0"}); err == nil || !strings.Contains(err.Error(), "nosuch0") {
		t.Error(err)
	}
	if _, err := OpenTx(TxConfig{Interface: "lo", Size: 1 << 16}); err == nil {
		t.Error("frames of 64 KiB were taken")
	}
}
