package ext4_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loam/block"
	"loam/block/crash"
	"loam/block/memory"
	"loam/block/trace"
	"loam/fs"
	"loam/fs/ext4"
	"loam/internal/race"
	"loam/mem/cache"
	"loam/mem/memtest"
)

// Power loss: all writes to a device are recorded. From the records, tests build images that a disk
// may hold if the power fails at any moment. Each image is recovered by this package and by e2fsck.
// Both must find a consistent file system with all data that was fsynced.

// event is a write, or a flush if data is nil.
type event struct {
	at   int64
	data []byte
}

// recorder is a device that records completed writes and flushes in order.
type recorder struct {
	*memory.Device
	mu     sync.Mutex
	events []event
}

func (r *recorder) Submit(queue int, rs []*block.Request) {
	for _, q := range rs {
		r.mu.Lock()
		switch q.Op {
		case block.Flush:
			r.events = append(r.events, event{})
		case block.Write:
			r.events = append(r.events, event{q.Offset, bytes.Join(q.Data, nil)})
		case block.Discard, block.WriteZeroes:
			r.events = append(r.events, event{q.Offset, make([]byte, q.Length)})
		}
		r.Device.Submit(queue, []*block.Request{q})
		r.mu.Unlock()
	}
}

// length returns the number of events.
func (r *recorder) length() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events)
}

// promise is the durable state after a number of events: for each file its content or its absence.
type promise struct {
	events int
	files  map[string]string
	later  map[string]bool // files that may have changed after this state became durable
	labels *labels         // nil before the first promise
	marked int             // the labels that are durable, an index of labels.history
}

// workload makes random changes, and sometimes calls fsync. It returns the promises in order. length returns the
// number of events on the device so far.
func workload(t *testing.T, d block.Device, length func() int, seed uint64) []promise {
	var calls atomic.Int64
	now := func() time.Time { return time.UnixMilli(1e12 + calls.Add(1)/4) } // most operations do not see it move
	s := mount(t, d, ext4.Config{Interval: time.Hour, Discard: true, Now: now})
	v := newView(s)
	rnd := rand.New(rand.NewPCG(seed, 1))
	files := map[string]string{}
	mapped := mappings{memory: memtest.NewMemory(4), of: map[fs.Node]*mapping{}}
	mapped.pages = cache.New(mapped.memory, cache.Limits{})
	marks := newLabels(v, rnd)
	promises := []promise{{length(), map[string]string{}, map[string]bool{}, marks, 0}}
	const labels = 14 // from this kind of step on, no content changes
	for step := range 100 {
		name := fmt.Sprintf("/d%d/f%d", rnd.IntN(3), rnd.IntN(6))
		v.Mkdir(v.Dir, name[:3], 0o755)
		later := promises[len(promises)-1].later
		kind := rnd.IntN(18)
		later[name] = later[name] || kind < labels
		switch kind {
		case 14, 15, 16, 17: // labels only
			if marks.change(t) {
				p := promises[len(promises)-1]
				promises = append(promises, promise{length(), p.files, maps.Clone(later), marks, len(marks.history) - 1})
			}
		case 12, 13: // only this file becomes durable, and its content is not moved
			if files[name] != "" {
				files[name] = syncOne(t, v, rnd, name, files[name])
				last := promises[len(promises)-1]
				p := promise{length(), maps.Clone(last.files), maps.Clone(later), marks, last.marked}
				p.files[name] = files[name]
				delete(p.later, name)
				promises = append(promises, p)
			}
		case 10, 11: // direct writes (O_DIRECT), over the existing content and beyond its end
			sector := d.Info().LogicalSector
			at, n := rnd.IntN(8)*sector, (1+rnd.IntN(16))*sector
			b := bytes.Repeat([]byte("direct.."), n/8)
			f, err := v.Open(v.Dir, name, fs.WriteOnly|fs.Create|fs.Direct, 0o644)
			must(t, err)
			_, err = f.WriteAt(b, int64(at))
			must(t, errors.Join(err, f.Close()))
			c := files[name] + strings.Repeat("\x00", max(0, at+n-len(files[name])))
			files[name] = c[:at] + string(b) + c[at+n:]
		case 8, 9:
			if content := files[name]; content != "" {
				at := rnd.IntN(len(content))
				b := bytes.Repeat([]byte("store."), 2000)[:1+rnd.IntN(min(12000, len(content)-at))]
				mapped.store(t, v, name, int64(at), b)
				files[name] = content[:at] + string(b) + content[at+len(b):]
			}
		case 7: // a file without a name that is open when the power fails
			f, err := v.Open(v.Dir, "/open", fs.ReadWrite|fs.Create, 0o644)
			must(t, err)
			f.WriteAt(make([]byte, rnd.IntN(20_000)), int64(rnd.IntN(100_000)))
			must(t, v.Unlink(v.Dir, "/open"))
			if rnd.IntN(2) == 0 {
				must(t, f.Close())
			}
		case 6:
			manyNames(t, s, v, 60)
		case 0, 1, 2:
			content := strings.Repeat(fmt.Sprintf("%d.%d ", seed, step), 1+rnd.IntN(3000))
			f, err := v.Open(v.Dir, name, fs.WriteOnly|fs.Create|fs.Truncate, 0o644)
			must(t, err)
			_, err = f.Write([]byte(content))
			must(t, err)
			must(t, f.Close())
			files[name] = content
		case 3:
			if v.Unlink(v.Dir, name) == nil {
				delete(files, name)
			}
		case 4:
			to := fmt.Sprintf("/d%d/f%d", rnd.IntN(3), rnd.IntN(6))
			v.Mkdir(v.Dir, to[:3], 0o755)
			later[to] = true
			if v.Rename(v.Dir, name, v.Dir, to, 0) == nil && name != to {
				files[to] = files[name]
				delete(files, name)
			}
		case 5:
			if _, ok := files[name]; ok {
				size := rnd.IntN(9000)
				f, err := v.Open(v.Dir, name, fs.ReadWrite, 0)
				must(t, err)
				must(t, f.Truncate(int64(size)))
				f.Close()
				c := files[name] + strings.Repeat("\x00", 9000)
				files[name] = c[:size]
			}
		}
		if rnd.IntN(8) == 0 {
			must(t, s.Sync())
			promises = append(promises, promise{length(), maps.Clone(files), map[string]bool{}, marks, len(marks.history) - 1})
		}
	}
	mapped.unmap(t)
	must(t, s.Close())
	return promises
}

// syncOne overwrites a part of a file, calls fsync or fdatasync for it, and returns the new content.
func syncOne(t *testing.T, v *fs.View, rnd *rand.Rand, name, content string) string {
	at := rnd.IntN(len(content))
	b := bytes.Repeat([]byte("sync."), 2400)[:1+rnd.IntN(min(12000, len(content)-at))]
	f, err := v.Open(v.Dir, name, fs.WriteOnly, 0)
	must(t, err)
	_, err = f.WriteAt(b, int64(at))
	must(t, errors.Join(err, []func() error{f.Sync, f.SyncData}[rnd.IntN(2)](), f.Close()))
	return content[:at] + string(b) + content[at+len(b):]
}

// mappings are the files that stay mapped while they are changed, renamed and removed.
type mappings struct {
	memory *memtest.Memory
	pages  *cache.Cache
	of     map[fs.Node]*mapping
}

// store maps a file, unless it is mapped already, and stores b at an offset. The pages are written back later.
func (m *mappings) store(t *testing.T, v *fs.View, name string, at int64, b []byte) {
	f, err := v.Open(v.Dir, name, fs.ReadWrite, 0)
	must(t, err)
	defer f.Close()
	node := f.Place().Node
	if m.of[node] == nil {
		m.of[node] = mapFile(t, m.pages, m.memory, f)
	}
	must(t, m.of[node].access(b, at, true))
}

func (m *mappings) unmap(t *testing.T) {
	for _, m := range m.of {
		must(t, m.unmap())
	}
}

// manyNames creates a directory that needs its own blocks, and removes it. Its blocks, which held
// metadata, become free and later hold content.
func manyNames(t *testing.T, s *ext4.FileSystem, v *fs.View, n int) {
	must(t, v.Mkdir(v.Dir, "/x", 0o755))
	name := func(i int) string { return fmt.Sprintf("/x/%0200d", i) }
	for i := range n {
		must(t, v.Mknod(v.Dir, name(i), fs.Regular|0o644, fs.Device{}))
	}
	must(t, s.Sync())
	for i := range n {
		must(t, v.Unlink(v.Dir, name(i)))
	}
	must(t, v.Rmdir(v.Dir, "/x"))
}

// apply writes events to a copy of a device.
func apply(d *memory.Device, events []event) *memory.Device {
	copied := d.Snapshot()
	io := block.NewIO(copied)
	for _, e := range events {
		if e.data != nil {
			io.WriteAt(e.data, e.at)
		}
	}
	return copied
}

// lossy returns events that a disk may have stored before a power loss: all up to the last flush,
// and after it any sectors of any writes, in any order.
func lossy(events []event, rnd *rand.Rand) []event {
	flush := 0
	for i, e := range events {
		if e.data == nil {
			flush = i
		}
	}
	kept := append([]event(nil), events[:flush]...)
	var some []event
	for _, e := range events[flush:] {
		for at := 0; at < len(e.data); {
			unit := 512
			if e.at+int64(at) == 1024 {
				unit = 1024 // the two sectors of the superblock are stored or lost together: see CAVEATS.md
			}
			if rnd.IntN(2) == 0 {
				some = append(some, event{e.at + int64(at), e.data[at : at+unit]})
			}
			at += unit
		}
	}
	// Writes to the same sector keep their order: the device holds one of the values written since
	// the flush, and the choice above decides which one.
	return append(kept, some...)
}

// recovered opens an image after a crash. Files that were fsynced and not changed afterwards must be intact. Files
// that were changed afterwards must be intact or absent.
func recovered(t *testing.T, d *memory.Device, want promise, where string) {
	t.Helper()
	s, err := ext4.Open(d, ext4.Config{Interval: time.Hour})
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	v := newView(s)
	for name, content := range want.files {
		if want.later[name] {
			continue
		}
		f, err := v.Open(v.Dir, name, fs.ReadOnly, 0)
		if err != nil {
			t.Fatalf("%s: %s: %v", where, name, err)
		}
		got := make([]byte, len(content)+1)
		n, _ := f.Read(got)
		f.Close()
		if string(got[:n]) != content {
			t.Fatalf("%s: %s has %d bytes, and not what was synced", where, name, n)
		}
	}
	if want.labels != nil {
		want.labels.check(t, v, want.marked, where)
	}
	if err := s.Close(); err != nil {
		t.Fatalf("%s: close: %v", where, err)
	}
}

// judged fails the test if e2fsck finds a problem after its own recovery of an image.
func judged(t *testing.T, d *memory.Device, where string) {
	t.Helper()
	path := saveImage(t, d)
	defer os.Remove(path)
	out, err := tool(t, "e2fsck", "-p", path)
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() > 1 {
		t.Fatalf("%s: e2fsck -p: %v\n%s", where, err, out)
	}
	if out, err := tool(t, "e2fsck", "-fn", path); err != nil {
		t.Fatalf("%s: e2fsck -fn after -p: %v\n%s", where, err, out)
	}
}

func TestPowerLoss(t *testing.T) {
	for name, args := range map[string][]string{
		"default":      nil,
		"1 KiB blocks": {"-b", "1024"},
		"no checksums": {"-O", "^metadata_csum,^64bit"},
	} {
		if race.Enabled && args != nil {
			continue
		}
		t.Run(name, func(t *testing.T) { powerLoss(t, args) })
	}
}

func powerLoss(t *testing.T, args []string) {
	args = append(args, "-J", "size=4", "-N", "256")
	base := loadImage(t, makeImage(t, "16M", args...))
	rnd := rand.New(rand.NewPCG(3, 3))
	images := 0
	for seed := range uint64(1) {
		r := &recorder{Device: base.Snapshot()}
		promises := workload(t, r, r.length, seed)
		for cut := 0; cut <= len(r.events); cut++ {
			if race.Enabled && cut%few != 0 {
				continue
			}
			want := promised(promises, cut)
			where := fmt.Sprintf("seed %d, %d of %d events", seed, cut, len(r.events))
			for kind := range 3 {
				events := r.events[:cut]
				if kind > 0 {
					events = lossy(events, rnd)
				}
				d := apply(base, events)
				trial(t, d, want, where, (cut+kind)%11 == 0)
				images++
			}
		}
	}
	t.Logf("%d images", images)
}

// trial recovers an image. If judge is set, e2fsck checks the image after its own recovery and
// after ours.
func trial(t *testing.T, d *memory.Device, want promise, where string, judge bool) {
	t.Helper()
	if judge {
		judged(t, d, where)
	}
	recovered(t, d, want, where)
	if judge {
		check(t, d)
	}
}

// promised returns the latest promise that holds after the first events, a number, have reached the device.
func promised(promises []promise, events int) (want promise) {
	for _, p := range promises {
		if p.events <= events {
			want = p
		}
	}
	return want
}

// crashStates is the environment variable with the approximate number of states that TestOrders
// recovers in total. Without it, TestOrders recovers some thousands.
const crashStates = "LOAM_CRASH_STATES"

// TestOrders recovers states that the rules of package block allow after a power failure: writes
// lost, torn at a sector, and in another order.
func TestOrders(t *testing.T) {
	for _, c := range []struct {
		args   string
		sector int
		seed   uint64
	}{
		{"-b 4096", 4096, 1}, {"-b 1024", 1024, 2}, {"-b 1024 -O ^metadata_csum", 512, 3}, {"-b 4096 -O ^metadata_csum,^64bit", 512, 4},
	} {
		if race.Enabled && c.seed > 1 {
			continue
		}
		t.Run(fmt.Sprint(c.args, ", sectors of ", c.sector), func(t *testing.T) {
			args := append(strings.Fields(c.args), "-J", "size=4", "-N", "256")
			base := memory.FromImage(loadImage(t, makeImage(t, "16M", args...)).Image(), memory.Config{LogicalSector: c.sector})
			orders(t, base, c.seed)
		})
	}
}

func orders(t *testing.T, base *memory.Device, seed uint64) {
	log := &trace.Log{}
	promises := workload(t, trace.New(base.Snapshot(), log), func() int { return len(log.Events()) }, seed)
	perPoint := uint64(4)
	if total, err := strconv.Atoi(os.Getenv(crashStates)); err == nil {
		perPoint = uint64(total/4/len(log.Events())) + 1 // states for each point of the log, for each of the four tests
	}
	cursor := crash.New(base, log.Events())
	images := 0
	for {
		more, err := cursor.Next()
		must(t, err)
		if !more {
			break
		}
		if race.Enabled && cursor.At()%few != 0 {
			continue
		}
		states := []*memory.Device{cursor.Lost(), cursor.Kept()}
		if cursor.Unsettled() > 0 {
			for n := range perPoint {
				states = append(states, cursor.State(n))
			}
		}
		want := promised(promises, cursor.At())
		for i, d := range states {
			where := fmt.Sprintf("%d events, state %d", cursor.At(), i)
			trial(t, d, want, where, images%97 == 0)
			images++
		}
	}
	t.Logf("%d states", images)
}
