package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

const (
	blockSize = 1024
	length    = 64
)

// newSuper returns the superblock of a log, with the fields that mke2fs sets.
func newSuper() []byte {
	b := make([]byte, blockSize)
	putHead(b, typeSuper2, 0)
	binary.BigEndian.PutUint32(b[0xc:], blockSize)
	binary.BigEndian.PutUint32(b[0x10:], length)
	binary.BigEndian.PutUint32(b[0x14:], 1)
	binary.BigEndian.PutUint32(b[0x18:], 1)
	copy(b[0x30:], "a UUID of 16 by.")
	return b
}

// storage is a simulated disk: the blocks of the log, and the blocks at their home on the device, each by number.
type storage struct{ log, home map[uint64][]byte }

func (d *storage) apply(s Step) {
	switch s.Kind {
	case WriteLog:
		d.log[s.Block] = s.Data
	case WriteHome:
		d.home[s.Block] = s.Data
	}
}

func (d *storage) config(c Config) Config {
	c.Super = d.log[0]
	return c
}

// recoverAll recovers a copy of the storage from its log and returns the home blocks.
func (d *storage) recoverAll(t *testing.T, c Config) map[uint64][]byte {
	t.Helper()
	home := maps.Clone(d.home)
	_, err := Recover(d.config(c), func(at uint32) ([]byte, error) {
		b := make([]byte, blockSize)
		copy(b, d.log[uint64(at)])
		return b, nil
	}, func(number uint64, data []byte) error {
		home[number] = bytes.Clone(data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return home
}

// TestEveryPrefix commits random transactions. It recovers after every prefix of the steps of a commit. The last few
// writes after the last barrier may be lost, in every combination. The result must be the state after some committed
// transaction.
func TestEveryPrefix(t *testing.T) {
	for _, c := range []Config{
		{BlockSize: blockSize, Length: length, Checksums: true, Wide: true},
		{BlockSize: blockSize, Length: length, Checksums: true},
		{BlockSize: blockSize, Length: length, Wide: true},
		{BlockSize: blockSize, Length: length},
	} {
		for seed := range uint64(20) {
			t.Run(fmt.Sprintf("sums %v, wide %v, seed %d", c.Checksums, c.Wide, seed), func(t *testing.T) { everyPrefix(t, c, seed) })
		}
	}
}

func everyPrefix(t *testing.T, c Config, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 2))
	d := &storage{map[uint64][]byte{0: newSuper()}, map[uint64][]byte{}}
	l, err := Open(d.config(c))
	if err != nil {
		t.Fatal(err)
	}
	state := map[uint64][]byte{} // the state at the last commit
	freed := map[uint64]bool{}   // blocks that no longer hold metadata but the content of a file
	for range 25 {
		tx := randomTransaction(rnd, freed)
		if !l.Fits(tx) {
			carryOut(t, d, l.Checkpoint(), c, rnd, state, state)
		}
		steps, err := l.Commit(tx)
		if err != nil {
			t.Fatal(err)
		}
		next := maps.Clone(state)
		for _, b := range tx.Revoked {
			delete(next, b)
		}
		for _, i := range tx.Images {
			next[i.Block] = i.Data
		}
		carryOut(t, d, steps, c, rnd, state, next)
		state = next
		for _, b := range tx.Revoked {
			d.home[b] = []byte("content of a file") // written in place, after the commit
			freed[b] = true
		}
		compare(t, d, d.recoverAll(t, c), state)
	}
}

// randomTransaction changes some blocks, and frees one of them. Some blocks begin with the magic number.
func randomTransaction(rnd *rand.Rand, freed map[uint64]bool) *Transaction {
	tx := &Transaction{}
	used := map[uint64]bool{}
	for range 1 + rnd.IntN(12) {
		block := uint64(rnd.IntN(30))
		if used[block] || freed[block] {
			continue
		}
		used[block] = true
		data := make([]byte, blockSize)
		binary.BigEndian.PutUint64(data[8:], rnd.Uint64())
		if rnd.IntN(4) == 0 {
			binary.BigEndian.PutUint32(data, magic)
		}
		tx.Images = append(tx.Images, Image{block, data})
	}
	if block := uint64(rnd.IntN(30)); rnd.IntN(3) == 0 && !used[block] && !freed[block] {
		tx.Revoked = append(tx.Revoked, block)
	}
	return tx
}

// carryOut executes steps, and recovers after each of them.
func carryOut(t *testing.T, d *storage, steps []Step, c Config, rnd *rand.Rand, before, after map[uint64][]byte) {
	t.Helper()
	var pending []Step
	for _, s := range steps {
		if s.Kind != Flush {
			pending = append(pending, s)
		}
		for range 3 {
			lost := &storage{maps.Clone(d.log), maps.Clone(d.home)}
			for _, p := range shuffled(rnd, pending) {
				if rnd.IntN(2) == 0 {
					lost.apply(p)
				}
			}
			got := lost.recoverAll(t, c)
			if !matches(got, before) && !matches(got, after) {
				t.Fatalf("recovery finds neither what was before nor what was committed")
			}
		}
		if s.Kind == Flush {
			for _, p := range pending {
				d.apply(p)
			}
			pending = nil
		}
	}
	for _, p := range pending {
		d.apply(p)
	}
}

func shuffled(rnd *rand.Rand, steps []Step) []Step {
	steps = slices.Clone(steps)
	rnd.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	return steps
}

func matches(got, want map[uint64][]byte) bool {
	for block, data := range want {
		if !bytes.Equal(got[block], data) {
			return false
		}
	}
	return true
}

func compare(t *testing.T, d *storage, got, want map[uint64][]byte) {
	t.Helper()
	if !matches(got, want) {
		t.Fatal("something committed is lost")
	}
	for block, data := range d.home {
		if string(data) == "content of a file" && string(got[block]) != string(data) {
			t.Fatalf("block %d was freed and has content, and recovery wrote over it", block)
		}
	}
}

// Lengths of the tags in a descriptor block (section "Descriptor Block" of the kernel's ext4 documentation). In
// version 3 a tag has 16 bytes. In the others it has 8, or 12 with 64-bit block numbers, and 2 more with checksums of
// version 2.
func TestTags(t *testing.T) {
	for _, c := range []struct {
		l    layout
		size int
	}{
		{layout{blockSize: 1024}, 8},
		{layout{blockSize: 1024, wide: true}, 12},
		{layout{blockSize: 1024, sums: 2}, 10},
		{layout{blockSize: 1024, sums: 2, wide: true}, 14},
		{layout{blockSize: 1024, sums: 3, wide: true}, 16},
	} {
		if n := c.l.tagSize(); n != c.size {
			t.Errorf("%+v: %d bytes, want %d", c.l, n, c.size)
		}
		want := tag{block: 0x12345678, flags: tagSameUUID | tagLast}
		if c.l.wide {
			want.block |= 0x9abc << 32
		}
		if c.l.sums > 0 {
			want.sum = 0xbeef
		}
		b := make([]byte, 16)
		c.l.putTag(b, want)
		if got := c.l.tag(b); got != want {
			t.Errorf("%+v: %+v, want %+v", c.l, got, want)
		}
	}
}

// Opening a log fails if it has unknown features or is inconsistent.
func TestRefused(t *testing.T) {
	c := Config{BlockSize: blockSize, Length: length}
	for name, change := range map[string]func([]byte){
		"a feature":    func(b []byte) { binary.BigEndian.PutUint32(b[0x28:], 0x80) },
		"block size":   func(b []byte) { binary.BigEndian.PutUint32(b[0xc:], 512) },
		"length":       func(b []byte) { binary.BigEndian.PutUint32(b[0x10:], length+1) },
		"first":        func(b []byte) { binary.BigEndian.PutUint32(b[0x14:], 0) },
		"start":        func(b []byte) { binary.BigEndian.PutUint32(b[0x1c:], length) },
		"magic number": func(b []byte) { b[0] = 0 },
		"checksum":     func(b []byte) { binary.BigEndian.PutUint32(b[0x28:], featureSum3) },
	} {
		c.Super = newSuper()
		change(c.Super)
		if _, err := Open(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := Recover(c, nil, nil); err == nil {
			t.Errorf("%s: recovered", name)
		}
	}
}

// FuzzRecover: recovery ends for every log, and applies no more blocks than the log has.
func FuzzRecover(f *testing.F) {
	log, err := Open(Config{Super: newSuper(), BlockSize: blockSize, Length: length})
	if err != nil {
		f.Fatal(err)
	}
	steps, _ := log.Commit(&Transaction{Images: []Image{{5, make([]byte, blockSize)}}, Revoked: []uint64{7}})
	seed := make([]byte, 6*blockSize)
	for _, s := range steps {
		if s.Kind == WriteLog {
			copy(seed[s.Block*blockSize:], s.Data)
		}
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		image := make([]byte, length*blockSize)
		copy(image, data)
		applied := 0
		Recover(Config{Super: image[:blockSize], BlockSize: blockSize, Length: length}, func(at uint32) ([]byte, error) {
			return image[at*blockSize : (at+1)*blockSize], nil
		}, func(uint64, []byte) error { applied++; return nil })
		if applied > length {
			t.Errorf("%d blocks from a log of %d", applied, length)
		}
	})
}
