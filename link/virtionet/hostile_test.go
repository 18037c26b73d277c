package virtionet_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"loam/driver/virtio"
	"loam/driver/virtio/model"
	"loam/link"
	"loam/link/linktest"
	"loam/link/virtionet"
	"loam/wire"
)

// lonely is a card without a peer card: the test itself processes the card's queues.
type lonely struct {
	*virtionet.Device
	model   *model.Device
	machine *model.Machine
}

// single opens a card with one pair of queues. work runs on the card's model.
func single(t testing.TB, features uint64, work func(d *model.Device), way string) lonely {
	t.Helper()
	m := model.New()
	d := &model.Device{Kind: 1, Features: features, Work: work, Config: model.NetConfig([6]byte{2, 0, 0, 0, 0, 1}, 1, 1500)}
	v := m.Add(t, way, d, 3)
	end, err := virtionet.Open(v, virtionet.Config{Depth: 64})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end.Close() })
	return lonely{end, d, m}
}

// receive returns a function that makes a card write b, with its header, into one buffer, once.
func receive(b []byte) func(d *model.Device) {
	sent := false
	return func(d *model.Device) {
		if c := d.Queues[0].Take(); c != nil && !sent {
			sent = true
			d.Queues[0].Done(c, c.Scatter(0, b))
		}
	}
}

// header returns a virtio-net header followed by a frame of frame bytes.
func header(flags, gso byte, headerLen, gsoSize, csumStart, csumOffset, buffers uint16, frame int) []byte {
	b := []byte{flags, gso}
	for _, v := range []uint16{headerLen, gsoSize, csumStart, csumOffset, buffers} {
		b = append(b, byte(v), byte(v>>8))
	}
	return append(b, make([]byte, frame)...)
}

// An invalid frame is dropped and counted, and the next frame arrives.
func TestDamaged(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":                  {},
		"half a header":            make([]byte, 6),
		"a header only":            header(0, 0, 0, 0, 0, 0, 1, 0),
		"a frame that is cut":      header(0, 0, 0, 0, 0, 0, 1, 13),
		"no buffers":               header(0, 0, 0, 0, 0, 0, 0, 100),
		"a checksum outside":       header(1, 0, 0, 0, 90, 16, 1, 100),
		"a checksum in the header": header(1, 0, 0, 0, 4, 2, 1, 100),
		"an unknown segmentation":  header(0, 77, 0, 0, 0, 0, 1, 100),
		"segments of nothing":      header(1, 1, 54, 0, 34, 16, 1, 100),
		"segments that are none":   header(1, 1, 54, 1000, 34, 16, 1, 100),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				good := header(0, 0, 0, 0, 0, 0, 1, 60)
				step := 0
				card := single(t, everything, func(d *model.Device) {
					for ; step < 2; step++ {
						c := d.Queues[0].Take()
						if c == nil {
							return
						}
						d.Queues[0].Done(c, c.Scatter(0, [][]byte{b, good}[step]))
					}
				}, eachVector)
				fs := make([]*link.Frame, 4)
				n, err := card.Queues()[0].Recv(fs)
				if n != 1 || err != nil || fs[0].Len() != 60 {
					t.Fatalf("Recv = %d, %v", n, err)
				}
				fs[0].Free()
				if got := card.Stats().RxErrors; got != 1 {
					t.Errorf("RxErrors = %d, want 1", got)
				}
			})
		})
	}
}

// If a card completes a request that was not posted, the driver stops using the card: Recv and Send return the error,
// also on later calls, Room is closed, and all memory is freed.
func TestNonsense(t *testing.T) {
	type lie = struct {
		Lie    model.Lie
		Number uint32
	}
	for name, l := range map[string]lie{
		"an id out of range": {model.WrongID, 1 << 20},
		"too many bytes":     {model.TooLong, 5000},
		"two times":          {model.Twice, 0},
		"an index ahead":     {model.Jump, 100},
		"an index behind":    {model.Jump, 0xff},
		"broken":             {model.Broken, 0},
	} {
		for way := range model.Ways {
			t.Run(name+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					card := single(t, everything, nil, way)
					card.model.Become(receive(header(0, 0, 0, 0, 0, 0, 1, 60)), &model.Hostile{Next: model.Script(lie(l))})
					q := card.Queues()[0]
					fs := make([]*link.Frame, 4)
					var err error
					for range 3 {
						var n int
						if n, err = q.Recv(fs); err != nil {
							break
						}
						link.FreeAll(fs[:n])
					}
					if !errors.Is(err, virtio.ErrNonsense) && !errors.Is(err, virtio.ErrBroken) {
						t.Fatalf("Recv: %v", err)
					}
					f := linktest.Plain(link.Ethernet, 100, 0)
					if n, again := q.Send([]*link.Frame{f}); n != 0 || !errors.Is(again, errors.Unwrap(err)) && again == nil {
						t.Errorf("Send = %d, %v; want %v", n, again, err)
					}
					f.Free()
					if _, open := <-q.Room(); open {
						t.Error("Room is still open")
					}
					if err := card.Close(); err != nil {
						t.Errorf("Close: %v", err)
					}
					if n := card.machine.Held(); n != 0 {
						t.Errorf("%d bytes of memory are kept", n)
					}
				})
			})
		}
	}
}

// If a frame's header names more buffers than the card has filled, the device stops using the card.
func TestBuffersMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := single(t, everything, receive(header(0, 0, 0, 0, 0, 0, 3, 60)), "MMIO")
		if _, err := card.Queues()[0].Recv(make([]*link.Frame, 1)); !errors.Is(err, virtio.ErrNonsense) {
			t.Errorf("Recv: %v, want ErrNonsense", err)
		}
	})
}

// If the machine has no more memory that the card can reach, the device fails once the last buffer
// is used up.
func TestNoBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := single(t, everything, nil, "MMIO")
		model.Heapless(card.machine)
		card.model.Become(func(d *model.Device) {
			for c := d.Queues[0].Take(); c != nil; c = d.Queues[0].Take() {
				d.Queues[0].Done(c, c.Scatter(0, header(0, 0, 0, 0, 0, 0, 1, 60)))
			}
		}, nil)
		fs := make([]*link.Frame, 10)
		got := 0
		for {
			n, err := card.Queues()[0].Recv(fs)
			got += n
			link.FreeAll(fs[:n])
			if err != nil {
				break
			}
		}
		if got != 64 {
			t.Errorf("%d frames arrived, want 64", got)
		}
	})
}

// If a card never completes transmit requests, Send does not accept all frames, the card is notified again
// periodically, and the device can be closed.
func TestNeverSends(t *testing.T) {
	for way := range model.Ways {
		synctest.Test(t, func(t *testing.T) {
			card := single(t, everything, func(*model.Device) {}, way)
			q := card.Queues()[0]
			sent := 0
			for {
				f := linktest.Plain(link.Ethernet, 100, 0)
				n, err := q.Send([]*link.Frame{f})
				if err != nil {
					t.Fatal(err)
				}
				if sent += n; n == 0 {
					f.Free()
					break
				}
			}
			if sent != 64 {
				t.Errorf("%d frames were taken, want 64", sent)
			}
			start := time.Now()
			<-q.Room()
			if got := time.Since(start); got != 5*time.Second {
				t.Errorf("Room rings after %v, want 5s", got)
			}
			if got := card.Counters().Stalls; got != 1 {
				t.Errorf("%d stalls, want 1", got)
			}
			if err := card.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A frame whose interrupt is lost is delayed by at most two seconds, and the loss is counted.
// Frames before and after it are not delayed.
func TestInterruptLost(t *testing.T) {
	for way := range model.Ways {
		synctest.Test(t, func(t *testing.T) {
			card := single(t, everything, func(*model.Device) {}, way)
			// receive makes a frame arrive while Recv waits, and returns how long Recv still
			// waited.
			receive := func(lie model.Lie) time.Duration {
				var start time.Time
				time.AfterFunc(2500*time.Millisecond, func() {
					start = time.Now()
					arrived := false
					card.model.Become(func(d *model.Device) {
						if !arrived {
							arrived = true
							c := d.Queues[0].Take()
							d.Queues[0].Done(c, c.Scatter(0, header(0, 0, 0, 0, 0, 0, 1, 60)))
						}
					}, &model.Hostile{Next: func() (model.Lie, uint32) { return lie, 0 }})
				})
				frames := make([]*link.Frame, 1)
				if n, err := card.Queues()[0].Recv(frames); n != 1 || err != nil {
					t.Fatalf("%s: Recv: %d, %v", way, n, err)
				}
				frames[0].Free()
				return time.Since(start)
			}
			for _, c := range []struct {
				lie         model.Lie
				least, most time.Duration
				lost        uint64 // total number of lost interrupts
			}{
				{model.Truth, 0, 0, 0},
				{model.Quiet, time.Second, 2 * time.Second, 1},
				{model.Truth, 0, 0, 1},
				{model.Quiet, time.Second, 2 * time.Second, 2},
			} {
				if took := receive(c.lie); took < c.least || took > c.most {
					t.Errorf("%s: a frame took %v, not from %v to %v", way, took, c.least, c.most)
				}
				if lost := card.Counters().Lost; lost != c.lost {
					t.Errorf("%s: %d interrupts were lost, not %d", way, lost, c.lost)
				}
			}
		})
	}
}

// An interrupt that has arrived is not reported as lost, even if the goroutine that it wakes does not run for seconds, since
// the program's goroutines keep all CPUs busy.
func TestInterruptNotLost(t *testing.T) {
	for way := range model.Ways {
		synctest.Test(t, func(t *testing.T) {
			card := single(t, everything, func(*model.Device) {}, way)
			card.Starve()
			arrived := false
			card.model.Become(func(d *model.Device) {
				if !arrived {
					arrived = true
					c := d.Queues[0].Take()
					d.Queues[0].Done(c, c.Scatter(0, header(0, 0, 0, 0, 0, 0, 1, 60)))
				}
			}, nil)
			time.Sleep(5 * time.Second)
			frames := make([]*link.Frame, 1)
			if n, err := card.Queues()[0].Recv(frames); n != 1 || err != nil {
				t.Fatalf("%s: Recv: %d, %v", way, n, err)
			}
			frames[0].Free()
			if lost := card.Counters().Lost; lost != 0 {
				t.Errorf("%s: %d interrupts were lost", way, lost)
			}
		})
	}
}

// If a card has missed the notification about new receive buffers, the driver notifies it again.
func TestNotificationLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var deaf atomic.Bool
		deaf.Store(true)
		card := single(t, everything, func(d *model.Device) {
			if c := d.Queues[0].Take(); c != nil && !deaf.Load() {
				d.Queues[0].Done(c, c.Scatter(0, header(0, 0, 0, 0, 0, 0, 1, 60)))
			}
		}, "MMIO")
		synctest.Wait() // waits until the card has ignored the notifications
		deaf.Store(false)
		frames := make([]*link.Frame, 1)
		start := time.Now()
		if n, err := card.Queues()[0].Recv(frames); n != 1 || err != nil {
			t.Fatalf("Recv: %d, %v", n, err)
		}
		frames[0].Free()
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// If a card does not stop and no bus separates it from memory, its memory is kept and never reused.
func TestNeverStops(t *testing.T) {
	for way := range model.Ways {
		synctest.Test(t, func(t *testing.T) {
			card := single(t, everything, func(*model.Device) {}, way)
			card.model.Become(nil, &model.Hostile{NeverResets: true})
			err := card.Close()
			if way == "MMIO" && (!errors.Is(err, virtio.ErrReset) || card.machine.Held() == 0) {
				t.Errorf("Close: %v, %d bytes are kept", err, card.machine.Held())
			}
			if way != "MMIO" && (err != nil || card.machine.Held() != 0) {
				t.Errorf("%s: Close: %v, %d bytes are kept", way, err, card.machine.Held())
			}
		})
	}
}

// A card that does not answer on the control queue is given up in bounded time.
func TestControlSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := model.New()
		d := &model.Device{Kind: 1, Features: everything, Config: model.NetConfig([6]byte{}, 2, 1500)}
		v := m.Add(t, "MMIO", d, 5)
		if _, err := virtionet.Open(v, virtionet.Config{Queues: 2}); !errors.Is(err, virtio.ErrTimeout) {
			t.Errorf("Open: %v, want ErrTimeout", err)
		}
		if m.Held() != 0 {
			t.Errorf("%d bytes of memory are kept", m.Held())
		}
	})
}

// An invalid configuration is rejected.
func TestBadConfig(t *testing.T) {
	for name, config := range map[string][]byte{
		"MTU of 67": model.NetConfig([6]byte{}, 2, 67),
		"no pairs":  model.NetConfig([6]byte{}, 0, 1500),
		"too many":  model.NetConfig([6]byte{}, 0x8001, 1500),
	} {
		synctest.Test(t, func(t *testing.T) {
			m := model.New()
			v := m.Add(t, "MMIO", &model.Device{Kind: 1, Features: everything, Config: config}, 5)
			if _, err := virtionet.Open(v, virtionet.Config{Queues: 2}); !errors.Is(err, virtio.ErrLayout) {
				t.Errorf("%s: Open: %v, want ErrLayout", name, err)
			}
		})
	}
	for _, c := range []virtionet.Config{{Depth: 3}, {Depth: -2}, {Depth: 1 << 20}, {Queues: 65}, {MTU: 1 << 20}} {
		synctest.Test(t, func(t *testing.T) {
			v := model.New().Add(t, "MMIO", &model.Device{Kind: 1}, 3)
			if _, err := virtionet.Open(v, c); err == nil {
				t.Errorf("%+v is accepted", c)
			}
		})
	}
}

// The cable may be disconnected and connected again.
func TestLinkUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := single(t, everything, nil, eachVector)
		for _, up := range []bool{false, true} {
			card.model.Change(func(config []byte) {
				config[6] = 0
				if up {
					config[6] = 1
				}
			})
			synctest.Wait()
			if card.LinkUp() != up {
				t.Errorf("LinkUp = %v, want %v", card.LinkUp(), up)
			}
		}
		if n := card.Counters().Changes; n != 2 {
			t.Errorf("%d changes are counted, want 2", n)
		}
	})
}

// FuzzCard checks that for any behaviour of rings, headers and configuration, the device neither
// panics nor hangs nor leaks.
func FuzzCard(f *testing.F) {
	f.Add([]byte{0, 0, 1, 200, 6, 0}, header(0, 0, 0, 0, 0, 0, 2, 60), true)
	f.Add([]byte{3, 10, 9, 1, 10, 0, 7, 0, 5, 3}, header(1, 1, 54, 1000, 34, 16, 1, 3000), false)
	f.Fuzz(func(t *testing.T, lies, frame []byte, overPCI bool) {
		way := "MMIO"
		if overPCI {
			way = eachVector
		}
		synctest.Test(t, func(t *testing.T) {
			link.Track(true)
			defer link.Track(false)
			card := single(t, everything, nil, way)
			incoming := 200 // number of frames
			card.model.Become(func(d *model.Device) {
				for ; incoming > 0; incoming-- {
					c := d.Queues[0].Take()
					if c == nil {
						break
					}
					d.Queues[0].Done(c, c.Scatter(0, frame))
				}
				for c := d.Queues[1].Take(); c != nil; c = d.Queues[1].Take() {
					d.Queues[1].Done(c, 0)
				}
			}, &model.Hostile{Next: model.FromBytes(lies)})
			q := card.Queues()[0]
			var both sync.WaitGroup
			both.Go(func() {
				fs := make([]*link.Frame, 4)
				for {
					n, err := q.Recv(fs)
					link.FreeAll(fs[:n])
					if err != nil {
						return
					}
				}
			})
			both.Go(func() {
				for range 200 {
					fs := []*link.Frame{linktest.Plain(link.Ethernet, 100, 0),
						linktest.Unfinished(link.Ethernet, linktest.Transport{Protocol: wire.ProtoTCP, Payload: 20_000, GSOSize: 1000})}
					n, err := q.Send(fs)
					link.FreeAll(fs[n:])
					if err != nil {
						return
					}
				}
			})
			time.Sleep(time.Minute) // fake time
			card.Close()
			both.Wait()
			if n := link.Outstanding(); n != 0 {
				t.Errorf("%d frames are lost", n)
			}
			if n := card.machine.Held(); n != 0 {
				t.Errorf("%d bytes of memory are kept", n)
			}
		})
	})
}
