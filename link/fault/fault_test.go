package fault_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"loam/link"
	"loam/link/fault"
	"loam/link/linktest"
	"loam/link/pipe"
	"loam/wire"
)

func TestConformance(t *testing.T) {
	slow := fault.Direction{Delay: time.Microsecond}
	for name, c := range map[string]fault.Config{
		"none": {}, "send": {Send: slow, Limit: 1 << 18}, "both": {Send: slow, Recv: slow, Limit: 1 << 18},
	} {
		t.Run(name, func(t *testing.T) {
			linktest.Run(t, func(testing.TB) (a, b link.Device) {
				a, b = pipe.New(pipe.Config{Offloads: pipe.AllOffloads, Queues: 2})
				return fault.New(a, c), b
			})
		})
	}
}

// arrival is a frame that was delivered: its number and its time.
type arrival struct {
	number  uint32
	at      time.Duration
	damaged bool
}

// through sends count frames of 200 bytes, one every pause, through a device with faults. It
// returns the delivered frames and the counted faults. It runs in fake time.
func through(t *testing.T, c fault.Config, count int, pause time.Duration) (got []arrival, faults fault.Counts) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		link.Track(true)
		defer link.Track(false)
		inner, peer := pipe.New(pipe.Config{})
		d := fault.New(inner, c)
		start := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			got = collect(peer.Queues()[0], start)
		}()
		for i := range count {
			f := []*link.Frame{linktest.Plain(link.Ethernet, 200, uint32(i))}
			for {
				n, err := d.Queues()[0].Send(f)
				if n == 1 {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				<-d.Queues()[0].Room()
			}
			time.Sleep(pause)
		}
		time.Sleep(time.Minute)
		d.Close()
		peer.Close()
		<-done
		faults, _ = d.Counts()
		if s := d.Stats(); s.TxDropped != faults.Lost || s.TxFrames != uint64(count) {
			t.Errorf("Stats = %+v, with %d lost", s, faults.Lost)
		}
		if n := link.Outstanding(); n != 0 {
			t.Errorf("%d frames are leaked", n)
		}
	})
	return got, faults
}

// collect receives until the device is closed.
func collect(q link.Queue, start time.Time) (got []arrival) {
	fs := make([]*link.Frame, link.BatchSize)
	for {
		n, err := q.Recv(fs)
		if err != nil {
			return got
		}
		for _, f := range fs[:n] {
			a := arrival{number: binary.BigEndian.Uint32(f.Bytes()[8:]), at: time.Since(start)}
			want := make([]byte, 200)
			linktest.Fill(link.Ethernet, want, a.number)
			a.damaged = !slices.Equal(f.Bytes(), want)
			got = append(got, a)
			f.Free()
		}
	}
}

func TestLoss(t *testing.T) {
	const count = 10_000
	got, faults := through(t, fault.Config{Seed: 1, Send: fault.Direction{Loss: 0.1}}, count, 0)
	if faults.Frames != count || len(got)+int(faults.Lost) != count {
		t.Errorf("%d arrived of %d, and %+v", len(got), count, faults)
	}
	if faults.Lost < 900 || faults.Lost > 1100 {
		t.Errorf("%d of %d lost, want about a tenth", faults.Lost, count)
	}
	if !slices.IsSortedFunc(got, func(a, b arrival) int { return int(a.number) - int(b.number) }) {
		t.Error("the order has changed")
	}
}

func TestDuplicate(t *testing.T) {
	const count = 5000
	got, faults := through(t, fault.Config{Seed: 2, Send: fault.Direction{Duplicate: 0.2}}, count, 0)
	twice := 0
	for i := 1; i < len(got); i++ {
		if got[i] == got[i-1] {
			twice++
		}
	}
	if twice != int(faults.Duplicated) || len(got) != count+twice || twice < 800 || twice > 1200 {
		t.Errorf("%d arrived, %d of them twice, and %+v", len(got), twice, faults)
	}
}

func TestCorrupt(t *testing.T) {
	const count = 5000
	got, faults := through(t, fault.Config{Seed: 3, Send: fault.Direction{Corrupt: 0.2}}, count, 0)
	damaged := 0
	for _, a := range got {
		if a.damaged {
			damaged++
		}
	}
	if damaged != int(faults.Corrupted) || len(got) != count || damaged < 800 || damaged > 1200 {
		t.Errorf("%d arrived, %d of them damaged, and %+v", len(got), damaged, faults)
	}
}

// Each frame that arrives after a frame with a higher number is counted as reordered. At most ReorderDistance frames,
// and the frames held at the same time, overtake it.
func TestReorder(t *testing.T) {
	const count, distance = 5000, 5
	got, faults := through(t, fault.Config{Seed: 4, Send: fault.Direction{Reorder: 0.1, ReorderDistance: distance}}, count, 0)
	overtaken, highest := 0, uint32(0)
	for i, a := range got {
		if a.number < highest {
			overtaken++
		}
		highest = max(highest, a.number)
		if late := i - int(a.number); late > 2*distance {
			t.Errorf("frame %d is %d places late", a.number, late)
		}
	}
	// Two frames held at the same time may return in either order. Both orders count.
	if overtaken != int(faults.Reordered) || len(got) != count || overtaken < 350 || overtaken > 650 {
		t.Errorf("%d arrived, %d of them late, and %+v", len(got), overtaken, faults)
	}
}

// A frame that is held for reordering, but that no frame overtakes, arrives after ReorderTime, and is not counted.
func TestReorderAlone(t *testing.T) {
	got, faults := through(t, fault.Config{Send: fault.Direction{Reorder: 1, ReorderTime: 20 * time.Millisecond}}, 3, time.Second)
	for i, a := range got {
		if want := time.Duration(i)*time.Second + 20*time.Millisecond; a.at != want {
			t.Errorf("frame %d arrived after %v, want %v", i, a.at, want)
		}
	}
	if len(got) != 3 || faults.Reordered != 0 {
		t.Errorf("%d arrived, and %+v", len(got), faults)
	}
}

// Delay delays every frame equally. Jitter delays some frames more than others, without changing
// the order.
func TestDelay(t *testing.T) {
	got, _ := through(t, fault.Config{Send: fault.Direction{Delay: 30 * time.Millisecond}}, 100, time.Millisecond)
	for i, a := range got {
		if want := time.Duration(i)*time.Millisecond + 30*time.Millisecond; a.at != want || a.number != uint32(i) {
			t.Errorf("frame %d arrived after %v, want %d after %v", a.number, a.at, i, want)
		}
	}
	got, _ = through(t, fault.Config{Send: fault.Direction{Delay: 30 * time.Millisecond, Jitter: 20 * time.Millisecond}}, 100, 5*time.Millisecond)
	delays := map[time.Duration]bool{}
	for i, a := range got {
		late := a.at - time.Duration(i)*5*time.Millisecond
		if a.number != uint32(i) || late < 30*time.Millisecond || late > 50*time.Millisecond {
			t.Errorf("frame %d came in place of %d, %v late", a.number, i, late)
		}
		delays[late] = true
	}
	if len(got) != 100 || len(delays) < 50 {
		t.Errorf("%d arrived with %d different delays", len(got), len(delays))
	}
}

// The same seed has the same result regardless of timing; another seed has a different one.
// Changing one rate does not change which frames the other rates select.
func TestDeterministic(t *testing.T) {
	all := fault.Direction{Loss: 0.1, Duplicate: 0.1, Corrupt: 0.1, Reorder: 0.1}
	numbers := func(seed uint64, d fault.Direction, pause time.Duration) string {
		got, faults := through(t, fault.Config{Seed: seed, Send: d}, 500, pause)
		s := fmt.Sprint(faults)
		for _, a := range got {
			s += fmt.Sprint(" ", a.number, a.damaged)
		}
		return s
	}
	if numbers(7, all, 0) != numbers(7, all, time.Microsecond) {
		t.Error("the timing changed the faults")
	}
	if numbers(7, all, 0) == numbers(8, all, 0) {
		t.Error("another seed did the same")
	}
	lost := func(d fault.Direction) (numbers []uint32) {
		got, _ := through(t, fault.Config{Seed: 7, Send: d}, 500, 0)
		seen := map[uint32]bool{}
		for _, a := range got {
			seen[a.number] = true
		}
		for i := range uint32(500) {
			if !seen[i] {
				numbers = append(numbers, i)
			}
		}
		return numbers
	}
	if !slices.Equal(lost(all), lost(fault.Direction{Loss: 0.1})) {
		t.Error("other rates changed what is lost")
	}
}

// A frame is finished before it is corrupted, so that its checksum reveals the damage. Of a GSO
// frame, one segment is corrupted.
func TestCorruptIsDetectable(t *testing.T) {
	for _, c := range []struct {
		transport linktest.Transport
		frames    int
	}{
		{linktest.Transport{Protocol: wire.ProtoTCP, Payload: 1000}, 1},
		{linktest.Transport{Protocol: wire.ProtoTCP, Payload: 60_000, GSOSize: 1000}, 60},
	} {
		synctest.Test(t, func(t *testing.T) {
			inner, peer := pipe.New(pipe.Config{Offloads: pipe.AllOffloads, Medium: link.IP})
			d := fault.New(inner, fault.Config{Seed: 5, Send: fault.Direction{Corrupt: 1}})
			d.Queues()[0].Send([]*link.Frame{linktest.Unfinished(link.IP, c.transport)})
			time.Sleep(time.Second)
			fs := make([]*link.Frame, link.BatchSize)
			n, err := peer.Queues()[0].Recv(fs)
			if n != c.frames || err != nil {
				t.Errorf("Recv = %d, %v; want %d", n, err, c.frames)
			}
			bad := 0
			for _, f := range fs[:n] {
				if f.NeedsChecksum || f.ChecksumValid || f.GSO != link.GSONone {
					t.Errorf("not finished: %+v", f.Offload)
				}
				if !intact(f) {
					bad++
				}
				f.Free()
			}
			if bad != 1 {
				t.Errorf("%d frames are damaged, want 1", bad)
			}
			d.Close()
			peer.Close()
		})
	}
}

// intact reports whether all checksums of a TCP packet are correct.
func intact(f *link.Frame) bool {
	h, segment, err := wire.ParseIPv4(f.Bytes())
	return err == nil && wire.IPv4ChecksumOK(f.Bytes()) && h.Protocol == wire.ProtoTCP && wire.TCPChecksumOK(segment, h.Src, h.Dst)
}

// Received frames have faults of their own.
func TestRecv(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, peer := pipe.New(pipe.Config{})
		d := fault.New(inner, fault.Config{Recv: fault.Direction{Delay: 50 * time.Millisecond, Duplicate: 1}})
		start := time.Now()
		peer.Queues()[0].Send([]*link.Frame{linktest.Plain(link.Ethernet, 60, 1)})
		fs := make([]*link.Frame, 4)
		n, err := d.Queues()[0].Recv(fs)
		if n != 2 || err != nil || time.Since(start) != 50*time.Millisecond {
			t.Errorf("Recv = %d, %v after %v; want 2 after 50ms", n, err, time.Since(start))
		}
		link.FreeAll(fs[:n])
		if send, recv := d.Counts(); send != (fault.Counts{}) || recv != (fault.Counts{Frames: 1, Duplicated: 1}) {
			t.Errorf("Counts = %+v, %+v", send, recv)
		}
		d.Close()
		peer.Close()
	})
}

// A device holds at most Limit delayed frames: the sender has to wait, and nothing is lost.
func TestLimit(t *testing.T) {
	got, faults := through(t, fault.Config{Send: fault.Direction{Delay: time.Second}, Limit: 100_000}, 2000, 0)
	if len(got) != 2000 || faults.Lost != 0 {
		t.Errorf("%d of 2000 arrived, and %+v", len(got), faults)
	}
	if last := got[len(got)-1].at; last < 10*time.Second {
		t.Errorf("all came after %v: more was held than 100,000 bytes", last)
	}
}
