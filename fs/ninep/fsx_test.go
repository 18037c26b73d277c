package ninep_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/ninep/server"
)

// TestOneFile changes one file in many ways through several open files, as the program fsx does, and compares it with
// a slice of bytes. Meanwhile the file is renamed, linked and unlinked.
func TestOneFile(t *testing.T) {
	for name, c := range caches {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(4) {
				oneFile(t, view(export(t, folder(t), c, server.Config{})), rand.New(rand.NewPCG(seed, 1)))
			}
		})
	}
}

func oneFile(t *testing.T, v *fs.View, r *rand.Rand) {
	const most, steps = 200_000, 400
	var model []byte
	grow := func(n int) {
		if n > len(model) {
			model = append(model, make([]byte, n-len(model))...)
		}
	}
	name := "f"
	f, err := v.Open(v.Dir, name, fs.ReadWrite|fs.Create, 0o644)
	must(t, err)
	open := []*fs.File{f}
	for step := range steps {
		f := open[r.IntN(len(open))]
		offset, n := r.IntN(most), 1+r.IntN(30_000)
		switch r.IntN(10) {
		case 0, 1:
			data := make([]byte, n)
			for i := range data {
				data[i] = byte(r.Uint32())
			}
			grow(offset + n)
			copy(model[offset:], data)
			if k, err := f.WriteAt(data, int64(offset)); k != n || err != nil {
				t.Fatalf("step %d: write: %d, %v", step, k, err)
			}
		case 2:
			model = model[:min(offset, len(model)):min(offset, len(model))]
			grow(offset)
			must(t, f.Truncate(int64(offset)))
		case 3:
			if offset < len(model) {
				clear(model[offset:min(len(model), offset+n)])
			}
			must(t, f.Handle().(fs.Allocator).Allocate(fs.PunchHole|fs.KeepSize, int64(offset), int64(n)))
		case 4:
			data := bytes.Repeat([]byte{byte(step)}, n)
			model = append(model, data...)
			k, end, err := f.Handle().Append(data)
			if k != n || end != int64(len(model)) || err != nil {
				t.Fatalf("step %d: append: %d, %d, %v", step, k, end, err)
			}
		case 5:
			must(t, v.Rename(v.Dir, name, v.Dir, name+"x", 0))
			name += "x"
		case 6:
			must(t, v.Mknod(v.Dir, "other", fs.Regular|0o600, fs.Device{}))
			must(t, v.Rename(v.Dir, name, v.Dir, "other", fs.RenameExchange))
			must(t, v.Unlink(v.Dir, name))
			name = "other"
			must(t, v.Rename(v.Dir, name, v.Dir, "f", 0))
			name = "f"
		case 7:
			if len(open) < 5 {
				o, err := v.Open(v.Dir, name, fs.ReadWrite, 0)
				must(t, err)
				open = append(open, o)
			}
		default:
			check(t, step, f, model, offset, n)
		}
		if a := f.Attr(); a.Size != int64(len(model)) || a.Links != 1 {
			t.Fatalf("step %d: size %d, %d links; want size %d", step, a.Size, a.Links, len(model))
		}
	}
	must(t, v.Unlink(v.Dir, name))
	for _, f := range open {
		check(t, steps, f, model, 0, len(model)+1)
		must(t, f.Close())
	}
	if _, err := v.Lookup(v.Dir, name, false); err != linux.ENOENT {
		t.Errorf("it is still there: %v", err)
	}
}

// check compares n bytes of a file, from an offset on, with the model.
func check(t *testing.T, step int, f *fs.File, model []byte, offset, n int) {
	t.Helper()
	want := model[min(offset, len(model)):min(offset+n, len(model))]
	got := make([]byte, n)
	k := 0
	for k < len(got) {
		m, err := f.ReadAt(got[k:], int64(offset+k))
		must(t, err)
		if m == 0 {
			break
		}
		k += m
	}
	if !bytes.Equal(got[:k], want) {
		t.Fatalf("step %d: %d bytes at %d, want %d, or others", step, k, offset, len(want))
	}
}
